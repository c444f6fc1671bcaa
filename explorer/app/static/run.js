/** Run: where, how large, progress and Cancel; then the verdict, the first wrong cell, the times and what they compare with. */

import { attr, duration, h, keyed, say, show } from "./dom.js";
import { dots } from "./dots.js";
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
          h("input", { type: "number", min: 1, step: 1, "data-size": name, oninput: () => show(this.resize, true) }),
        ),
      (label, [, value]) => {
        label.querySelector("input").value = String(value);
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
    if (pane.wrong)
      parts.push(
        facts(
          Object.entries(pane.wrong).map(([name, value]) => [name.replaceAll("_", " "), text(value)]),
          "wrong",
        ),
      );
    if (pane.timings?.length || pane.facts?.length) {
      parts.push(
        h(
          "div.rfacts",
          null,
          ...(pane.on_cpu ? cpuTimes(pane) : pane.timings.map((line) => h("p.timing", null, line))),
          pane.facts.length ? facts(pane.facts, "facts") : null,
        ),
      );
    }
    const samples = pane.samples ?? {};
    if (Object.values(samples).some((values) => values.length)) parts.push(h("div.rdots", null, dots(samples)));
    if (pane.against?.length) parts.push(against(pane.against, pane));
    this.body.replaceChildren(...parts);
  }
}

const text = (value) => (value !== null && typeof value === "object" ? JSON.stringify(value) : String(value));

/** @param {[string, string][]} rows @param {string} kind */
const facts = (rows, kind) =>
  h(
    `dl.facts.${kind}`,
    null,
    ...rows.map(([name, value]) => h("div", null, h("dt", null, name), h(value.length > 48 ? "dd.long" : "dd", null, value))),
  );

/** A time of the CPU device stands behind the priced time on the GPU, and is no verdict. @param {Protocol.RunPane} pane */
function cpuTimes({ timings, priced_us: priced, gpu }) {
  const about = priced === null ? [] : [h("p.timing", null, `about ${duration(priced)} on the ${gpu}, by the model`)];
  const words = "of blocks and threads run one after the other: it says nothing about a GPU";
  return [...about, ...timings.map((line) => h("p.soft", null, `on the CPU ${line}: the time ${words}`))];
}

/** What the times on the CPU compare with: priced on the GPU as far as they are schedules, and no verdict. @param {Protocol.Against[]} rows @param {string} gpu */
function beside(rows, gpu) {
  const head = (words, kind = "th.n") => h(kind, { scope: "col" }, words);
  return h(
    "table.against",
    null,
    h("thead", null, h("tr", null, head("beside", "th"), head(`on the ${gpu}, by the model`), head("on the CPU"))),
    h(
      "tbody",
      null,
      ...rows.map((row) =>
        h(
          "tr",
          null,
          h("th", { scope: "row" }, row.name),
          h("td.n", null, row.priced_us === null ? "—" : `about ${duration(row.priced_us)}`),
          h("td.n.soft", null, duration(row.time_us)),
        ),
      ),
    ),
  );
}

/** @param {Protocol.Against[]} rows @param {Protocol.RunPane} pane */
function against(rows, { on_cpu: cpu, gpu }) {
  if (cpu) return beside(rows, gpu);
  return h(
    "table.against",
    null,
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        h("th", { scope: "col" }, "against"),
        h("th.n", { scope: "col" }, "time"),
        h("th.n", { scope: "col" }, "ratio"),
        h("th", { scope: "col" }, ""),
      ),
    ),
    h(
      "tbody",
      null,
      ...rows.map((row) =>
        h(
          "tr",
          null,
          h("th", { scope: "row" }, row.name),
          h("td.n", null, duration(row.time_us)),
          h("td.n", null, `${row.ratio.toFixed(2)} ×`),
          h("td", null, row.verdict),
        ),
      ),
    ),
  );
}
