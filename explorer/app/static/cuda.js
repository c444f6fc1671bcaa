/**
 * The CUDA text: line numbers, highlighting, the selected node's lines marked; a line selects the node it belongs to.
 * The device library above the kernel is folded.  The kernels after any pass, and PTX, on demand.
 */

import { attr, copy, debounce, entryOf, h, keyed, part, reveal, say, show } from "./dom.js";
import { fragment } from "./markup.js";
import { problemBox } from "./problem.js";
import { Stepper } from "./stepper.js";

const ARCHITECTURES = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"];

/** The library part as [first, last] 0-based line, or null: between the first blank line and the one above the first kernel (and
 * the counters of its blocks). @param {string[]} lines */
function library(lines) {
  const kernel = lines.findIndex((line) => line.startsWith('extern "C"'));
  const first = lines.findIndex((line) => !line.trim());
  let last = kernel;
  while (last > 0 && lines[last].trim()) last -= 1;
  return first >= 0 && last - first > 12 ? [first + 1, last] : null;
}

export class Cuda {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @type {Protocol.Cuda} */
    this.pane = { lines: [], nodes: {}, arch: "", problem: null, truncated: "", passes: [] };
    /** @type {Protocol.Cuda | Protocol.AfterPass} */
    this.content = this.pane;
    this.owner = [];
    this.open = false;
    this.cursor = 0;
    this.lines = h("div.lines", {
      role: "listbox",
      tabindex: 0,
      "aria-label": "CUDA, a line selects its loop",
      onkeydown: (event) => this.#key(event),
      onclick: (event) => this.#click(event),
    });
    this.fold = h("button.libfold", { type: "button", onclick: () => this.#unfold(!this.open) });
    this.code = h("div.code-scroll", null, this.fold, this.lines);
    this.problem = h("div.cproblem", { hidden: true });
    this.ptx = h("pre.ptx", { tabindex: 0, hidden: true, "aria-label": "PTX" });
    this.arch = h(
      "select",
      { "aria-label": "architecture of the PTX", hidden: true, onchange: () => this.#ptx() },
      ...ARCHITECTURES.map((name) => h("option", { value: name }, name)),
    );
    this.toggle = h("button.small", { type: "button", "aria-pressed": "false", onclick: () => this.#toggle() }, "PTX");
    this.copied = h("button.small", { type: "button", onclick: () => this.#copy() }, "copy");
    this.note = h("span.soft");
    this.stepper = new Stepper(app.link, (stage, stepped) => this.#show(stage ?? this.pane, stepped));
    this.element = h(
      "div.cuda",
      null,
      h("div.vhead", null, h("h4", null, "CUDA"), this.note, this.stepper.element, h("span.grow"), this.arch, this.toggle, this.copied),
      this.stepper.about,
      this.problem,
      this.code,
      this.ptx,
    );
    this.mark = debounce(() => this.#reveal(), 0);
    app.brush.on(() => this.#mark(true));
    app.link.on("cuda", (pane) => this.update(pane));
  }

  /** @param {Protocol.Cuda} pane */
  update(pane) {
    this.pane = pane;
    this.stepper.offer(pane.passes);
    this.stepper.reveal(this.ptx.hidden && pane.lines.length > 0);
    show(this.problem, Boolean(pane.problem));
    if (pane.problem) {
      this.problem.replaceChildren(
        this.app.isOwed(pane.problem)
          ? h("p.owing", null, "There is no CUDA text yet: the reduction above is still open.")
          : problemBox(pane.problem, { brush: this.app.brush, apply: (call) => this.app.apply(call) }),
      );
    }
    if (!this.stepper.inside || !pane.lines.length) this.#show(pane, false); /* else the stepper brings the text of its pass */
    if (!this.ptx.hidden) this.#ptx();
  }

  /** The whole text, or that after a pass. @param {Protocol.Cuda | Protocol.AfterPass} content @param {boolean} stepped */
  #show(content, stepped) {
    this.content = content;
    this.owner = new Array(content.lines.length).fill(null);
    const size = new Map(Object.entries(content.nodes).map(([node, lines]) => [node, lines.length]));
    for (const [node, lines] of Object.entries(content.nodes)) {
      for (const line of lines) {
        const held = this.owner[line - 1];
        if (held === null || entryOf(size, node) < entryOf(size, held)) this.owner[line - 1] = node;
      }
    }
    say(this.note, [this.pane.arch, content.truncated].filter(Boolean).join(" · "));
    const changed = new Set("changed" in content ? content.changed : []);
    keyed(
      this.lines,
      content.lines.map((line, index) => ({ line, fresh: changed.has(index + 1) })),
      (_, index) => index,
      (_, index) =>
        h(
          "div.cl",
          { role: "option", id: `${this.#id()}-${index}` },
          h("span.no", { "aria-hidden": "true" }, String(index + 1)),
          h("span.was", { "aria-hidden": "true" }),
          h("code"),
        ),
      (element, { line, fresh }) => {
        const code = part(element, "code");
        code.replaceChildren(fragment(line));
        element.classList.toggle("changed", fresh);
        say(element.children[1], fresh ? "›" : "");
        const words = code.textContent.trim();
        attr(element, "aria-label", fresh ? `changed: ${words || "blank line"}` : words ? null : "blank line");
      },
    );
    this.texts = [...this.lines.children].map((line) => part(line, "code").textContent);
    this.library = library(this.texts);
    show(this.fold, Boolean(this.library));
    this.#unfold(this.open);
    this.#mark(false);
    if (stepped) reveal(this.lines.querySelector(".changed"), this.code, 0.3);
  }

  #id() {
    this.lines.id ||= `${this.app.id}-cuda`;
    return this.lines.id;
  }

  #unfold(open) {
    this.open = open;
    const [first, last] = this.library ?? [-1, -2];
    [...this.lines.children].forEach((line, index) => show(line, open || index < first || index > last));
    say(this.fold, `${open ? "▾" : "▸"} device library, ${last - first + 1} lines`);
    attr(this.fold, "aria-expanded", String(open));
  }

  #mark(scroll) {
    const marked = new Set(this.content.nodes[this.app.brush.node] ?? []);
    const children = this.lines.children;
    for (let index = 0; index < children.length; index += 1) {
      const on = marked.has(index + 1);
      children[index].classList.toggle("on", on);
      attr(children[index], "aria-selected", String(on));
    }
    if (scroll && marked.size) this.mark();
  }

  #reveal() {
    const marked = [...this.lines.querySelectorAll(".on:not([hidden])")];
    const [box, last] = [this.code.getBoundingClientRect(), marked.at(-1)?.getBoundingClientRect()];
    if (last && (last.bottom > box.bottom || last.bottom < box.top))
      reveal(last.bottom > box.bottom ? marked.at(-1) : marked[0], this.code);
    if (marked.length) reveal(marked[0], this.code, 0.3);
  }

  #select(index) {
    this.cursor = index;
    for (const line of this.lines.querySelectorAll(".cursor")) line.classList.remove("cursor");
    const line = this.lines.children[index];
    line.classList.add("cursor");
    attr(this.lines, "aria-activedescendant", line.id);
    reveal(line, this.code);
    if (this.owner[index]) this.app.brush.set(this.owner[index]);
  }

  #click(event) {
    const line = event.target.closest(".cl");
    if (line && window.getSelection()?.isCollapsed) this.#select([...this.lines.children].indexOf(line));
  }

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12 }[event.key];
    if (!step || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    let index = this.cursor + step;
    while (this.lines.children[index]?.hidden) index += Math.sign(step);
    if (this.lines.children[index]) this.#select(index);
  }

  #toggle() {
    const on = this.ptx.hidden;
    attr(this.toggle, "aria-pressed", String(on));
    show(this.ptx, on);
    show(this.arch, on);
    show(this.code, !on);
    this.stepper.reveal(!on && this.pane.lines.length > 0);
    if (on) {
      if (ARCHITECTURES.includes(this.pane.arch) && !this.chosen) this.arch.value = this.pane.arch;
      this.chosen = true;
      this.#ptx();
    }
  }

  async #ptx() {
    say(this.ptx, `compiling for ${this.arch.value} …`);
    const answer = await this.app.link.ask("ptx", { arch: this.arch.value });
    if (answer) say(this.ptx, answer.problem?.what ?? answer.data?.text ?? answer.data?.why ?? "");
  }

  async #copy() {
    const text = this.ptx.hidden ? (this.texts ?? []).join("\n") : this.ptx.textContent;
    this.app.tell((await copy(text)) ? "copied" : "the browser does not allow copying here");
  }
}
