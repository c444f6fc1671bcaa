/**
 * A measured search: what Auto could have decided otherwise, each variant with its time as it is measured; stopped with the best
 * so far.  A click on a variant takes its steps as one action.
 */

import { attr, h, keyed, part, reveal, rove, say, show, there } from "./dom.js";
import { become, fragment } from "./markup.js";
import { problemBox } from "./problem.js";

export class Search {
  /** @type {Protocol.SearchPane | null} */
  #pane = null;

  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.device = null;
    const own = () => (this.own = true);
    this.trials = h("input", { type: "number", min: 1, step: 1, "aria-label": "variants to measure, at most", oninput: own });
    const button = (kind, name, words, run) => h(`button.small${kind}`, { type: "button", "data-go": name, onclick: run }, words);
    this.begin = button(".primary", "search", "Search", () => this.#search(false));
    this.again = button("", "again", "measure again", () => this.#search(true));
    this.stop = button(".cancel", "stop", "Stop", () => app.act("search_stop"));
    this.best = button(".primary", "best", "apply the best", () => this.#take(this.pane.trials[0].number));
    this.status = h("span.soft", { role: "status" });
    this.bar = h("i");
    this.progress = h(
      "div.progress",
      { role: "progressbar", "aria-label": "progress of the search", "aria-valuemin": 0, "aria-valuemax": 100, hidden: true },
      this.bar,
    );
    this.help = h("p.soft.about");
    this.outcome = h("div", { role: "status" });
    this.problem = h("div.sproblem");
    this.list = h("ol.trials", { "aria-label": "variants, the best first", onkeydown: (event) => this.#key(event) });
    this.body = h("div.sbody", null, this.help, this.problem, this.outcome, this.list);
    this.element = h(
      "section.pane.strategies.search",
      { "aria-label": "search" },
      h(
        "div.phead",
        null,
        h("label.soft", null, "at most ", this.trials, " variants "),
        this.begin,
        this.again,
        this.stop,
        this.best,
        this.status,
      ),
      this.progress,
      this.body,
    );
    app.link.on("search", (pane) => this.update(pane));
    app.link.on("run", (pane) => {
      const device = pane.devices.find((one) => one.name === pane.device);
      this.device = device ? { name: device.name, label: device.label } : null;
      this.#say();
    });
  }

  /** What the kernel has told; nothing asks before it has. */
  get pane() {
    return there(this.#pane, "search yet");
  }

  /** Put the focus on what begins or ends a search. */
  focus() {
    [this.stop, this.begin].find((one) => !one.hidden)?.focus();
  }

  /** @param {Protocol.SearchPane} pane */
  update(pane) {
    this.#pane = pane;
    const busy = pane.status === "running";
    const focused = [this.begin, this.again, this.stop, this.best].some((one) => one === document.activeElement);
    if (!this.own) this.trials.value = String(pane.usual);
    attr(this.trials, "max", pane.most);
    this.trials.disabled = busy;
    show(this.begin, !busy && !pane.remembered);
    show(this.again, !busy && pane.remembered);
    show(this.stop, busy);
    const first = pane.trials[0];
    show(this.best, !busy && Boolean(first?.best));
    this.best.disabled = Boolean(first?.here);
    const ends = { failed: "failed", cancelled: "stopped before anything was measured" };
    say(this.status, busy ? `${pane.doing} …` : (ends[pane.status] ?? ""));
    show(this.progress, busy);
    this.progress.classList.toggle("unknown", pane.fraction === null);
    this.bar.style.width = pane.fraction === null ? "" : `${Math.round(100 * pane.fraction)}%`;
    attr(this.progress, "aria-valuenow", pane.fraction === null ? null : Math.round(100 * pane.fraction));
    this.problem.replaceChildren(...(pane.problem ? [problemBox(pane.problem, { brush: this.app.brush })] : []));
    if (pane.html !== this.told) this.outcome.replaceChildren(fragment((this.told = pane.html)));
    this.#say();
    this.#trials(pane);
    const lost = document.activeElement === document.body || document.activeElement?.hidden || document.activeElement?.disabled;
    if (focused && lost) [this.stop, this.best, this.again, this.begin].find((one) => !one.hidden && !one.disabled)?.focus();
  }

  /** What a search is, and where it measures. */
  #say() {
    if (!this.#pane) return;
    const cpu = this.device?.name === "cpu";
    this.help.replaceChildren(
      "Auto decides by models. A search measures what it could have decided otherwise, and your own schedule; ",
      "each variant is checked against the reference first. ",
      ...(this.device ? ["Here: on ", h("b", null, this.device.label)] : []),
      this.device ? (cpu ? ", whose times say nothing about a GPU." : ".") : "",
    );
    show(this.help, this.pane.status !== "done");
  }

  /** @param {Protocol.SearchPane} pane */
  #trials(pane) {
    keyed(
      this.list,
      pane.trials,
      (trial) => trial.number,
      ({ number }) => h("li", null, h("button", { onclick: () => this.#take(number) })),
      (item, trial) => become(/** @type {HTMLElement} */ (item.firstElementChild), trial.html),
    );
    const buttons = this.#buttons();
    const here = (one) => one === document.activeElement || one.getAttribute("aria-current") === "step";
    const stop = Math.max(0, buttons.findIndex(here));
    buttons.forEach((button, index) => (button.tabIndex = index === stop ? 0 : -1));
  }

  #search(again) {
    const trials = this.trials.valueAsNumber;
    return this.app.act("search", { trials: Number.isInteger(trials) ? trials : this.trials.value, again });
  }

  #take(number) {
    const usable = !part(this.list, `[data-trial="${number}"]`).hasAttribute("aria-disabled");
    if (usable && this.pane.status !== "running") this.app.act("search_apply", { trial: number });
  }

  #buttons() {
    return [...this.list.querySelectorAll(".trial")];
  }

  #key(event) {
    if (!event.target.closest(".trial") || event.ctrlKey || event.metaKey || event.altKey) return;
    const hit = rove(event, this.#buttons());
    if (hit) reveal(hit, this.body);
  }
}
