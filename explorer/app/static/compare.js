/** Any two schedules of the history side by side: facts, loops, CUDA. */

import { h, keyed, show } from "./dom.js";
import { diff } from "./diff.js";
import { problemBox } from "./problem.js";

export class Compare {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.a = h("select", { "aria-label": "first schedule", onchange: () => this.ask() });
    this.b = h("select", { "aria-label": "second schedule", onchange: () => this.ask() });
    this.body = h("div.compared");
    this.element = h(
      "div.compare",
      null,
      h("div.vhead", null, h("h4", null, "Compare"), this.a, h("span.soft", null, "with"), this.b),
      this.body,
    );
    app.link.on("history", (pane) => this.#choices(pane));
    app.link.on("target", () => (this.asked = false)); /* asked anew when all panes have come, if the tab is open */
  }

  /** Compare two states by id. */
  set(a, b) {
    this.a.value = a;
    this.b.value = b;
    this.touched = true;
    this.ask();
  }

  /** The tab is open: show something useful. */
  fresh() {
    if (!this.asked || !this.touched) this.ask();
  }

  #choices(pane) {
    const before = [this.a.value, this.b.value];
    for (const select of [this.a, this.b]) {
      keyed(
        select,
        pane.states,
        (state) => state.id,
        (state) => h("option", { value: state.id }),
        (option, state) => {
          option.textContent = `${pane.states.indexOf(state)} · ${state.title || state.call || "start"}`;
        },
      );
    }
    const current = pane.states.find((state) => state.id === pane.current);
    if (this.touched && before.every((id) => pane.states.some((state) => state.id === id))) [this.a.value, this.b.value] = before;
    else [this.a.value, this.b.value] = [current?.parent ?? pane.states[0]?.id, pane.current];
    this.asked = false;
    if (show(this.element, !this.element.hidden) && this.element.offsetParent) this.fresh();
  }

  #title(id) {
    const state = this.app.link.panes.history?.states.find((one) => one.id === id);
    return state ? state.title || state.call || "start" : id;
  }

  async ask() {
    this.asked = true;
    if (this.a.value === this.b.value) {
      this.body.replaceChildren(h("p.empty.soft", null, "Choose two different schedules."));
      return;
    }
    const answer = await this.app.link.ask("compare", { a: this.a.value, b: this.b.value });
    if (!answer) return;
    if (answer.problem) {
      this.body.replaceChildren(problemBox(answer.problem, { brush: this.app.brush }));
      return;
    }
    const { a, b, loops, cuda, rows } = answer.data;
    const named = rows[0]?.[0] === "";
    const header = named ? rows[0] : ["", this.#title(a), this.#title(b)];
    this.body.replaceChildren(
      h(
        "table.facts",
        null,
        h("caption.ex-sr", null, "facts of the two schedules"),
        h("thead", null, h("tr", null, ...header.map((name) => h("th", { scope: "col" }, name)))),
        h(
          "tbody",
          null,
          ...rows
            .slice(named ? 1 : 0)
            .map(([name, ...cells]) =>
              h("tr", null, h("th", { scope: "row" }, name), ...cells.map((cell) => h("td", null, cell))),
            ),
        ),
      ),
      h("h5", null, "Loops"),
      diff(loops, 4),
      h("h5", null, "CUDA"),
      diff(cuda, 2),
    );
  }
}
