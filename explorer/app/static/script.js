/**
 * The schedule as Python, both ways: a text editor with line numbers.  Apply rebuilds the schedule; an error stands at its line
 * and changes nothing; what was typed is kept until the reader drops it.
 */

import { attr, copy, h, say, show, uid } from "./dom.js";
import { problemBox } from "./problem.js";

export class Script {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.clean = "";
    this.numbers = h("div.gutter", { "aria-hidden": "true" });
    const id = uid("script");
    this.area = h("textarea", {
      id,
      spellcheck: "false",
      autocapitalize: "off",
      autocomplete: "off",
      wrap: "off",
      "aria-label": "the schedule as Python",
      "aria-describedby": `${id}-say`,
      oninput: () => this.#typed(),
      onscroll: () => this.#scrolled(),
      onkeydown: (event) => this.#key(event),
      onclick: () => this.#caret(),
    });
    this.line = h("div.errline", { hidden: true });
    this.error = h("div.serror", { id: `${id}-say`, role: "alert" });
    this.button = h("button.primary", { type: "button", onclick: () => this.apply() }, "Apply");
    this.revert = h("button", { type: "button", onclick: () => this.#take() }, "drop my edits");
    this.copied = h(
      "button.small",
      {
        type: "button",
        onclick: async () =>
          app.tell((await copy(this.area.value)) ? "script copied" : "the browser does not allow copying here"),
      },
      "copy",
    );
    this.state = h("span.soft", { role: "status" });
    this.here = h("button.small", { type: "button", hidden: true, onclick: () => this.#visit() });
    this.element = h(
      "div.script",
      null,
      h("div.editor", null, this.numbers, h("div.textwrap", null, this.line, this.area)),
      this.error,
      h("div.mapply", null, this.button, this.revert, this.here, this.state, h("span.grow"), this.copied),
    );
    app.link.on("script", (pane) => this.update(pane));
  }

  get dirty() {
    return this.area.value !== this.clean;
  }

  /** @param {Protocol.ScriptPane} pane */
  update(pane) {
    this.pane = pane;
    const dirty = this.dirty;
    if (!pane.error) {
      this.changed = dirty && pane.text !== this.clean && pane.text !== this.area.value;
      this.clean = pane.text;
      if (!dirty) this.#put(pane.text);
    }
    this.#complain(pane.error);
    this.#refresh();
  }

  /** Rebuild the schedule from the text. */
  async apply() {
    const text = this.area.value;
    this.button.disabled = true;
    const outcome = await this.app.act("script", { text });
    this.button.disabled = false;
    if (outcome?.problem || !this.pane || this.pane.error) return;
    this.clean = this.pane.text;
    this.changed = false;
    if (this.area.value === text) this.#put(this.clean);
    this.#refresh();
  }

  #take() {
    this.#put(this.clean);
    this.changed = false;
    this.#complain(null);
    this.#refresh();
    this.area.focus();
  }

  #put(text) {
    if (this.area.value !== text) {
      const at = this.area.selectionStart;
      this.area.value = text;
      if (document.activeElement === this.area) this.area.setSelectionRange(at, at);
    }
  }

  #typed() {
    this.#complain(null);
    this.#refresh();
  }

  #refresh() {
    const count = this.area.value.split("\n").length;
    if (this.numbers.childElementCount !== count)
      this.numbers.replaceChildren(...Array.from({ length: count }, (_, index) => h("div", null, String(index + 1))));
    const wrong = this.pane?.error?.line ?? 0;
    [...this.numbers.children].forEach((number, index) => number.classList.toggle("bad", this.shownError && index + 1 === wrong));
    this.button.disabled = !this.dirty && !this.shownError;
    show(this.revert, this.dirty);
    say(
      this.state,
      this.changed
        ? "unsaved edits, kept; the schedule has changed since"
        : this.dirty
          ? "unsaved edits (Ctrl+Enter applies)"
          : "this text makes the schedule shown",
    );
    this.#scrolled();
    this.#caret();
  }

  #complain(error) {
    this.shownError = Boolean(error);
    attr(this.area, "aria-invalid", error ? "true" : null);
    this.error.replaceChildren(
      ...(error
        ? [h("p.soft", null, `line ${error.line}; nothing has changed`), problemBox(error.problem, { brush: this.app.brush })]
        : []),
    );
    if (show(this.line, Boolean(error))) this.line.style.setProperty("--line-no", String(error.line - 1));
  }

  #scrolled() {
    this.numbers.style.transform = `translateY(${-this.area.scrollTop}px)`;
    this.line.style.transform = `translateY(${-this.area.scrollTop}px)`;
  }

  /** The state whose step stands at the caret. */
  #caret() {
    const line = this.area.value.slice(0, this.area.selectionStart).split("\n").length;
    const step = this.dirty ? null : this.pane?.steps.find(([, at]) => at === line);
    this.step = step?.[0];
    show(this.here, Boolean(step) && this.step !== this.app.link.panes.history?.current);
    say(this.here, step ? `go to the schedule of line ${line}` : "");
  }

  #visit() {
    if (this.step) this.app.act("goto", { state: this.step });
  }

  #key(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      event.stopPropagation();
      this.apply();
    } else if (event.key !== "Escape") {
      if (event.key.startsWith("Arrow")) setTimeout(() => this.#caret());
      event.stopPropagation();
    }
  }
}
