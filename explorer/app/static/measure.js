/** Measure: an instrumented copy of the kernels is run, and its stamps stand over the predicted roles; without a GPU, why not. */

import { attr, h, say, show } from "./dom.js";
import { problemBox } from "./problem.js";

export class Measure {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    const button = (device, words) =>
      h("button.small", { type: "button", "data-measure": device, onclick: () => app.act("measure", { device }) }, words);
    this.begin = button("cuda", "Measure");
    this.order = button("cpu", "order on the CPU");
    this.status = h("span.soft", { role: "status" });
    this.problem = h("div");
    this.element = h("div.measure", null, h("div.options", null, this.begin, this.order, this.status), this.problem);
    app.link.on("run", (pane) => this.#devices(pane.devices));
    app.link.on("measure", (pane) => this.#update(pane));
  }

  /** @param {Protocol.DeviceChoice[]} devices */
  #devices(devices) {
    this.gpu = devices.find((one) => one.name === "cuda") ?? null;
    this.cpu = devices.find((one) => one.name === "cpu") ?? null;
    this.#say();
  }

  /** @param {Protocol.MeasurePane} pane */
  #update(pane) {
    this.pane = pane;
    this.problem.replaceChildren(...(pane.problem ? [problemBox(pane.problem, { brush: this.app.brush })] : []));
    this.#say();
  }

  #say() {
    const running = this.pane?.status === "running";
    this.begin.disabled = running || !this.gpu?.available;
    this.order.disabled = running || !this.cpu?.available;
    attr(this.begin, "title", this.gpu?.available ? `stamps in a copy of the kernel, on ${this.gpu.label}` : (this.gpu?.why ?? null));
    attr(this.order, "title", "the CPU device runs the same text, and says in which order things happen");
    const why = this.gpu && !this.gpu.available ? `Not measured: ${this.gpu.why}` : "";
    const on = this.pane?.device;
    const shown = on === "cpu" ? `shown: the order on the CPU device. ${why}` : on ? `measured on ${on}` : why;
    say(this.status, running ? this.pane?.doing : shown);
    show(this.status, Boolean(this.status.textContent));
  }
}
