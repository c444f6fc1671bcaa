/** The explorer in one notebook cell: five linked panes on one line to the kernel.  anywidget renders the default export. */

import { attr, debounce, h, say, show, there, uid } from "./dom.js";
import { Brush } from "./brush.js";
import { Card } from "./card.js";
import { Filling } from "./fill.js";
import { Head } from "./head.js";
import { helpDialog, shortcut } from "./keys.js";
import { History } from "./history.js";
import { Lifeline } from "./lifeline.js";
import { Link } from "./link.js";
import { Moves } from "./moves.js";
import { failure, problemBox } from "./problem.js";
import { Run } from "./run.js";
import { Script } from "./script.js";
import { Search } from "./search.js";
import { Strategies } from "./strategies.js";
import { roomAround, splitter } from "./split.js";
import { Tabs } from "./tabs.js";
import { Tree } from "./loops.js";
import { Views } from "./views.js";

export class App {
  constructor(model) {
    this.id = uid("app");
    this.link = new Link(model);
    this.brush = new Brush(this.link);
    /** @type {Map<string, Protocol.Preview>} */
    this.previews = new Map();
    this.root = h("div.exw.ex-live", {
      role: "region",
      "aria-label": "schedule explorer",
      "data-lm-suppress-shortcuts": "true",
      onkeydown: (event) => this.#key(event),
    });
    this.head = new Head(this);
    this.loops = new Tree("loops", this.brush, () => this.focusMoves());
    this.tree = new Tree("schedule tree", this.brush, () => this.focusMoves());
    this.script = new Script(this);
    this.card = new Card(this);
    this.moves = new Moves(this);
    this.strategies = new Strategies(this);
    this.search = new Search(this);
    this.views = new Views(this);
    this.runpane = new Run(this);
    this.history = new History(this);
    this.alert = h("div.alert", { role: "alert" });
    this.toast = h("div.toast", { role: "status" });
    this.untell = debounce(() => say(this.toast, ""), 2500);
    this.sized = new ResizeObserver(() => this.settle());
    this.dialog = helpDialog();
    this.filling = new Filling(this.root, this.head.wide);
    this.lifeline = new Lifeline(this, model);
    const tab = (kind, name, title, content) => ({ name, title, panel: h(kind, null, content) });
    this.leftTabs = new Tabs("program", [
      tab("div.lpanel", "loops", "Loops", this.loops.frame),
      tab("div.lpanel", "tree", "Schedule tree", this.tree.frame),
      tab("div.lpanel", "script", "Script", this.script.element),
    ]);
    this.rightTabs = new Tabs("change", [
      tab("div.cpanel", "moves", "Moves", this.moves.element),
      tab("div.cpanel", "strategies", "Strategies", this.strategies.element),
      tab("div.cpanel", "search", "Search", this.search.element),
    ]);
    this.#lay();
    this.#listen();
  }

  /**
   * Send a request that changes something; its problem, if any, is shown on top.
   * @template {keyof Protocol.Requests} K
   * @param {K} kind
   * @param {Protocol.Requests[K]} [fields]
   */
  async act(kind, fields) {
    this.complain(null);
    return this.link.act(kind, fields);
  }

  /** Apply a step: a call, or a name with arguments. @param {string | null} call @param {Protocol.OfForm} [form] */
  apply(call, form) {
    return this.act("apply", call ? { call } : form);
  }

  /** @returns {Promise<Protocol.Preview | null>} what a call would do; asked once per call and schedule. Null when the question is stale. */
  async preview(call, key) {
    const known = this.previews.get(call);
    if (known) return known;
    const answer = await this.link.ask("preview", { call }, key);
    if (!answer) return null;
    const preview = answer.data ?? { call, applies: false, problem: answer.problem, diff: [], effects: [], errors: {} };
    this.previews.set(call, preview);
    return preview;
  }

  /** Run, or cancel the run that goes on. */
  run() {
    if (this.head.running) this.runpane.stop();
    else this.runpane.run(true);
  }

  progress(running) {
    if (running !== this.head.running) this.head.progress(running);
  }

  /** Show two schedules side by side. */
  compare(a, b) {
    this.views.open("compare");
    this.views.compare.set(a, b);
  }

  /** Whether a problem is one of the open obligations that stand on top already. */
  isOwed(problem) {
    return (this.link.panes.head?.obligations ?? []).some((one) => one.what === problem.what);
  }

  /** Show a strategy's steps, or the search among its choices. */
  strategy(name) {
    if (name === "search") {
      this.rightTabs.open("search");
      this.search.focus();
      return;
    }
    this.rightTabs.open("strategies");
    this.strategies.choose(name);
    this.strategies.focus();
  }

  focusMoves() {
    this.rightTabs.open("moves");
    this.moves.focus();
  }

  focusLoops() {
    (this.leftTabs.current === "tree" ? this.tree : this.loops).focus();
  }

  help() {
    this.dialog.showModal();
  }

  /** Fill the window, or return to the cell. */
  fill() {
    this.filling.toggle();
  }

  /** A word that goes away by itself. */
  tell(words) {
    say(this.toast, words);
    this.untell();
  }

  /** A problem on top of the widget, until the next action or its dismissal. */
  complain(problem) {
    if (!problem) {
      this.alert.replaceChildren();
      return;
    }
    const call = problem.call ?? null;
    this.alert.replaceChildren(
      problemBox(problem, { brush: this.brush, apply: (step) => this.apply(step), call }),
      h("button.icon", { type: "button", "aria-label": "dismiss", onclick: () => this.complain(null) }, "×"),
    );
    there(this.alert.parentElement, "box around the alert").scrollTop = 0;
  }

  #lay() {
    const program = h(
      "section.pane.program",
      { "aria-label": "program" },
      this.leftTabs.strip,
      h("div.lbody", null, ...this.leftTabs.entries.map((one) => one.panel)),
    );
    const change = h("div.pane.change", null, this.rightTabs.strip, ...this.rightTabs.entries.map((one) => one.panel));
    const border = (name, label, across, usual, least, most, end) =>
      splitter(this.root, name, { label, across, usual, least, most, end });
    this.left = h("div.left", null, program, border("program", "height of the program", false, 44, 15, 80),
      border("half", "width of the program", true, 50, 25, 75), change);
    this.root.append(
      this.lifeline.element,
      this.head.element,
      h(
        "div.main",
        null,
        this.left,
        border("left", "width of the program and the moves", true, 29, 18, 60),
        border("upper", "height of the program and the moves", false, 46, 20, 75),
        this.views.element,
      ),
      this.lifeline.waiting,
      border("dock", "height of the run and the history", false, 23, 10, 70, true),
      h("div.dock", null, h("div.runside", null, this.head.notes, this.alert, this.runpane.element), this.history.element),
      this.card.element,
      this.toast,
      this.dialog,
    );
  }

  #listen() {
    this.link.on("loops", (rows) => this.loops.update(rows));
    this.link.on("tree", (rows) => this.tree.update(rows));
    this.link.on("history", () => this.previews.clear());
    this.link.on("problem", (problem) => this.complain(problem));
    this.link.on("fault", (words) =>
      this.complain(failure(words)),
    );
    const slow = debounce(() => this.root.classList.add("working"), 150);
    this.link.on("busy", (busy) => {
      if (busy) slow();
      else {
        slow.cancel();
        this.root.classList.remove("working");
      }
      attr(this.root, "aria-busy", busy ? "true" : null);
    });
  }

  /** Ask for everything; afterwards the views may ask for their figures. */
  async begin() {
    await this.link.act("ready");
    this.ready = true;
    this.views.open(this.views.tabs.current);
    this.views.figures.get(this.views.tabs.current)?.fresh();
  }

  /** As high as what the host shows at once, so that nothing but the panes scrolls; again whenever that changes. */
  settle() {
    const [box, height] = roomAround(this.root);
    if (!this.filling.on) this.root.style.setProperty("--room", `${Math.max(520, Math.min(1200, height - 20))}px`);
    this.root.classList.toggle("narrow", this.root.clientWidth <= 540);
    if (box === this.box) return;
    this.sized.disconnect();
    for (const one of [this.root, box ?? document.documentElement]) this.sized.observe(one);
    this.box = box;
  }

  /** Follow the host's theme: controls and figures need to know whether it is dark. */
  theme() {
    const before = this.root.dataset.theme;
    delete this.root.dataset.theme;
    const colour = getComputedStyle(this.root).backgroundColor;
    const [r, g, b] = there(colour.match(/[\d.]+/g), "colour").map((part) => Number(part) * (colour.startsWith("color(") ? 255 : 1));
    this.root.dataset.theme = 0.299 * r + 0.587 * g + 0.114 * b < 128 ? "dark" : "light";
    if (before && this.root.dataset.theme !== before) this.views.recolour();
  }

  #key(event) {
    if (event.defaultPrevented) return;
    if (event.key === "Escape" && this.filling.on) this.fill();
    else if (!shortcut(event, this)) {
      if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }
}

/** anywidget's entry: draw the explorer into a cell. */
function render({ model, el }) {
  const app = new App(model);
  el.append(app.root);
  show(app.root, true);
  const watch = new MutationObserver(() => app.theme());
  watch.observe(document.body, { attributes: true });
  watch.observe(document.documentElement, { attributes: true });
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const changed = () => app.theme();
  scheme.addEventListener("change", changed);
  requestAnimationFrame(() => {
    changed();
    app.settle();
  });
  app.begin();
  return () => {
    watch.disconnect();
    scheme.removeEventListener("change", changed);
    app.sized.disconnect();
    app.lifeline.close();
    app.filling.close();
    app.link.close();
  };
}

export default { render };
