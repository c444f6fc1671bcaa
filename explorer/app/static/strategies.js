/**
 * The strategies: each one's steps as a list, with what a step does, what it changes here, and an estimate; step forward and
 * back through them, or take them all.  Where the schedule stands is marked; the loops and the CUDA text show that state.
 */

import { attr, duration, h, keyed, part, reveal, rove, say, show, there } from "./dom.js";
import { problemBox } from "./problem.js";
import { target } from "./target.js";

export class Strategies {
  /** @type {Protocol.StrategyPane | null} */
  #pane = null;

  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.kinds = h("div.kinds", { role: "group", "aria-label": "strategies" });
    this.help = h("p.soft.shelp");
    this.status = h("span.soft", { role: "status" });
    this.bar = h("i");
    this.progress = h("div.progress", { role: "progressbar", "aria-label": "making the steps", hidden: true }, this.bar);
    const button = (name, words, run) => h("button.small", { type: "button", "data-go": name, "aria-label": words, title: words, onclick: run });
    this.back = button("back", "one step back", () => this.#go((this.pane.at ?? 0) - 1));
    this.next = button("next", "one step forward", () => this.#go((this.pane.at ?? -1) + 1));
    this.all = h("button.small.primary", { type: "button", "data-go": "all", onclick: () => this.#go(this.pane.steps.length, true) }, "apply all");
    this.stop = h("button.small.cancel", { type: "button", "data-go": "stop", onclick: () => app.act("strategy_stop") }, "Stop");
    this.back.append("◂ back");
    this.next.append("forward ▸");
    this.where = h("span.soft.swhere", { role: "status" });
    this.walk = h("div.swalk", null, this.back, this.next, this.all, this.stop, this.where);
    this.problem = h("div.sproblem");
    this.list = h("ol.steps", { "aria-label": "steps", onkeydown: (event) => this.#key(event) });
    this.body = h("div.sbody", null, this.help, this.problem, this.list);
    this.element = h(
      "section.pane.strategies",
      { "aria-label": "strategies" },
      h("div.phead", null, this.kinds, target(app), this.status),
      this.progress,
      this.walk,
      this.body,
    );
    app.link.on("strategy", (pane) => this.update(pane));
  }

  /** What the kernel has told; nothing asks before it has. */
  get pane() {
    return there(this.#pane, "steps yet");
  }

  /** Ask for a strategy's steps. */
  choose(name) {
    this.asked = true;
    this.app.act("strategy", { name });
  }

  /** Put the focus on the chosen strategy, or on the first. */
  focus() {
    (this.kinds.querySelector('[aria-pressed="true"]') ?? this.kinds.firstElementChild)?.focus();
  }

  /** @param {Protocol.StrategyPane} pane */
  update(pane) {
    const before = this.#pane;
    this.#pane = pane;
    const busy = pane.status === "running";
    const focused = this.walk.contains(document.activeElement) ? document.activeElement : null;
    keyed(
      this.kinds,
      pane.kinds.map((kind) => ({ ...kind, on: kind.name === pane.name })),
      (kind) => kind.name,
      (kind) => h("button.small.kind", { type: "button", "data-strategy": kind.name, onclick: () => this.choose(kind.name) }),
      (button, kind) => {
        say(button, kind.title);
        attr(button, "aria-pressed", String(kind.on));
        attr(button, "title", kind.help);
      },
    );
    say(this.status, busy ? `${pane.doing} …` : { failed: "failed", cancelled: "stopped" }[pane.status] ?? "");
    show(this.progress, busy);
    this.progress.classList.toggle("unknown", pane.fraction === null);
    this.bar.style.width = pane.fraction === null ? "" : `${Math.round(100 * pane.fraction)}%`;
    attr(this.progress, "aria-valuenow", pane.fraction === null ? null : Math.round(100 * pane.fraction));
    this.#head(pane);
    this.problem.replaceChildren(...(pane.problem ? [problemBox(pane.problem, { brush: this.app.brush })] : []));
    this.#steps(pane);
    const count = pane.steps.length;
    const at = pane.at;
    show(this.walk, busy || count > 0);
    for (const one of [this.back, this.next, this.all, this.where]) show(one, count > 0);
    show(this.stop, busy);
    this.back.disabled = at === null || at < 1;
    this.next.disabled = at !== null && at >= count;
    this.all.disabled = at === count;
    say(this.where, at === null ? "the schedule shown is another one" : `step ${at} of ${count}`);
    if (focused?.disabled || focused?.hidden) [this.next, this.back, this.all].find((one) => !one.disabled && !one.hidden)?.focus();
    if (!before || before.at !== at || before.steps.length !== count) this.#follow();
  }

  /** What the strategy says of itself. @param {Protocol.StrategyPane} pane */
  #head(pane) {
    const kind = pane.kinds.find((one) => one.name === pane.name);
    const terms = pane.terms.map(([name, us]) => `${name} ${us.toPrecision(2)}`).join(" + ");
    this.help.replaceChildren(
      ...(kind
        ? [
            kind.help,
            pane.summary ? `. Here: ${pane.summary}` : "",
            pane.total_us ? h("b", null, `; about ${duration(pane.total_us)} on the ${pane.gpu}`) : "",
            terms ? ` (µs: ${terms})` : "",
          ]
        : ["A strategy is a sequence of moves chosen by rules. Choose one: its steps appear here, to be taken one by one or all."]),
    );
  }

  /** @param {Protocol.StrategyPane} pane */
  #steps(pane) {
    keyed(
      this.list,
      pane.steps.map((step, index) => ({
        ...step,
        number: index + 1,
        before: index ? pane.steps[index - 1].estimate_us : pane.start_us,
        state: pane.at === null ? "" : index + 1 === pane.at ? "here" : index < pane.at ? "done" : "",
      })),
      (step) => step.number,
      () => h("li", null, h("button.sstep", { type: "button", "data-rove": "", onclick: (event) => this.#go(event.currentTarget.exNumber) })),
      (item, step) => this.#fill(part(item, ".sstep"), step),
    );
    attr(this.list, "title", pane.steps.length ? `estimate for the ${pane.gpu} by one rule: ${pane.rule}` : null);
    const buttons = this.#buttons();
    const stop = Math.max(0, (pane.at ?? 1) - 1);
    buttons.forEach((button, index) => (button.tabIndex = index === stop ? 0 : -1));
  }

  /** @param {Element} button @param {Protocol.StrategyStep & Record<string, any>} step */
  #fill(button, step) {
    button.exNumber = step.number;
    button.className = `sstep ${step.state}`;
    const faster = step.estimate_us !== null && step.before !== null && step.estimate_us < 0.995 * step.before;
    const estimate = step.estimate_us === null ? `${step.open} open` : duration(step.estimate_us);
    button.replaceChildren(
      h("span.sign", { "aria-hidden": "true" }, { done: "✓", here: "▸" }[step.state] ?? "·"),
      h("code", null, step.call),
      h(`span.sest${faster ? ".good" : ".soft"}`, null, faster ? "▾ " : "", estimate),
      h("span.sdoes.soft", null, step.effects.length ? step.effects.join(" · ") : step.words),
    );
    const state = { done: "taken", here: "here", "": "not taken" }[step.state];
    const time = step.estimate_us === null ? `${step.open} reductions open` : `estimate ${duration(step.estimate_us)}`;
    attr(button, "aria-label", `step ${step.number}, ${state}: ${step.call}. ${step.words}. ${step.effects.join("; ")} ${time}`);
    attr(button, "title", step.words);
    attr(button, "aria-current", step.state === "here" ? "step" : null);
  }

  #buttons() {
    return [...this.list.querySelectorAll(".sstep")];
  }

  #follow() {
    reveal(this.list.querySelector('[aria-current="step"]'), this.body);
  }

  #go(to, whole = false) {
    return this.app.act("strategy_step", whole ? { to, whole } : { to });
  }

  #key(event) {
    if (!event.target.closest(".sstep") || event.ctrlKey || event.metaKey || event.altKey) return;
    const hit = rove(event, this.#buttons());
    if (hit) reveal(hit, this.body);
  }
}
