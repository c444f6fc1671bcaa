/**
 * Whether there is a kernel behind the explorer.  When it has gone, the explorer says so, takes no clicks, and offers to come
 * back: a JupyterLab widget manager gives us the kernel and the notebook, so the script that made the schedule is run there and
 * the new widget takes the old one's place; elsewhere the script can be copied into a new cell.
 */

import { copy, debounce, h, said, say, show } from "./dom.js";

const VIEW = "application/vnd.jupyter.widget-view+json";
const SILENT_MS = 8000; /* after which a request that is not answered is worth a word */
const GONE = {
  restarting: "The kernel was restarted.",
  autorestarting: "The kernel has died and was restarted.",
  terminating: "The kernel was shut down.",
  dead: "The kernel has died.",
  changed: "The notebook has another kernel now.",
};

export class Lifeline {
  /** @param {App} app @param {any} model */
  constructor(app, model) {
    this.app = app;
    this.model = model;
    this.undo = [];
    this.words = h("p");
    this.more = h("p.soft");
    this.again = h("button.primary", { type: "button", "data-go": "revive", onclick: () => this.revive() }, "Bring it back");
    this.copied = h("button", { type: "button", "data-go": "copy-script", onclick: () => this.#copy() }, "copy its script");
    this.element = h("div.lost", { role: "alert", hidden: true }, h("div", null, this.words, this.more), this.again, this.copied);
    this.waiting = h("div.silent", { role: "status", hidden: true });
    this.silent = debounce(() => this.#unanswered(), SILENT_MS);
    this.#watch();
  }

  get #manager() {
    return this.model.widget_manager;
  }

  /** The kernel, where the host lets us have it. */
  get #kernel() {
    const kernel = this.#manager?.kernel;
    return kernel?.requestExecute ? kernel : null;
  }

  #watch() {
    const { model, app } = this;
    const gone = () => this.lose("restarting");
    model.on("comm_live_update", gone);
    this.undo.push(() => model.off("comm_live_update", gone));
    this.#connect(this.#kernel?.statusChanged, (_, status) => status in GONE && this.lose(status));
    this.#connect(this.#manager?.context?.sessionContext?.kernelChanged, (_, change) =>
      this.lose(change?.newValue === null ? "terminating" : "changed"),
    );
    app.link.on("lost", () => this.lose("dead"));
    app.link.on("busy", (busy) => {
      if (busy) this.silent();
      else this.#answered();
    });
    app.link.on("still", (data) => this.#renew(data));
    app.link.on("resume", (pane) => (this.pane = pane));
  }

  #connect(signal, run) {
    if (!signal?.connect) return;
    signal.connect(run);
    this.undo.push(() => signal.disconnect(run));
  }

  close() {
    this.silent.cancel();
    for (const run of this.undo) run();
  }

  /** Nothing answers any more: say so, and take no clicks. */
  lose(how) {
    if (this.lost) return;
    this.lost = how;
    const { app } = this;
    app.link.drop();
    this.#answered();
    const steps = this.pane?.steps ?? 0;
    const kept = steps === 1 ? "its step" : `its ${steps} steps`;
    say(this.words, `${GONE[how]} What stands here is the last state; nothing answers.`);
    say(
      this.more,
      !this.pane?.text
        ? "Run the notebook's cells again: the text of the program is not known here."
        : this.#kernel && how !== "terminating"
          ? `The program${steps ? ` and ${kept}` : ""} can be made again here. Other branches of the history, measured times ` +
              "and the notebook's own variables are gone."
          : `Copied into a new cell and run, its script opens this schedule again${steps ? `, with ${kept}` : ""}.`,
    );
    show(this.again, Boolean(this.pane?.text && this.#kernel) && how !== "terminating");
    show(this.copied, Boolean(this.pane?.text));
    show(this.element, true);
    app.root.classList.add("gone");
    for (const child of app.root.children) if (child !== this.element && child !== app.toast) child.inert = true;
  }

  /** Make the schedule again in the kernel there is now, and put its widget in our place. */
  async revive() {
    this.again.disabled = true;
    say(this.again, "bringing it back …");
    try {
      const data = await this.#opened();
      const found = this.#output();
      if (found) this.#replace(found, data);
      else await this.#beside(data);
    } catch (error) {
      this.again.disabled = false;
      say(this.again, "Bring it back");
      say(this.more, `That has failed: ${said(error)}. Its script can be copied into a new cell.`);
    }
  }

  async #opened() {
    const { text, target, actions } = this.pane;
    const values = [text, this.app.brush.node ?? "", target, actions].map((value) => JSON.stringify(value)).join(", ");
    const code = `__import__("explorer.app.resume", fromlist=["opened"]).opened(${values})`;
    const request = { code: "", silent: true, store_history: false, user_expressions: { opened: code } };
    const reply = (await this.#kernel.requestExecute(request).done).content;
    const found = reply.user_expressions?.opened;
    if (found?.status !== "ok") throw new Error(`${found?.ename ?? reply.ename}: ${found?.evalue ?? reply.evalue}`);
    const bytes = Uint8Array.from(atob(found.data["text/plain"].slice(1, -1)), (one) => one.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes));
  }

  /** The notebook's output that holds us: its list, and the place in it. */
  #output() {
    const cells = this.#manager?.context?.model?.cells;
    for (let at = 0; at < (cells?.length ?? 0); at += 1) {
      const outputs = cells.get(at).outputs;
      for (let index = 0; index < (outputs?.length ?? 0); index += 1)
        if (outputs.get(index).data?.[VIEW]?.model_id === this.pane?.widget) return { outputs, index };
    }
    return null;
  }

  #replace({ outputs, index }, data) {
    if (this.app.filling.on) this.app.fill();
    const old = outputs.get(index).toJSON();
    outputs.set(index, { ...old, data: data.view });
    this.pane = { ...this.pane, widget: data.widget };
    this.#renew(data.still);
  }

  /** Where the notebook's outputs cannot be had: draw the new view where the old one stood. */
  async #beside(data) {
    if (this.app.filling.on) this.app.fill();
    const manager = this.#manager;
    const view = await manager.create_view(await manager.get_model(data.widget), {});
    this.app.root.replaceWith(view.el);
    view.trigger("displayed");
  }

  /** Another static picture in the output before ours. */
  #renew(data) {
    const found = this.#output();
    const before = found?.index ? found.outputs.get(found.index - 1) : null;
    if (found && String(before?.data?.["text/html"] ?? "").includes("ex-static"))
      found.outputs.set(found.index - 1, { ...before.toJSON(), data });
  }

  #unanswered() {
    if (this.lost) return;
    const busy = this.#kernel?.status === "busy" ? "The kernel is busy" : "The kernel has not answered yet: it may be busy";
    say(this.waiting, `${busy} with another cell. What you do here waits for it.`);
    show(this.waiting, true);
  }

  #answered() {
    this.silent.cancel();
    show(this.waiting, false);
  }

  async #copy() {
    const worked = await copy(this.pane.text);
    this.app.tell(worked ? "script copied: paste it into a new cell" : "the browser does not allow copying here");
  }
}
