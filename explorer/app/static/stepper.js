/**
 * The passes of the code generator, one after the other: which one is shown, what it does, what it changed.
 * The kernels after a pass are asked for when they are looked at, and kept until the schedule changes.
 */

import { attr, h, say, show } from "./dom.js";

const WHOLE = { name: "", what: "" };
/** The choice after the last pass: the whole text, with the device library. */

export class Stepper {
  /**
   * @param {import("./link.js").Link} link
   * @param {(stage: Protocol.AfterPass | null, stepped: boolean) => void} shown called with the kernels after a pass (null: the whole text) and whether the
   *   reader has just stepped there
   */
  constructor(link, shown) {
    this.link = link;
    this.shown = shown;
    this.places = [WHOLE];
    this.name = "";
    /** @type {Map<string, Protocol.AfterPass>} */
    this.known = new Map();
    const button = (glyph, label, step) =>
      h("button.small.icon", { type: "button", "aria-label": label, title: label, onclick: () => this.#step(step) }, glyph);
    this.back = button("◂", "previous pass", -1);
    this.next = button("▸", "next pass", 1);
    this.choice = h("select", { "aria-label": "text after the pass", onchange: () => this.#go(this.choice.value) });
    this.element = h(
      "div.stepper",
      { role: "group", "aria-label": "passes of the code generator", onkeydown: (event) => this.#key(event) },
      this.back,
      this.choice,
      this.next,
    );
    this.about = h("p.passed", { role: "status" });
    link.on("panes", (panes) => (panes.cuda || panes.loops) && this.#fresh());
  }

  /** Whether the text of a pass is wanted, not the whole one. */
  get inside() {
    return this.name !== "";
  }

  /** The passes that there are; none without a text. @param {Protocol.Pass[]} passes */
  offer(passes = []) {
    if (passes.length + 1 !== this.places.length) {
      this.places = [...passes, WHOLE];
      this.choice.replaceChildren(
        ...this.places.map(({ name }, index) => h("option", { value: name }, name ? `${index + 1} ${name}` : "text")),
      );
    }
    this.#label();
  }

  /** Hide the control, and what it says, where no text of a pass can be shown. */
  reveal(visible) {
    show(this.element, visible);
    show(this.about, visible && this.inside);
    this.visible = visible;
  }

  get #at() {
    return this.places.findIndex((place) => place.name === this.name);
  }

  #step(by) {
    const place = this.places[this.#at + by];
    if (place) this.#go(place.name);
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const last = this.places.length - 1;
    const to = {
      ArrowLeft: this.#at - 1,
      ArrowUp: this.#at - 1,
      ArrowRight: this.#at + 1,
      ArrowDown: this.#at + 1,
      Home: 0,
      End: last,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (this.places[to] && to !== this.#at) this.#go(this.places[to].name);
  }

  /** The schedule or its GPU has changed: what is shown is asked for anew. */
  #fresh() {
    this.known.clear();
    if (this.inside && this.visible) this.#ask(false);
  }

  #go(name) {
    this.name = name;
    this.#label();
    const kept = this.known.get(name);
    if (name && !kept) {
      this.#ask(true);
      return;
    }
    this.link.forget("ir");
    this.#tell(kept ?? null, true);
  }

  async #ask(stepped) {
    attr(this.about, "aria-busy", "true");
    const answer = await this.link.ask("ir", { after: this.name });
    if (!answer) return;
    attr(this.about, "aria-busy", null);
    if (answer.problem) {
      say(this.about, answer.problem.what);
      return;
    }
    this.known.set(answer.data.name, answer.data);
    this.#tell(answer.data, stepped);
  }

  #tell(stage, stepped) {
    attr(this.about, "aria-busy", null);
    this.#label(stage?.change);
    this.shown(stage, stepped);
  }

  #label(change = "") {
    const at = this.#at;
    this.choice.value = this.name;
    attr(this.back, "aria-disabled", at === 0 ? "true" : null);
    attr(this.next, "aria-disabled", at === this.places.length - 1 ? "true" : null);
    show(this.about, Boolean(this.visible) && this.inside);
    const known = change || this.known.get(this.name)?.change;
    this.about.replaceChildren(this.places[at]?.what ?? "", ...(known ? [" ", h("b", null, `${known}.`)] : []));
  }
}
