/**
 * The line to the kernel: requests out, panes and answers in (the messages of explorer/app/protocol.py).
 * Holds the newest data of every pane; the front end keeps no other truth.
 */

import { said } from "./dom.js";

export class Link {
  constructor(model) {
    this.model = model;
    this.serial = 0;
    /** @type {Partial<Protocol.Panes>} */
    this.panes = {};
    this.listeners = new Map();
    this.waiting = new Map();
    this.newest = new Map();
    this.receive = (content, buffers) => this.#receive(content, buffers);
    model.on("msg:custom", this.receive);
  }

  /** Stop listening: the view is gone. */
  close() {
    this.model.off("msg:custom", this.receive);
    this.listeners.clear();
  }

  /**
   * Call `run(data)` whenever the pane `name` comes; `"busy"`, `"problem"` and `"panes"` are events too.
   * @template {keyof Events} K
   * @param {K} name
   * @param {(data: Events[K]) => void} run
   */
  on(name, run) {
    if (!this.listeners.has(name)) this.listeners.set(name, []);
    this.listeners.get(name).push(run);
  }

  emit(name, data) {
    for (const run of this.listeners.get(name) ?? []) {
      try {
        run(data);
      } catch (error) {
        console.error(error);
        if (name !== "fault") this.emit("fault", `${name}: ${said(error)}`);
      }
    }
  }

  /**
   * Send a request; the promise holds `{ panes }` or `{ problem }`.
   * A problem is also emitted, unless the caller says it shows it itself.
   * @template {keyof Protocol.Requests} K
   * @param {K} kind
   * @param {Protocol.Requests[K]} [fields]
   * @returns {Promise<Answer<never> | null>}
   */
  act(kind, fields, { quiet = false } = {}) {
    return this.#send(kind, fields, { quiet, question: null });
  }

  /**
   * Ask a question; the promise holds `{ data, buffers }` or `{ problem }`, or null when the same question (by `key`) has been
   * asked anew since.
   * @template {keyof Protocol.Answers} K
   * @param {K} kind
   * @param {Protocol.Requests[K]} [fields]
   * @param {string} [key]
   * @returns {Promise<Answer<Protocol.Answers[K]> | null>}
   */
  ask(kind, fields, key = kind) {
    return this.#send(kind, fields, { quiet: true, question: key });
  }

  /** Forget the open question of this key: its answer will be dropped. */
  forget(key) {
    this.newest.delete(key);
  }

  get busy() {
    return [...this.waiting.values()].some((entry) => entry.question === null);
  }

  #send(kind, fields, { quiet, question }) {
    const serial = ++this.serial;
    if (question !== null) this.newest.set(question, serial);
    if (this.dropped) return Promise.resolve(null);
    const promise = new Promise((resolve) => this.waiting.set(serial, { resolve, quiet, question }));
    try {
      this.model.send({ kind, serial, ...fields });
    } catch {
      this.emit("lost"); /* the host has closed the line */
      return promise;
    }
    if (question === null) this.emit("busy", true);
    return promise;
  }

  /** The kernel has gone: what was asked is never answered, and nothing more is sent. */
  drop() {
    this.dropped = true;
    for (const { resolve } of this.waiting.values()) resolve(null);
    this.waiting.clear();
    this.emit("busy", false);
  }

  #receive(content, buffers) {
    if (content.kind === "still") {
      this.emit("still", content.data);
      return;
    }
    const entry = this.waiting.get(content.serial);
    this.waiting.delete(content.serial);
    if (content.kind === "panes") {
      Object.assign(this.panes, content.panes);
      const names = Object.keys(content.panes).sort((a, b) => Number(b === "selection") - Number(a === "selection"));
      for (const name of names) this.emit(name, content.panes[name]);
      this.emit("panes", content.panes);
    } else if (content.kind === "problem" && !entry?.quiet) {
      this.emit("problem", content.problem);
    }
    if (entry) {
      const stale = entry.question !== null && this.newest.get(entry.question) !== content.serial;
      entry.resolve(stale ? null : { panes: content.panes, data: content.data, problem: content.problem, buffers });
    }
    this.emit("busy", this.busy);
  }
}
