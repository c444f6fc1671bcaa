/** Rows as an ARIA tree: the loops, or isl's schedule tree.  Arrow keys walk, left and right fold, the brush follows. */

import { attr, h, keyed, reveal, say, show, there } from "./dom.js";
import { become } from "./markup.js";

const KINDS = {
  parallel: ["∥ parallel", "different iterations write different elements"],
  reduced: ["Σ reduced", "its iterations update one element, in any order"],
  ordered: ["↻ ordered", "its iterations write one element again, or read what others write"],
};
const MARKS = {
  coalesced: ["✓", "neighbouring threads take neighbouring elements: coalesced"],
  same: ["=", "neighbouring threads take the same element"],
  apart: ["✗", "neighbouring threads take elements apart: not coalesced"],
  varies: ["~", "not the same for all threads"],
  contiguous: ["→", "contiguous in memory"],
};

/** What a loop is to a statement: its kind, and the stride of each access along it, equal ones of one array once. @param {Protocol.Walk} walk */
function walked(walk, loop) {
  const kind = walk.loops[loop];
  if (!kind) return null;
  const seen = new Map();
  for (const access of walk.accesses) {
    const stride = access.strides[loop];
    const indices = access.indices[loop] ?? [];
    const mark = access.marks[loop] ?? "";
    seen.set(`${access.array} ${stride} ${indices} ${mark}`, { array: access.array, text: access.text, stride, indices, mark });
  }
  const digits = (number) => number.toLocaleString("en-US");
  const steps = [...seen.values()].map((one) => ({
    ...one,
    number: one.stride !== null ? digits(one.stride) : one.indices.map((pair) => pair.map(digits).join("×")).join(" ") || "?",
    words: one.indices.map(([step, count]) => `${digits(count)} steps of ${digits(step)}`).join(", then "),
  }));
  const spoken = steps.map(
    (one) => `${one.array} ${one.words || `stride ${one.number}`}${one.mark ? `, ${MARKS[one.mark][1]}` : ""}`,
  );
  return { kind, steps, label: `${kind}; ${spoken.join("; ")}` };
}

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
    /** @type {Protocol.Row[]} */
    this.rows = [];
    this.element = h("div.tree", {
      role: "tree",
      "aria-label": label,
      onkeydown: (event) => this.#key(event),
      onclick: (event) => this.#click(event),
    });
    this.element.addEventListener("pointerover", (event) => event.pointerType === "mouse" && this.#hover(event.target?.closest(".row") ?? null));
    this.element.addEventListener("pointerleave", () => this.#hover(null));
    this.note = h("div.walknote", { role: "note", hidden: true });
    this.frame = h("div.treebox", null, this.element, this.note);
    brush.on(() => this.#mark(true));
  }

  /** Show these rows. @param {Protocol.Row[]} rows */
  update(rows) {
    const focused = this.element.contains(document.activeElement);
    this.rows = rows ?? [];
    keyed(
      this.element,
      this.rows,
      (row) => row.key,
      () => h("span"),
      (element, row) => this.#fill(element, row),
    );
    this.hovered = null;
    this.#layout();
    this.#mark(false);
    if (focused && !this.element.contains(document.activeElement)) this.focus();
  }

  /** Put the focus on the selected row. */
  focus() {
    this.element.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
  }

  /** @param {HTMLElement} element @param {Protocol.Row} row */
  #fill(element, row) {
    this.walking = {}; /* drawn anew, its loops are told again */
    become(element, row.html);
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
    this.#walk();
  }

  /** The statement under the mouse is explained, else the selected one. */
  #hover(element) {
    const row = element?.exItem?.walk ? element.exItem : null;
    if (row === this.hovered) return;
    this.hovered = row;
    this.#walk();
  }

  /** Beside each loop, what it is to one statement; without a statement nothing. */
  #walk() {
    const row = this.hovered ?? this.rows.find((one) => one.walk && one.node === this.brush.node);
    const above = Boolean(row) && row.node !== this.brush.node;
    if (row === this.walking && above === this.above) return;
    this.walking = row;
    this.above = above;
    for (const element of this.element.children) {
      const item = element.exItem;
      const found = row && item.kind === "loop" ? walked(row.walk, item.node) : null;
      element.querySelector(".walk")?.remove();
      attr(element, "aria-label", found ? `${item.label}; to ${row.node}: ${found.label}` : item.label);
      element.classList.toggle("walked", Boolean(found));
      if (found) there(element.lastElementChild, "row of the loop").append(this.#steps(found, above));
    }
    const notes = (!above && row?.walk.notes) || [];
    this.note.replaceChildren(...notes.map((note) => h("p", null, h("span", { "aria-hidden": "true" }, "↳ "), note)));
    show(this.note, notes.length > 0);
  }

  /** For the selected statement in the line; under the mouse above it, so that nothing moves. */
  #steps({ kind, steps }, above) {
    const [words, title] = KINDS[kind];
    return h(
      `span.walk${above ? ".above" : ""}`,
      { "aria-hidden": "true" },
      h(`span.kind.w-${kind}`, { title }, words),
      ...steps.map(({ array, number, words, mark, text }) =>
        h(
          `span.stride${mark ? `.m-${mark}` : ""}`,
          {
            title:
              `${text}: ${words || number} element${number === "1" ? "" : "s"} from one iteration to the next` +
              `${words ? ", several indices in one" : ""}${mark ? `; ${MARKS[mark][1]}` : ""}`,
          },
          array,
          " ",
          h("b", null, number),
          mark ? ` ${MARKS[mark][0]}` : "",
        ),
      ),
    );
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
