/** Run: where, how large, progress and Cancel; then the verdict, the first wrong cell, the times and what they compare with. */

import { attr, h, keyed, say, show, there } from "./dom.js";
import { dots } from "./dots.js";
import { fragment } from "./markup.js";
import { problemBox } from "./problem.js";

export class Run {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.device = h("select", { "aria-label": "device", onchange: () => app.act("device", { device: this.device.value }) });
    this.why = h("span.soft.why");
    this.sizes = h("form.sizes", { "aria-label": "sizes", onsubmit: (event) => this.#resize(event) });
    this.resize = h("button.small", { type: "submit", hidden: true }, "use these sizes");
    this.start = h(
      "button.primary.runbutton",
      { type: "button", onclick: () => this.run(true) },
      h("span", { "aria-hidden": "true" }, "▸ "),
      "Run and time",
    );
    this.checkOnly = h("button", { type: "button", onclick: () => this.run(false) }, "Check only");
    this.cancel = h("button.cancel", { type: "button", hidden: true, onclick: () => this.stop() }, "Cancel");
    this.bar = h(
      "div.progress",
      { role: "progressbar", "aria-label": "progress of the run", "aria-valuemin": 0, "aria-valuemax": 100, hidden: true },
      (this.done = h("i")),
    );
    this.doing = h("span.soft.doing", { "aria-live": "polite" });
    this.verdict = h("div.verdict", { role: "status" });
    this.body = h("div.rbody");
    this.element = h(
      "section.pane.run",
      { "aria-label": "run" },
      h(
        "div.phead",
        null,
        h("h3", null, "Run"),
        h("label", null, "on ", this.device),
        this.sizes,
        this.start,
        this.checkOnly,
        this.cancel,
        this.doing,
        this.why,
      ),
      this.bar,
      this.verdict,
      this.body,
    );
    app.link.on("run", (pane) => this.update(pane));
  }

  /** Run on the chosen device; `time` also measures. */
  run(time) {
    this.app.act("run", { time });
  }

  stop() {
    this.app.act("cancel");
  }

  /** @param {Protocol.RunPane} pane */
  update(pane) {
    const running = pane.status === "running";
    attr(this.element, "data-status", pane.status);
    keyed(
      this.device,
      pane.devices,
      (device) => device.name,
      () => h("option"),
      (option, device) => {
        option.value = device.name;
        option.textContent = device.available ? device.label : `${device.label} (not here)`;
        option.disabled = !device.available;
      },
    );
    this.device.value = pane.device;
    const missing = pane.devices.filter((device) => !device.available && device.why);
    say(this.why, missing.map((device) => `${device.label}: ${device.why}`).join(" "));
    this.#sizes(pane.sizes);
    const focused = [this.start, this.checkOnly, this.cancel].some((one) => one === document.activeElement);
    this.start.disabled = this.checkOnly.disabled = running;
    show(this.cancel, running);
    if (focused && running) this.cancel.focus();
    else if (focused) this.start.focus();
    say(this.doing, running ? pane.doing : "");
    this.app.progress(running);
    show(this.bar, running);
    attr(this.bar, "aria-valuenow", pane.fraction === null ? null : Math.round(100 * pane.fraction));
    this.bar.classList.toggle("unknown", pane.fraction === null);
    this.done.style.width = pane.fraction === null ? "" : `${100 * pane.fraction}%`;
    this.#result(pane, running);
  }

  #sizes(sizes) {
    keyed(
      this.sizes,
      Object.entries(sizes),
      ([name]) => name,
      ([name]) =>
        h(
          "label",
          null,
          h("span", null, `${name} `),
          h("input", { type: "number", min: 1, step: 1, required: true, "data-size": name, oninput: () => show(this.resize, true) }),
        ),
      (label, [, value]) => {
        there(label.querySelector("input"), "field of the size").value = String(value);
      },
    );
    if (this.resize.parentNode !== this.sizes || this.sizes.lastChild !== this.resize) this.sizes.append(this.resize);
  }

  async #resize(event) {
    event.preventDefault();
    const sizes = Object.fromEntries(
      [...this.sizes.querySelectorAll("input")].map((input) => [input.dataset.size, Number(input.value)]),
    );
    const outcome = await this.app.act("sizes", { sizes });
    if (!outcome?.problem) {
      const focused = document.activeElement === this.resize;
      show(this.resize, false);
      if (focused) this.sizes.querySelector("input")?.focus();
    }
  }

  /** @param {Protocol.RunPane} pane @param {boolean} running */
  #result(pane, running) {
    const { doing, fraction, devices, device, sizes, status, ...result } = pane;
    const sign = JSON.stringify([result, status === "failed", status === "cancelled", status === "idle"]);
    this.element.classList.toggle("waiting", running);
    if (running || sign === this.sign) return;
    this.sign = sign;
    const mark = pane.correct === null ? ["·", "soft"] : pane.correct ? ["✓", "good"] : ["✗", "bad"];
    const words =
      pane.verdict ||
      (status === "cancelled"
        ? "cancelled"
        : status === "failed"
          ? "the run failed"
          : "Not run yet. A run checks every cell against an independent reference, then measures.");
    this.verdict.replaceChildren(
      h(`span.${mark[1]}`, { "aria-hidden": "true" }, `${mark[0]} `),
      h(pane.correct === null ? "span.soft" : "b", null, words),
    );
    const parts = [];
    if (pane.problem && this.app.isOwed(pane.problem))
      parts.push(h("p.owing", null, "It cannot run yet: the reduction above is still open."));
    else if (pane.problem) parts.push(problemBox(pane.problem, { brush: this.app.brush, apply: (call) => this.app.apply(call) }));
    const shown = fragment(pane.html);
    const last = shown.querySelector(".against");
    parts.push(shown);
    const samples = pane.samples ?? {};
    if (Object.values(samples).some((values) => values.length)) parts.push(h("div.rdots", null, dots(samples)));
    if (last) parts.push(last);
    this.body.replaceChildren(...parts);
  }
}
