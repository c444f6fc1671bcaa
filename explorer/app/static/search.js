/**
 * A measured search: what Auto could have decided otherwise, each variant with its time as it is measured; stopped with the best
 * so far.  A click on a variant takes its steps as one action.
 */

import { attr, duration, h, keyed, reveal, rove, say, show } from "./dom.js";
import { problemBox } from "./problem.js";

export class Search {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.pane = null;
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
    this.verdict = h("p.sverdict", { role: "status" });
    this.facts = h("p.soft.found");
    this.problem = h("div.sproblem");
    this.list = h("ol.trials", { "aria-label": "variants, the best first", onkeydown: (event) => this.#key(event) });
    this.body = h("div.sbody", null, this.help, this.problem, this.verdict, this.facts, this.list);
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

  /** Put the focus on what begins or ends a search. */
  focus() {
    [this.stop, this.begin].find((one) => !one.hidden)?.focus();
  }

  /** @param {Protocol.SearchPane} pane */
  update(pane) {
    this.pane = pane;
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
    this.#say();
    this.#trials(pane);
    const lost = document.activeElement === document.body || document.activeElement?.hidden || document.activeElement?.disabled;
    if (focused && lost) [this.stop, this.best, this.again, this.begin].find((one) => !one.hidden && !one.disabled)?.focus();
  }

  /** What a search is, where it measures, and what it came to. */
  #say() {
    if (!this.pane) return;
    const { status, verdict, gain, ended, remembered, clock, measured_on, floor_us, notes, trials } = this.pane;
    const cpu = this.device?.name === "cpu";
    this.help.replaceChildren(
      "Auto decides by models. A search measures what it could have decided otherwise, and your own schedule; ",
      "each variant is checked against the reference first. ",
      ...(this.device ? ["Here: on ", h("b", null, this.device.label)] : []),
      this.device ? (cpu ? ", whose times say nothing about a GPU." : ".") : "",
    );
    show(this.help, status !== "done");
    const count = trials.length;
    const failed = trials.filter((one) => one.problem).length;
    const sign = h(gain ? "span.good" : "span.soft", { "aria-hidden": "true" }, gain ? "✓ " : "· ");
    this.verdict.replaceChildren(...(verdict ? [sign, h("b", null, verdict)] : []));
    const said = [
      `${count} variants${failed ? `, ${failed} of them failed` : ""}; ${ended}`,
      ...(remembered ? ["remembered from an earlier search"] : []),
      `${measured_on}: ${clock}`,
      ...(floor_us ? [`the floor is ${duration(floor_us)}`] : []),
      ...notes,
    ];
    say(this.facts, verdict ? said.join(" · ") : "");
    show(this.verdict, Boolean(verdict));
    show(this.facts, Boolean(verdict));
  }

  /** @param {Protocol.SearchPane} pane */
  #trials(pane) {
    const longest = Math.max(...pane.trials.map((one) => one.time_us ?? 0));
    keyed(
      this.list,
      pane.trials.map((trial) => ({ ...trial, share: trial.time_us === null ? null : trial.time_us / longest })),
      (trial) => trial.number,
      ({ number }) => {
        const take = () => this.#take(number);
        return h("li", null, h("button.sstep.trial", { type: "button", "data-rove": "", "data-trial": number, onclick: take }));
      },
      (item, trial) => this.#fill(item.firstElementChild, trial),
    );
    const buttons = this.#buttons();
    const here = (one) => one === document.activeElement || one.getAttribute("aria-current") === "step";
    const stop = Math.max(0, buttons.findIndex(here));
    buttons.forEach((button, index) => (button.tabIndex = index === stop ? 0 : -1));
  }

  /** @param {Element} button @param {Protocol.SearchTrial & { share: number | null }} trial */
  #fill(button, trial) {
    const measured = trial.time_us !== null;
    const half = measured ? (trial.high_us - trial.low_us) / 2 : 0;
    const time = measured ? `${duration(trial.time_us)} ± ${duration(half)}${this.pane.gpu ? " on the CPU" : ""}` : "";
    const words = trial.problem
      ? trial.problem
      : trial.twin
        ? `the same kernels as ${trial.twin}`
        : [
            trial.start ? "what Auto makes" : "",
            trial.estimate_us === null ? "" : this.#estimated(trial.estimate_us),
            trial.rounds > 1 ? `timed in ${trial.rounds} rounds` : "",
          ]
            .filter(Boolean)
            .join(" · ");
    const sign = trial.problem ? "✗" : trial.best ? "★" : trial.here ? "▸" : "·";
    const usable = measured || trial.steps > 0;
    button.className = `sstep trial${trial.here ? " here" : ""}${measured ? " done" : ""}`;
    button.replaceChildren(
      h(`span.sign${trial.problem ? ".bad" : ""}`, { "aria-hidden": "true" }, sign),
      h("span.tlabel", null, trial.label),
      h(`span.sest${trial.best ? ".good" : ".soft"}`, null, time),
      h("span.tbar", { "aria-hidden": "true" }, h("i", { style: `width:${(100 * (trial.share ?? 0)).toFixed(1)}%` })),
      h("span.sdoes.soft", null, words),
    );
    const state = [trial.best ? "the best" : "", trial.here ? "shown now" : ""].filter(Boolean).join(", ");
    attr(button, "aria-label", `${[trial.label, time, words, state].filter(Boolean).join(". ")}`);
    attr(button, "aria-disabled", usable ? null : "true");
    attr(button, "aria-current", trial.here ? "step" : null);
    attr(button, "title", usable ? `take its ${trial.steps} steps as one action` : trial.problem);
  }

  /** The price of a variant's plan; of which GPU, where its time is of the CPU. */
  #estimated(us) {
    return this.pane.gpu ? `about ${duration(us)} on the ${this.pane.gpu}, by the model` : `estimated ${duration(us)}`;
  }

  #search(again) {
    const trials = this.trials.valueAsNumber;
    return this.app.act("search", { trials: Number.isInteger(trials) ? trials : this.trials.value, again });
  }

  #take(number) {
    const trial = this.pane.trials.find((one) => one.number === number);
    const usable = trial && (trial.time_us !== null || trial.steps > 0);
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
