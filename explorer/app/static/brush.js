/**
 * The one selected node of a widget.  Every pane marks it and may change it: loops, CUDA lines, points, bars, table rows.
 * One question is under way at a time; a reader who walks fast is asked for where they have arrived.
 */

export class Brush {
  constructor(link) {
    this.link = link;
    this.node = null;
    this.wanted = undefined;
    this.listeners = [];
    this.asking = false;
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
    if (!this.asking) this.#ask();
  }

  async #ask() {
    const node = this.wanted;
    this.asking = true;
    await this.link.act("select", { node });
    this.asking = false;
    if (this.wanted !== node) {
      this.#ask();
      return;
    }
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
