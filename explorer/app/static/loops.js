/** Rows as an ARIA tree: the loops, or isl's schedule tree.  Arrow keys walk, left and right fold, the brush follows. */

import { attr, h, keyed, plain, reveal, say, show, spans } from "./dom.js";

const COLOURS = { block: "block", thread: "thread", lane: "thread", warp: "thread", vector: "vector", launch: "launch" };

/** The colour class of a role: `block.x` is `block`. */
export const roleClass = (role) => COLOURS[(role ?? "").split(".")[0]] ?? (role || "plain").replace(/[^a-z]/gi, "-");

export class Tree {
  /**
   * @param {string} label
   * @param {import("./brush.js").Brush} brush
   * @param {() => void} enter what Enter does on a row: go to its moves
   */
  constructor(label, brush, enter) {
    this.brush = brush;
    this.enter = enter;
    this.folded = new Set();
    this.rows = [];
    this.element = h("div.tree", {
      role: "tree",
      "aria-label": label,
      onkeydown: (event) => this.#key(event),
      onclick: (event) => this.#click(event),
    });
    brush.on(() => this.#mark(true));
  }

  /** Show these rows. */
  update(rows) {
    const focused = this.element.contains(document.activeElement);
    this.rows = rows ?? [];
    keyed(
      this.element,
      this.rows,
      (row) => row.key,
      () => h("div.row", { role: "treeitem", "data-rove": "" }),
      (element, row) => this.#fill(element, row),
    );
    this.#layout();
    this.#mark(false);
    if (focused && !this.element.contains(document.activeElement)) this.focus();
  }

  /** Put the focus on the selected row. */
  focus() {
    this.element.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
  }

  #fill(element, row) {
    attr(element, "aria-label", row.label);
    attr(element, "aria-level", row.depth + 1);
    attr(element, "data-key", row.key);
    attr(element, "data-node", row.node);
    element.className = `row k-${row.kind}`;
    element.style.setProperty("--d", row.depth);
    const colour = roleClass(row.role);
    element.replaceChildren(
      h("span.twist", { "aria-hidden": "true" }),
      h(`span.glyph.c-${colour}`, { "aria-hidden": "true" }, row.glyph || ""),
      h(
        "span.words",
        null,
        h("span.code", null, ...spans(row.spans)),
        row.bounds && !plain(row.spans).includes(row.bounds) ? h("span.bounds", null, row.bounds) : "",
        ...(row.chips ?? []).map((chip) => h(`span.chip.c-${roleClass(chip.role)}`, { title: chip.title || null }, chip.text)),
      ),
    );
  }

  #layout() {
    let hiddenBelow = Infinity;
    const items = [...this.element.children];
    items.forEach((element, index) => {
      const row = this.rows[index];
      const parent = (this.rows[index + 1]?.depth ?? 0) > row.depth;
      if (row.depth <= hiddenBelow) hiddenBelow = Infinity;
      show(element, hiddenBelow === Infinity);
      const folded = parent && this.folded.has(row.key);
      if (folded && hiddenBelow === Infinity) hiddenBelow = row.depth;
      attr(element, "aria-expanded", parent ? String(!folded) : null);
      say(element.firstChild, parent ? (folded ? "▸" : "▾") : "");
    });
  }

  #mark(scroll) {
    const items = [...this.element.children];
    const index = this.rows.findIndex((row) => row.node !== null && row.node === this.brush.node);
    items.forEach((element, at) => {
      const chosen = this.rows[at].node !== null && this.rows[at].node === this.brush.node;
      attr(element, "aria-selected", String(chosen));
      element.tabIndex = at === Math.max(index, 0) ? 0 : -1;
    });
    if (scroll && index >= 0) reveal(items[index], this.element);
  }

  #click(event) {
    const element = event.target.closest(".row");
    if (!element) return;
    if (event.target.closest(".twist") && element.hasAttribute("aria-expanded")) this.#fold(element);
    else this.brush.set(element.exItem.node);
    this.#go(element);
  }

  #fold(element, folded = !this.folded.has(element.exItem.key)) {
    this.folded[folded ? "add" : "delete"](element.exItem.key);
    this.#layout();
  }

  #go(element) {
    for (const other of this.element.children) other.tabIndex = other === element ? 0 : -1;
    element.focus({ preventScroll: true });
    reveal(element, this.element);
  }

  #key(event) {
    const element = event.target.closest(".row");
    if (!element || event.ctrlKey || event.metaKey || event.altKey) return;
    const visible = [...this.element.children].filter((row) => !row.hidden);
    const here = visible.indexOf(element);
    const depth = element.exItem.depth;
    const expanded = element.getAttribute("aria-expanded");
    let goal = { ArrowDown: visible[here + 1], ArrowUp: visible[here - 1], Home: visible[0], End: visible.at(-1) }[event.key];
    if (event.key === "ArrowRight" && expanded === "false") this.#fold(element, false);
    else if (event.key === "ArrowRight" && expanded === "true") goal = visible[here + 1];
    else if (event.key === "ArrowLeft" && expanded === "true") this.#fold(element, true);
    else if (event.key === "ArrowLeft")
      goal = visible
        .slice(0, here)
        .reverse()
        .find((row) => row.exItem.depth < depth);
    else if (event.key === "Enter") this.enter();
    else if (event.key === " ") this.brush.set(element.exItem.node);
    else if (!goal) return;
    event.preventDefault();
    if (!goal) return;
    this.#go(goal);
    if (goal.exItem.node !== null) this.brush.set(goal.exItem.node);
  }
}
