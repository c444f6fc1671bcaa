/**
 * The one selected node of a widget.  Every pane marks it and may change it: loops, CUDA lines, points, bars, table rows.
 */

import { debounce } from "./dom.js";

export class Brush {
  constructor(link) {
    this.link = link;
    this.node = null;
    this.wanted = undefined;
    this.listeners = [];
    this.send = debounce((node) => this.#send(node), 40);
    link.on("selection", (data) => this.#heard(data?.node ?? null));
  }

  /** Call `run(node)` after every change of the selection. */
  on(run) {
    this.listeners.push(run);
  }

  /** Select a node (null for none): every pane marks it at once, the kernel answers with its moves. */
  set(node) {
    if (node === this.node) return;
    this.wanted = node;
    this.#become(node);
    this.send(node);
  }

  async #send(node) {
    await this.link.act("select", { node });
    if (this.wanted !== node) return;
    this.wanted = undefined;
    this.#heard(this.link.panes.selection?.node ?? null);
  }

  /** The kernel's word counts, unless the reader has gone on meanwhile. */
  #heard(node) {
    if (this.wanted === undefined || this.wanted === node) this.#become(node);
  }

  #become(node) {
    if (node === this.node) return;
    this.node = node;
    for (const run of this.listeners) run(node);
  }
}
