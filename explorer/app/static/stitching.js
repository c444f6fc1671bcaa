/**
 * The editor of schemes: the graph of a program's values, and for each edge a choice of how the value gets from the statement that
 * makes it to the one that uses it.  Every scheme shows what it comes to; one that is not legal cannot be chosen and says why.
 * What is not chosen is left to the model.  Apply takes the steps as one action.
 */

import { attr, debounce, duration, h, keyed, reveal, rove, say, show, there } from "./dom.js";
import { graph } from "./graph.js";
import { problemBox } from "./problem.js";
import { target } from "./target.js";

const sum = (terms) => terms.map(([name, us]) => `${name} ${us.toPrecision(2)}`).join(" + ");

export class Stitching {
  /** @type {Protocol.StitchPane | null} */
  #pane = null;

  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.chosen = new Map(); /* what the reader chose, by edge */
    this.price = null;
    this.active = null;
    const button = (name, words, run) => h("button.small", { type: "button", "data-go": name, onclick: run }, words);
    this.status = h("span.soft", { role: "status" });
    this.stop = h("button.small.cancel", { type: "button", onclick: () => app.act("stitch_stop") }, "Stop");
    this.again = button("again", "try again", () => app.act("stitching"));
    this.bar = h("i");
    this.progress = h("div.progress", { role: "progressbar", "aria-label": "trying the schemes", hidden: true }, this.bar);
    this.picture = h("div.gscroll", { tabindex: 0, role: "region", "aria-label": "the statements and their edges" });
    this.total = h("p.gtotal", { "aria-live": "polite" });
    this.apply = h("button.primary", { type: "button", "data-go": "apply", onclick: () => this.#apply() }, "Apply");
    this.model = button("model", "leave all to the model", () => this.#clear());
    this.rows = h("div.gedges");
    this.detail = h("div.gdetail", { "aria-live": "polite" });
    this.problem = h("div.gproblem");
    this.element = h(
      "div.stitching",
      { role: "region", "aria-label": "stitching" },
      h("div.vhead", null, h("h4", null, "Stitching"), target(app), this.status, this.stop, this.again),
      this.progress,
      this.problem,
      this.picture,
      h("div.gbar", null, this.apply, this.model, this.total),
      this.rows,
      this.detail,
    );
    this.ask = debounce(() => this.#ask(), 60);
    app.link.on("stitching", (pane) => this.update(pane));
    app.link.on("strategy", (pane) => this.#strategy(pane));
  }

  /** What the kernel has told; nothing asks before it has. */
  get pane() {
    return there(this.#pane, "edges yet");
  }

  /** The tab is open: ask for the edges if they are not known. */
  fresh() {
    this.open = true;
    if (this.#pane?.status === "idle") this.app.act("stitching");
  }

  /** @param {Protocol.StitchPane} pane */
  update(pane) {
    const gpu = this.#pane && pane.gpu !== this.#pane.gpu;
    const other = this.#pane && !gpu && (pane.status === "idle" || pane.program !== this.#pane.program);
    this.#pane = pane;
    if (other) {
      this.chosen.clear();
      this.active = null;
    }
    if (other || gpu) {
      this.price = this.refusal = null;
      this.app.link.forget("stitch_price");
      this.#ready();
    }
    if (gpu && this.chosen.size) this.ask(); /* the choices stay; what they come to on the other GPU is asked anew */
    if (!this.chosen.size) this.price = pane.model;
    const busy = pane.status === "running";
    say(this.status, busy ? `${pane.doing} …` : { failed: "", cancelled: "stopped" }[pane.status] ?? "");
    show(this.stop, busy);
    show(this.again, pane.status === "cancelled");
    show(this.progress, busy);
    this.bar.style.width = `${Math.round(100 * (pane.fraction ?? 0))}%`;
    attr(this.progress, "aria-valuenow", pane.fraction === null ? null : Math.round(100 * pane.fraction));
    this.#draw();
    if (pane.status === "idle" && !this.element.closest("[hidden]") && this.open) this.fresh();
  }

  #draw() {
    const pane = this.pane;
    const problem = pane.problem ?? this.refusal;
    this.problem.replaceChildren(...(problem ? [problemBox(problem, { brush: this.app.brush })] : []));
    const some = pane.edges.length > 0;
    this.picture.replaceChildren(...(some ? [graph(pane.edges, this.price, this.active?.edge ?? null, (id) => this.#enter(id))] : []));
    for (const one of [this.apply, this.model, this.total, this.picture]) show(one, some);
    this.model.disabled = !this.chosen.size;
    this.#say();
    keyed(
      this.rows,
      pane.edges.map((edge) => ({ ...edge, fixed: this.chosen.get(edge.id) ?? "", now: this.price?.chosen[edge.id] ?? "" })),
      (edge) => edge.id,
      () => this.#row(),
      (row, edge) => this.#fill(row, edge),
    );
    this.#tell();
  }

  #say() {
    const price = this.price;
    if (!price) return say(this.total, "");
    const kernels = price.groups.map((group, index) => `kernel ${index + 1}: ${group.join(", ")}`).join("; ");
    const launches = `${price.launches} launch${price.launches === 1 ? "" : "es"}`;
    const shown = this.pane.shown_us == null ? "" : `. The schedule that is shown: ${duration(this.pane.shown_us)}`;
    this.total.replaceChildren(
      h("b", null, duration(price.total_us)),
      ` on the ${this.pane.gpu} by the price of its plan (µs: ${sum(price.terms)}); ${launches}, ${price.steps} steps; ${kernels}${shown}`,
    );
  }

  #row() {
    const row = h("div.gedgerow");
    row.exName = h("div.gedgename");
    row.exGroup = h("div.gschemes", { role: "radiogroup", onkeydown: (event) => this.#key(event, row) });
    row.append(row.exName, row.exGroup);
    return row;
  }

  #fill(row, edge) {
    attr(row, "data-edge", edge.id);
    row.exName.replaceChildren(
      h("code", null, edge.array),
      h("span", { "aria-hidden": "true" }, " → "),
      h("code", null, edge.into),
      h("span.chip.c-soft", { title: `${edge.producer} makes it, ${edge.consumer} uses it` }, edge.kind),
    );
    attr(row.exGroup, "aria-label", `${edge.array} to ${edge.into}, ${edge.kind}: scheme`);
    const options = edge.options.length ? edge.options : this.pane.schemes.map(([scheme]) => ({ scheme, pending: true }));
    const best = Math.min(...edge.options.filter((one) => one.applies).map((one) => one.total_us));
    const stop = Math.max(0, options.findIndex((one) => one.scheme === edge.now));
    keyed(
      row.exGroup,
      options.map((option, index) => ({ ...option, index, stop, best, on: option.scheme === edge.now, fixed: option.scheme === edge.fixed })),
      (option) => option.scheme,
      (option) =>
        h("button.gscheme", {
          type: "button",
          role: "radio",
          "data-rove": "",
          "data-scheme": option.scheme,
          onclick: (event) => this.#choose(edge.id, event.currentTarget.exItem),
          onfocus: (event) => this.#touch(edge.id, event.currentTarget.exItem),
          onpointerenter: (event) => event.pointerType === "mouse" && this.#touch(edge.id, event.currentTarget.exItem),
        }),
      (button, option) => this.#option(button, option),
    );
  }

  #option(button, option) {
    const meaning = this.pane.schemes.find(([name]) => name === option.scheme)?.[1] ?? "";
    button.className = `gscheme${option.on ? " on" : ""}${option.fixed ? " fixed" : ""}`;
    attr(button, "aria-checked", String(option.on));
    attr(button, "aria-disabled", option.applies ? null : "true");
    if (document.activeElement !== button) button.tabIndex = option.index === option.stop ? 0 : -1;
    const price = option.pending ? "…" : option.applies ? duration(option.total_us) : "✗";
    button.replaceChildren(
      h("span.gsname", null, option.on ? h("span", { "aria-hidden": "true" }, option.fixed ? "● " : "○ ") : "", option.scheme),
      h(`span.gsprice${option.applies ? (option.total_us <= option.best ? ".good" : "") : ".bad"}`, { "aria-hidden": "true" }, price),
    );
    const state = option.fixed ? ", chosen by you" : option.on ? ", the model's choice" : "";
    const cost = option.pending ? "being tried" : option.applies ? `${duration(option.total_us)}; ${option.words}` : `not legal: ${option.words}`;
    attr(button, "aria-label", `${option.scheme}${state}: ${meaning}. ${cost}`);
  }

  /** What the option under the focus or the mouse comes to, or why it is not legal. */
  #tell() {
    const edge = this.pane.edges.find((one) => one.id === this.active?.edge);
    const option = edge?.options.find((one) => one.scheme === this.active?.scheme);
    if (!edge || !option) {
      this.detail.replaceChildren(
        this.pane.edges.length ? h("p.soft", null, "○ is the model's choice, ● yours; choosing ● again leaves it to the model. Times are of the whole program, the other edges as is then best.") : "",
      );
      return;
    }
    const meaning = this.pane.schemes.find(([name]) => name === option.scheme)?.[1] ?? "";
    const title = h("p.what", null, h("code", null, edge.id), ` ${option.scheme}: ${meaning}`);
    if (option.problem) {
      this.detail.replaceChildren(title, problemBox(option.problem, { brush: this.app.brush }));
      return;
    }
    this.detail.replaceChildren(title, h("p", null, option.words), h("p.soft", null, `${duration(option.total_us)} in all; µs: ${sum(option.terms)}`));
  }

  #touch(edge, option) {
    if (this.active?.edge === edge && this.active?.scheme === option.scheme) return;
    this.active = { edge, scheme: option.scheme };
    for (const line of this.picture.querySelectorAll(".gedge")) line.classList.toggle("on", line.dataset.edge === edge);
    this.#tell();
  }

  /** Go to an edge's choice. */
  #enter(id) {
    const row = [...this.rows.children].find((one) => one.dataset.edge === id);
    reveal(row, this.element);
    row?.querySelector('[tabindex="0"]')?.focus();
  }

  #choose(edge, option) {
    if (!option.applies) return;
    if (this.chosen.get(edge) === option.scheme) this.chosen.delete(edge);
    else this.chosen.set(edge, option.scheme);
    this.refusal = null;
    this.#draw();
    this.ask();
  }

  #clear() {
    this.chosen.clear();
    this.refusal = null;
    this.#ready();
    this.price = this.pane.model;
    this.app.link.forget("stitch_price");
    this.#draw();
    this.apply.focus();
  }

  /** What the choices come to together; those that do not go together say why. */
  async #ask() {
    if (!this.chosen.size) return this.#clear();
    const answer = await this.app.link.ask("stitch_price", { choices: Object.fromEntries(this.chosen) });
    if (!answer || !this.chosen.size) return;
    this.refusal = answer.problem ?? null;
    if (answer.data) this.price = answer.data;
    this.#draw();
    this.#ready();
  }

  #apply() {
    if (this.apply.getAttribute("aria-disabled")) return null;
    return this.app.act("stitch_apply", { choices: Object.fromEntries(this.chosen) });
  }

  /** The steps are being made, or stand in the schedule. */
  #strategy(pane) {
    this.making = pane.name === "stitch" && pane.status === "running";
    say(this.apply, this.making ? "applying …" : "Apply");
    this.#ready();
  }

  /** Apply keeps the focus while it cannot be used. */
  #ready() {
    attr(this.apply, "aria-disabled", this.refusal || this.making ? "true" : null);
  }

  #key(event, row) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const buttons = [...row.exGroup.children];
    if (rove(event, buttons, { next: "ArrowRight", previous: "ArrowLeft" })) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const rows = [...this.rows.children];
    const other = step && rows[rows.indexOf(row) + step];
    if (!other) return;
    event.preventDefault();
    const place = buttons.indexOf(event.target.closest("[data-rove]"));
    for (const one of other.exGroup.children) one.tabIndex = -1;
    const target = other.exGroup.children[place];
    target.tabIndex = 0;
    target.focus();
    reveal(other, this.element);
  }
}
