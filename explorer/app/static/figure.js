/**
 * One figure: its static picture at once, Plotly when it is there, and the same content as a table for readers who do not see
 * it.  Points carry their node: the selected ones stand out, a click selects.
 */

import { attr, debounce, h, said, say, show } from "./dom.js";
import { marking, sizing, together, put } from "./dress.js";
import { fitting } from "./fit.js";
import { harmless } from "./markup.js";
import { nodeOf, nodesOf } from "./marks.js";
import { BAR, plotly, themed } from "./plotly.js";
import { problemBox } from "./problem.js";

/** The kernel says which buttons there are (views/figures/spec.py): Plotly's own list grows with its versions. */
const CONFIG = { responsive: false, displayModeBar: "hover", scrollZoom: false };

/** Options that choose what is shown and which part of it: a node that is selected elsewhere goes before them. */
const SUBJECT = /^(statement|access|at\..*|from\..*)$/;

export class Figure {
  /** @param {App} app @param {string} name */
  constructor(app, name) {
    this.app = app;
    this.name = name;
    this.chosen = {};
    this.stale = true;
    this.turn = 0;
    this.options = h("div.options");
    this.title = h("h4");
    this.call = null;
    this.note = h("p.note.soft");
    this.marked = h("p.note.marked.soft", { hidden: true });
    this.plot = h("div.plot");
    this.picture = h("div.picture", { tabindex: 0, role: "region", "aria-label": "the figure as a picture" });
    this.table = h("table");
    this.details = h(
      "details.astable",
      null,
      h("summary", null, "as a table"),
      h("div.tscroll", { tabindex: 0, role: "region", "aria-label": "the figure as a table" }, this.table),
    );
    this.problem = h("div");
    this.executed = h("div.executed", { "aria-live": "polite" });
    this.refused = h("p.refusedpair", { hidden: true, role: "status" });
    this.element = h(
      "div.figure",
      null,
      h("div.vhead", null, this.title, h("span.grow"), this.options),
      this.problem,
      this.refused,
      this.executed,
      this.picture,
      this.plot,
      this.marked,
      this.note,
      this.details,
    );
    this.dress = debounce(() => this.#dress(), 60);
    this.watch = new ResizeObserver(() => this.#fit());
    this.watch.observe(this.plot);
  }

  /** Show what a refused step would make, with its pair of instances, until the schedule changes or the reader goes back. */
  pair(call, executed) {
    this.call = call;
    this.executed.replaceChildren(...(executed ? [executed] : []));
    requestAnimationFrame(() => {
      const strip = this.executed.querySelector(".ostrip");
      const wrong = strip?.querySelector(".wrong");
      if (strip && wrong) strip.scrollLeft += wrong.getBoundingClientRect().left - strip.getBoundingClientRect().left - 60;
    });
    this.#release();
    this.fresh(true);
  }

  /** The schedule that is shown again, and not what a step would make of it. */
  forget() {
    this.call = null;
    this.executed.replaceChildren();
  }

  /** The schedule has changed: what is shown is old. */
  spoil() {
    this.stale = true;
  }

  /** Ask for the figure if what is shown is old, `force` asks anyway; busy until the last one asked for is drawn. */
  async fresh(force = false) {
    if (!this.stale && !force) return;
    this.stale = false;
    const turn = ++this.turn;
    attr(this.element, "aria-busy", "true");
    const call = this.call ?? undefined;
    const options = { ...this.chosen, theme: this.app.root.dataset.theme ?? "light" };
    const question = { name: this.name, options, call, have: this.data?.sign };
    const answer = await this.app.link.ask("figure", question, `figure ${this.name}`);
    if (!answer) return;
    this.#sayRefused(call);
    this.problem.replaceChildren(...(answer.problem ? [problemBox(answer.problem, { brush: this.app.brush })] : []));
    if (answer.data && "spec" in answer.data) await this.#draw(answer.data);
    else if (this.drawn) this.dress();
    if (turn === this.turn) attr(this.element, "aria-busy", null);
  }

  /** Mark the selected node. */
  mark(node) {
    if (this.data) this.#highlight(node);
  }

  /** Whether the figure has something of this node. */
  knows(node) {
    return node === null || !this.data || Boolean(this.nodes?.has(node));
  }

  /** Show what is selected elsewhere, whatever had been chosen. */
  follow() {
    this.#release();
    this.spoil();
  }

  /** The theme has changed. */
  recolour() {
    if (!this.drawn) return;
    this.drawn.relayout(this.plot, themed(this.data.spec.layout ?? {}, this.element));
    this.spoil();
  }

  async #draw(data) {
    this.data = data;
    this.near = null;
    const traces = data.spec?.data ?? [];
    this.nodes = new Set([
      ...traces.flatMap(nodesOf),
      ...data.table.map((row) => row[0]),
    ]);
    say(this.title, data.title);
    say(this.note, data.note);
    show(this.note, Boolean(data.note));
    this.#controls(data.options ?? []);
    this.#tabulate(data);
    attr(this.plot, "role", "group");
    attr(this.plot, "aria-label", `${data.title}. ${data.note} The table below holds the same.`);
    this.plot.style.minHeight = data.spec?.layout?.height ? `${Math.min(data.spec.layout.height, 720) + BAR}px` : "";
    if (show(this.plot, traces.length > 0)) await this.#plot(traces, data);
    else this.picture.replaceChildren();
    this.#highlight(this.app.brush.node);
  }

  async #plot(traces, data) {
    if (!this.drawn) this.picture.replaceChildren(...picture(data.svg));
    try {
      const Plotly = await plotly(this.app.link);
      if (this.data !== data) return;
      const layout = themed(data.spec.layout ?? {}, this.element);
      await Plotly.react(this.plot, {
        data: this.#dressed(traces, layout),
        layout,
        config: { ...data.spec.config, ...CONFIG },
        frames: data.spec.frames ?? [],
      });
      if (!this.drawn) {
        this.plot.on?.("plotly_click", (event) => this.#picked(event));
        this.plot.on?.("plotly_relayout", () => this.dress());
      }
      this.drawn = Plotly;
      this.#dress();
      this.picture.replaceChildren();
    } catch (error) {
      show(this.plot, false);
      this.details.open = true;
      say(this.note, `${data.note} (no live plot: ${said(error)})`.trim());
      show(this.note, true);
    }
  }

  /** Copies of traces as they are to be drawn, as far as the axes' lengths on this screen are known from the last drawing. */
  #dressed(traces, layout) {
    const copies = traces.map((trace) => ({ ...trace, meta: trace.meta && { ...trace.meta } }));
    const before = this.plot._fullLayout;
    const axes = before && Object.fromEntries(Object.keys(layout).filter((name) => before[name]?._length && layout[name].range)
      .map((name) => [name, { range: layout[name].range, _length: before[name]._length }]));
    for (const { index, ...change } of this.#missing(copies, axes)) put(copies[index], change);
    return copies;
  }

  #release() {
    for (const name of Object.keys(this.chosen)) if (SUBJECT.test(name)) delete this.chosen[name];
  }

  #sayRefused(call) {
    if (!show(this.refused, Boolean(call))) return;
    const back = () => {
      this.forget();
      this.fresh(true);
    };
    this.refused.replaceChildren(
      h("span.bad", { "aria-hidden": "true" }, "✗ "),
      "what the refused step ",
      h("code", null, call),
      " would make ",
      h("button", { type: "button", onclick: back }, "back to the schedule"),
    );
  }

  #picked(event) {
    const point = event.points?.[0];
    const node = nodeOf(point?.customdata);
    if (!node) return;
    this.near = point.pointNumber;
    if (node === this.app.brush.node) this.dress();
    else this.app.brush.set(node);
  }

  #highlight(node) {
    for (const row of this.table.querySelectorAll("tr[data-node]")) {
      const on = row.dataset.node === node;
      row.classList.toggle("on", on);
      attr(row, "aria-current", on ? "true" : null);
    }
    if (this.drawn && this.knows(node)) this.dress(); /* else it is asked anew, which draws it */
  }

  /**
   * What the drawn figure lacks: the marks of the selected node, squares as large as their cells are apart on this screen, and
   * words that end where they have to.
   * Plotly draws all again for every call, so it is one call, and none where nothing is missing.
   */
  #dress() {
    const { indices, update } = together(this.#missing(this.plot.data ?? [], this.plot._fullLayout));
    const words = fitting(this.data.spec.layout, this.plot._fullLayout);
    if (indices.length) this.drawn.update(this.plot, update, words, indices);
    else if (Object.keys(words).length) this.drawn.relayout(this.plot, words);
  }

  /** The changes that traces need, and the words that go with them. */
  #missing(traces, axes) {
    const node = this.app.brush.node;
    const colour = getComputedStyle(this.element).color;
    const marked = marking(traces, { node: this.nodes?.has(node) ? node : null, near: this.near, colour, runs: !this.call });
    say(this.marked, marked.words.join(" "));
    show(this.marked, marked.words.length > 0);
    const sized = axes ? sizing(traces, axes) : { changes: [], hidden: false };
    say(this.note, `${this.data.note}${sized.hidden ? " Numbers in the cells: a small window, or zoom in." : ""}`);
    return [...marked.changes, ...sized.changes];
  }

  #controls(options) {
    const sign = JSON.stringify(options);
    if (sign === this.optionSign) return;
    this.optionSign = sign;
    const focused = document.activeElement;
    const option = focused && this.options.contains(focused) ? focused.dataset.option : null;
    this.options.replaceChildren(
      ...options.map((option) =>
        h("label", null, `${option.label} `, option.kind === "int" ? this.#number(option) : this.#choice(option)),
      ),
    );
    if (option) this.options.querySelector(`[data-option="${CSS.escape(option)}"]`)?.focus();
  }

  #choice(option) {
    return h(
      "select",
      { "data-option": option.name, onchange: (event) => this.#set(option, option.choices[event.target.selectedIndex]) },
      ...option.choices.map((choice, index) =>
        h("option", { selected: choice === option.value }, String(option.labels?.[index] ?? choice)),
      ),
    );
  }

  #number(option) {
    return h("input", {
      type: "number",
      "data-option": option.name,
      min: option.min,
      max: option.max,
      step: 1,
      value: option.value,
      title: `${option.min} … ${option.max}`,
      onchange: (event) => this.#set(option, Number(event.target.value)),
    });
  }

  #set(option, value) {
    this.chosen[option.name] = value;
    this.fresh(true);
  }

  /** @param {Protocol.FigureData} data */
  #tabulate(data) {
    const header = data.header ?? [];
    this.table.replaceChildren(
      h("caption.ex-sr", null, data.title),
      h("thead", null, h("tr", null, ...header.map((name) => h("th", { scope: "col" }, name)))),
      h(
        "tbody",
        null,
        ...data.table.map(([node, ...cells]) => {
          const shown = cells.length < header.length ? [node ?? "", ...cells] : cells;
          return h(
            "tr",
            { "data-node": node },
            ...shown.map((cell, index) =>
              h(
                "td",
                null,
                index === 0 && node
                  ? h("button.nodelink", { type: "button", onclick: () => this.app.brush.set(node) }, String(cell ?? node))
                  : String(cell ?? ""),
              ),
            ),
          );
        }),
      ),
    );
    show(this.details, data.table.length > 0);
    if (!(data.spec?.data ?? []).length && data.table.length) this.details.open = true;
  }

  #fit() {
    const { clientWidth: width, clientHeight: height } = this.plot;
    if (!this.drawn || !width || (width === this.width && height === this.height)) return;
    [this.width, this.height] = [width, height];
    this.drawn.Plots.resize(this.plot)?.then(() => {
      /* Plotly waits a while and then leaves a hidden plot as it was: it is fitted when it is seen again */
      if (this.plot.clientWidth) this.#dress();
      else this.width = this.height = null;
    });
  }
}

/** An SVG text as elements, without anything that could run or load. */
export function picture(text) {
  if (!text) return [];
  const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  if (root.localName !== "svg") return [];
  const holder = document.createDocumentFragment();
  holder.append(document.importNode(root, true));
  harmless(holder);
  return [...holder.childNodes];
}
