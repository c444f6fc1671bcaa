/**
 * How a reduction's updates may be combined, before one way is chosen: a row for each, with what it costs and guarantees.
 * A row's button takes its steps as one action; a way that cannot be taken says why.
 */

import { attr, h, keyed, once, rove, say, show } from "./dom.js";

const COLUMNS = [
  ["way", "the way to combine the updates: its button takes it"],
  ["same bits", "whether every run gives the same bits"],
  ["error ≤", "bound of the error against the exact sum, with plain additions in each thread"],
  ["launches", "launches of the whole schedule"],
  ["parts", "partial results of one element, one for each block that updates it"],
  ["work-space", "global memory beyond what the schedule uses already"],
  ["first set", "bytes of global memory that are set to a first value before the updates"],
  ["atomics", "atomic operations on the busiest address"],
];
const METHODS = { plain: "plain", pairwise: "in pairs", kahan: "Kahan" };

const number = (value) => value.toLocaleString("en-US");
const power = (value) => value.toExponential(1).replace("e-", "e−").replace("e+", "e");

/** The error's bound by how each thread adds. */
const bounds = (way) => way.errors.map(([method, bound]) => `${METHODS[method] ?? method} ${power(bound)}`).join(", ");

/** A way in words, for the line under the table. @param {Protocol.WayData} way */
function story(way) {
  const barriers = way.barriers ? `; ${way.barriers} barrier${way.barriers > 1 ? "s" : ""} of the whole grid` : "";
  const error = bounds(way) ? `. Error: ${bounds(way)}` : "";
  return `${way.how}: ${way.words}${barriers}${error}. ${way.calls.map((call) => `.${call}`).join(" ")}`;
}

/** The cells of a way that can be taken. @param {Protocol.WayData} way */
function facts(way) {
  const plain = way.errors.find(([method]) => method === "plain");
  return [
    h(`td.${way.deterministic ? "good" : "bad"}`, null, way.deterministic ? "✓ yes" : "✗ no"),
    h("td.n", { title: bounds(way) || "nothing is rounded" }, plain ? power(plain[1]) : "exact"),
    h("td.n", null, number(way.launches)),
    h("td.n", null, number(way.parts)),
    h("td.n", null, way.workspace),
    h("td.n", null, way.initial),
    h("td.n", null, number(way.atomics)),
  ];
}

export class Ways {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.element = h("div.ways", { hidden: true });
  }

  /** Show the choices. @param {Protocol.WaysData[]} choices */
  update(choices) {
    keyed(
      this.element,
      choices ?? [],
      (choice) => choice.target,
      () => this.#box(),
      (box, choice) => this.#fill(box, choice),
    );
    show(this.element, Boolean(choices?.length));
  }

  #box() {
    const box = h("section.waybox");
    box.exTitle = h("h4");
    box.exNote = h("p.soft.waynote", { role: "status" });
    box.exBody = h("tbody", {
      onkeydown: (event) => rove(event, [...box.exBody.querySelectorAll("[data-rove]")]),
      onfocusin: (event) => this.#tell(box, event.target.closest("tr")),
      onfocusout: () => this.#tell(box, null),
      onpointerover: (event) => event.pointerType === "mouse" && this.#tell(box, event.target.closest("tr")),
      onpointerleave: () => this.#tell(box, null),
    });
    const head = COLUMNS.map(([name, title]) => h("th", { scope: "col", title }, name));
    const table = h("table", null, h("thead", null, h("tr", null, ...head)), box.exBody);
    box.append(box.exTitle, h("div.wayscroll", null, table), box.exNote);
    return box;
  }

  #fill(box, choice) {
    const where = choice.loops.join(", ");
    box.exChoice = choice;
    box.exTitle.replaceChildren("Combine the updates of ", h("code", null, choice.array), ` over ${choice.over} (`, h("code", null, where), ")");
    attr(box, "aria-label", `ways to combine the updates of ${choice.array} over ${choice.over} ${where}`);
    box.exBody.replaceChildren(...choice.ways.map((way, index) => this.#row(choice, way, index)));
    this.#tell(box, null);
  }

  /** @param {Protocol.WaysData} choice @param {Protocol.WayData} way @param {number} index */
  #row(choice, way, index) {
    const button = h(
      "button.small.wayname",
      {
        type: "button",
        "data-rove": "",
        "data-how": way.how,
        tabindex: index ? -1 : 0,
        "aria-label": way.label,
        "aria-disabled": way.applies ? null : "true",
        onclick: (event) => once(event) && way.applies && this.#take(choice, way),
      },
      way.how,
    );
    const cells = way.applies
      ? facts(way)
      : [h("td.soft", { colspan: COLUMNS.length - 1 }, h("span.bad", { "aria-hidden": "true" }, "✗ "), way.problem?.what ?? "not here")];
    const row = h(`tr.way.${way.applies ? "ok" : "no"}`, null, h("th", { scope: "row" }, button), ...cells);
    row.exWay = way;
    return row;
  }

  /** What a row means, under the table; without a row, how to read it. */
  #tell(box, row) {
    const way = row?.exWay;
    const choice = box.exChoice;
    const words = !way
      ? choice.unit && `error ${choice.unit}`
      : way.applies
        ? story(way)
        : [way.problem?.why, ...(way.problem?.hints ?? []).map((hint) => `try: ${hint.text}`)].filter(Boolean).join("; ");
    say(box.exNote, words || way?.problem?.what || "");
  }

  #take(choice, way) {
    if (way.calls.length === 1) return this.app.apply(way.calls[0]);
    return this.app.act("take", { calls: way.calls, title: `collect ${choice.array} by ${way.how}` });
  }
}
