/** The views: one tab each; on a wide cell the CUDA text stands beside the figures, so that both follow the brush. */

import { entryOf, h, part, show } from "./dom.js";
import { Compare } from "./compare.js";
import { Cuda } from "./cuda.js";
import { Figure } from "./figure.js";
import { Measure } from "./measure.js";
import { Stitching } from "./stitching.js";
import { Tabs } from "./tabs.js";

const FIGURES = {
  domain: "Domain",
  memory: "Memory",
  pipeline: "Pipeline",
  roofline: "Roofline",
  occupancy: "Occupancy",
  partials: "Partials",
  dependences: "Dependences",
};
/** Figures that share a tab, of which the reader chooses one: its name, and how it is called there. */
const SHARED = {
  memory: { memory: "accesses", fragments: "fragments" },
  pipeline: { pipeline: "order", timeline: "timeline", roles: "roles", ablation: "ablation", legality: "legality" },
  roofline: { roofline: "roofline", price: "price" },
};
const BESIDE = 1120;

export class Views {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.cuda = new Cuda(app);
    this.compare = new Compare(app);
    this.stitching = new Stitching(app);
    const names = Object.keys(FIGURES).flatMap((name) => Object.keys(SHARED[name] ?? { [name]: "" }));
    this.figures = new Map(names.map((name) => [name, new Figure(app, name)]));
    part(entryOf(this.figures, "roles").element, ".vhead").after(new Measure(app).element);
    this.chosen = new Map(Object.keys(FIGURES).map((name) => [name, name]));
    this.choices = new Map(Object.keys(SHARED).map((name) => [name, this.#choice(name)]));
    this.cudaPanel = h("div.vpanel");
    this.aside = h("div.vpanel.beside", { role: "region", "aria-label": "CUDA" });
    const entry = (name, title, content) => ({
      name,
      title,
      panel: content instanceof HTMLElement ? content : h("div.vpanel", null, content.element),
    });
    const figure = ([name, title]) => entry(name, title, SHARED[name] ? this.#together(name) : this.figures.get(name));
    const [domain, ...others] = Object.entries(FIGURES);
    this.tabs = new Tabs(
      "views",
      [figure(domain), entry("cuda", "CUDA", this.cudaPanel), ...others.map(figure), entry("stitching", "Stitching", this.stitching),
        entry("compare", "Compare", this.compare)],
      () => this.#opened(),
    );
    this.body = h("div.vbody", null, h("div.vmain", null, ...this.tabs.entries.map((one) => one.panel)), this.aside);
    this.element = h("section.pane.viewpane", { "aria-label": "views" }, this.tabs.strip, this.body);
    this.cudaPanel.append(this.cuda.element);
    app.brush.on((node) => this.#figure()?.mark(node));
    app.link.on("selection", (pane) => this.#selected(pane?.node ?? null));
    app.link.on("panes", (panes) => this.#changed(panes));
    new ResizeObserver(() => this.#arrange()).observe(this.element);
  }

  /** Open a view by name. */
  open(name) {
    const tab = name in FIGURES ? null : Object.keys(SHARED).find((one) => name in SHARED[one]);
    if (tab) {
      this.#choose(tab, name);
      this.tabs.open(tab);
    } else if (name !== "cuda" || !this.beside) this.tabs.open(name);
  }

  /** Draw the pair of instances that refuses a step, in the schedule that the step would make. @param {string} call @param {Element} [executed] */
  pair(call, executed) {
    entryOf(this.figures, "domain").pair(call, executed);
    this.tabs.open("domain");
    this.element.scrollIntoView({ block: "nearest" });
  }

  /** The theme has changed: figures are drawn in its colours. */
  recolour() {
    for (const figure of this.figures.values()) figure.recolour();
    this.#opened();
  }

  /** The figure that is seen; none where a tab holds something else. */
  #figure() {
    return this.figures.get(this.chosen.get(this.tabs.current) ?? "");
  }

  /** The panel of a tab that several figures share. */
  #together(tab) {
    const all = Object.keys(SHARED[tab]).map((name) => entryOf(this.figures, name).element);
    for (const one of all.slice(1)) show(one, false);
    return h("div.vpanel", null, h("div.options.which", null, h("label", null, "show ", this.choices.get(tab))), ...all);
  }

  #choice(tab) {
    const names = Object.keys(SHARED[tab]);
    return h(
      "select",
      { "data-which": tab, onchange: (event) => this.#choose(tab, names[event.target.selectedIndex]) },
      ...names.map((name) => h("option", { value: name }, SHARED[tab][name])),
    );
  }

  #choose(tab, name) {
    this.chosen.set(tab, name);
    entryOf(this.choices, tab).value = name;
    for (const one of Object.keys(SHARED[tab])) show(entryOf(this.figures, one).element, one === name);
    this.#opened();
  }

  #arrange() {
    const beside = this.app.root.clientWidth >= BESIDE;
    if (beside === this.beside) return;
    this.beside = beside;
    this.tabs.offer("cuda", !beside);
    (beside ? this.aside : this.cudaPanel).append(this.cuda.element);
    show(this.aside, beside);
    this.body.classList.toggle("two", beside);
  }

  #opened() {
    if (!this.tabs || !this.app.ready) return;
    this.#figure()?.fresh();
    if (this.tabs.current === "compare") this.compare.fresh();
    if (this.tabs.current === "stitching") this.stitching.fresh();
  }

  #changed(panes) {
    const timed = panes.search?.trials.filter((trial) => trial.time_us !== null).length ?? this.timed;
    if (timed !== this.timed) {
      this.timed = timed; /* the times of a search stand in the ablation as they come */
      entryOf(this.figures, "ablation").spoil();
      this.#opened();
    }
    if (panes.measure && panes.measure.number !== (this.noted ?? 0)) {
      this.noted = panes.measure.number;
      entryOf(this.figures, "roles").spoil();
      this.#opened();
    }
    if (!panes.loops && !panes.cuda && !panes.history && !panes.target && !(panes.run && panes.run.status !== "running")) return;
    for (const figure of this.figures.values()) {
      if (panes.loops) figure.forget();
      figure.spoil();
    }
    this.#opened();
  }

  /** The kernel has the selection, too: a figure that does not know the node is asked anew. */
  #selected(node) {
    if (node !== this.app.brush.node || node === this.shown) return;
    this.shown = node;
    for (const figure of this.figures.values()) if (!figure.knows(node)) figure.follow();
    this.#opened();
  }
}
