/**
 * The tree of schedules as a strip: time runs to the right, a branch takes a lane of its own.  Each card tells its step, its
 * time, its share of the floor, and whether it is legal and correct.
 */

import { attr, duration, entryOf, h, keyed, reveal, say, svg, there } from "./dom.js";

const CORRECT = "✓ correct";
const [WIDTH, HEIGHT, GAP_X, GAP_Y] = [168, 58, 26, 10];

/** @param {Protocol.State[]} states column and lane of each: children continue their parent's lane, later siblings open the next free one. */
export function lanes(states) {
  const place = new Map();
  const ends = [];
  const children = new Map();
  for (const state of states) {
    if (!children.has(state.parent)) children.set(state.parent, []);
    children.get(state.parent).push(state);
  }
  const stack = [...(children.get(null) ?? [])].reverse().map((state) => [state, 0, 0]);
  while (stack.length) {
    const [state, column, wish] = there(stack.pop(), "schedule left");
    let lane = wish;
    while ((ends[lane] ?? -1) >= column) lane += 1;
    ends[lane] = column;
    place.set(state.id, { column, lane });
    const next = children.get(state.id) ?? [];
    next
      .slice()
      .reverse()
      .forEach((child, index) => stack.push([child, column + 1, index === next.length - 1 ? lane : lane + 1]));
  }
  return place;
}

/** The time that counts: on the GPU, measured or else priced; a time on the CPU is no verdict. @param {Protocol.State} state */
const told = (state) => (state.device === "cpu" ? (state.priced_us ?? null) : state.time_us);

/** The times of a state in words. @param {Protocol.State} state */
function times(state, all = true) {
  if (state.time_us === null) return "";
  if (state.device !== "cpu") return duration(state.time_us);
  const about = told(state) === null ? "" : `≈ ${duration(told(state))}, ${state.gpu}`;
  return all ? [about, `${duration(state.time_us)} on the CPU`].filter(Boolean).join(", ") : about || "run on the CPU";
}

/** What a card has room for: of a schedule that is correct and timed, the sign and the time. */
function short(state, facts) {
  if (state.time_us === null) return [facts.length ? facts.join(" · ") : "not run"];
  const time = h("b", null, times(state, false));
  return state.correct ? ["✓ ", time, " ", facts.filter((one) => one !== CORRECT).join(" · ")] : [time, " ", facts.join(" · ")];
}

export class History {
  /** @type {Protocol.History | null} */
  #pane = null;

  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.marked = null;
    /** @type {Map<string | null, {column: number, lane: number}>} */
    this.place = new Map();
    this.edges = svg("svg", { class: "edges", "aria-hidden": "true" });
    this.cards = h("div.cards");
    this.field = h("div.hfield", null, this.edges, this.cards);
    this.scroll = h("div.hscroll", null, this.field);
    this.note = h("span.soft.hnote", { "aria-live": "polite" });
    this.button = h("button.small", { type: "button", onclick: () => this.mark() }, "compare with …");
    this.element = h(
      "section.pane.history",
      { "aria-label": "history" },
      h("div.phead", null, h("h3", null, "History"), this.note, h("span.grow"), this.button),
      this.scroll,
    );
    this.cards.addEventListener("keydown", (event) => this.#key(event));
    app.link.on("history", (pane) => this.update(pane));
  }

  /** What the kernel has told; nothing asks before it has. */
  get pane() {
    return there(this.#pane, "schedules yet");
  }

  /** @param {Protocol.History} pane */
  update(pane) {
    this.#pane = pane;
    this.place = lanes(pane.states);
    const best = Math.max(...pane.states.map((state) => told(state) ?? 0), 0);
    const path = new Set(pane.path);
    keyed(
      this.cards,
      pane.states.map((state, index) => ({
        ...state,
        index,
        best,
        ...entryOf(this.place, state.id),
        here: state.id === pane.current,
        path: path.has(state.id),
        marked: state.id === this.marked,
      })),
      (state) => state.id,
      (state) => this.#card(state),
      (card, state) => this.#fill(card, state),
    );
    const columns = Math.max(...[...this.place.values()].map((one) => one.column)) + 1;
    const rows = Math.max(...[...this.place.values()].map((one) => one.lane)) + 1;
    this.field.style.width = `${columns * (WIDTH + GAP_X)}px`;
    this.field.style.height = `${rows * (HEIGHT + GAP_Y)}px`;
    this.#draw(path);
    say(
      this.note,
      this.marked
        ? "choose the other schedule"
        : `${pane.states.length} ${pane.states.length === 1 ? "schedule" : "schedules"}; click one to return to it`,
    );
    attr(this.button, "aria-pressed", String(Boolean(this.marked)));
    this.button.disabled = pane.states.length < 2;
    this.#follow();
  }

  /** Start choosing a schedule to compare the current one with, or stop. */
  mark() {
    this.marked = this.marked ? null : this.pane.current;
    this.update(this.pane);
    if (this.marked) this.cards.querySelector('[tabindex="0"]')?.focus();
  }

  #follow() {
    const here = this.cards.querySelector('[aria-current="step"]');
    if (!here) return;
    const { left, right } = here.getBoundingClientRect();
    const frame = this.scroll.getBoundingClientRect();
    if (left < frame.left) this.scroll.scrollLeft -= frame.left - left + 20;
    else if (right > frame.right) this.scroll.scrollLeft += right - frame.right + 20;
    reveal(here, this.scroll);
  }

  #card(state) {
    return h("button.state", {
      type: "button",
      "data-rove": "",
      "data-state": state.id,
      onclick: () => this.#pick(state.id),
      ondblclick: (event) => this.#rename(event.currentTarget),
    });
  }

  /** @param {HTMLElement} card @param {Protocol.State & Record<string, any>} state */
  #fill(card, state) {
    const facts = [
      state.legal ? (state.obligations ? `◌ ${state.obligations} open` : "") : "✗ illegal",
      state.correct === null ? "" : state.correct ? CORRECT : "✗ wrong",
      state.share === null ? "" : `${Math.round(100 * state.share)} % of the floor`,
    ].filter(Boolean);
    const title = state.title || state.call || "start";
    card.style.transform = `translate(${state.column * (WIDTH + GAP_X)}px, ${state.lane * (HEIGHT + GAP_Y)}px)`;
    card.classList.toggle("off", !state.path);
    card.classList.toggle("marked", state.marked);
    attr(card, "aria-current", state.here ? "step" : null);
    card.tabIndex = state.here ? 0 : -1;
    attr(card, "title", [title, state.call ? `.${state.call}` : "", times(state), ...facts].filter(Boolean).join("\n"));
    attr(
      card,
      "aria-label",
      [`schedule ${state.index}: ${title}`, state.here ? "current" : "", times(state), ...facts]
        .filter(Boolean)
        .join(", "),
    );
    const time = told(state);
    const share = time !== null && state.best ? Math.max(0.02, time / state.best) : 0;
    card.replaceChildren(
      h("span.stitle", null, title),
      h("span.sbar", null, h("i", { style: `width:${(100 * share).toFixed(1)}%` })),
      h("span.sfacts", null, ...short(state, facts)),
    );
  }

  #draw(path) {
    const lines = [];
    for (const state of this.pane.states) {
      const to = entryOf(this.place, state.id);
      const from = this.place.get(state.parent);
      if (!from) continue;
      const x1 = from.column * (WIDTH + GAP_X) + WIDTH;
      const [y1, y2] = [from, to].map((one) => one.lane * (HEIGHT + GAP_Y) + HEIGHT / 2);
      const x2 = to.column * (WIDTH + GAP_X);
      const middle = (x1 + x2) / 2;
      lines.push(
        svg("path", {
          d: `M${x1} ${y1} C${middle} ${y1} ${middle} ${y2} ${x2 - 3} ${y2}`,
          class: path.has(state.id) ? "edge" : "edge off",
        }),
        svg("path", { d: `M${x2 - 8} ${y2 - 4} l5 4 l-5 4`, class: "edge" }),
      );
    }
    this.edges.replaceChildren(...lines);
  }

  #pick(id) {
    if (!this.marked) {
      if (id !== this.pane.current) this.app.act("goto", { state: id });
      return;
    }
    const other = this.marked;
    this.marked = null;
    this.update(this.pane);
    if (id !== other) this.app.compare(id, other);
  }

  #rename(card) {
    const state = card.exItem;
    if (this.editor) return;
    const done = (keep) => {
      const editor = this.editor;
      if (!editor) return;
      this.editor = null;
      const text = editor.value.trim();
      editor.remove();
      card.focus();
      if (keep && text && text !== state.title) this.app.act("rename", { state: state.id, title: text });
    };
    this.editor = h("input.rename", {
      type: "text",
      value: state.title || state.call,
      "aria-label": "name of this schedule",
      onblur: () => done(true),
      onkeydown: (event) => {
        event.stopPropagation();
        if (event.key === "Enter" || event.key === "Escape") done(event.key === "Enter");
      },
    });
    this.editor.style.transform = card.style.transform;
    this.field.append(this.editor);
    this.editor.select();
  }

  #key(event) {
    const card = event.target.closest(".state");
    if (!card || event.ctrlKey || event.metaKey || event.altKey) return;
    const { id, column, lane, parent } = card.exItem;
    const others = this.pane.states.map((state) => ({ id: state.id, parent: state.parent, ...entryOf(this.place, state.id) }));
    const near = (list) =>
      list.sort(
        (a, b) => Math.abs(a.lane - lane) - Math.abs(b.lane - lane) || Math.abs(a.column - column) - Math.abs(b.column - column),
      )[0]?.id;
    const goal = {
      ArrowLeft: () => parent,
      ArrowRight: () => near(others.filter((one) => one.parent === id)),
      ArrowDown: () => near(others.filter((one) => one.lane > lane)),
      ArrowUp: () => near(others.filter((one) => one.lane < lane)),
      Home: () => others[0].id,
      End: () => others.at(-1)?.id,
    }[event.key]?.();
    if (event.key === "F2") this.#rename(card);
    else if (event.key === "Escape" && this.marked) this.mark();
    else if (!goal) return;
    event.preventDefault();
    const next = goal && this.cards.querySelector(`[data-state="${CSS.escape(goal)}"]`);
    if (!next) return;
    for (const other of this.cards.children) other.tabIndex = other === next ? 0 : -1;
    next.focus();
  }
}
