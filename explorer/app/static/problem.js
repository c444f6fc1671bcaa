/** A refusal in words: what, where, why, the pair of instances, what to try; and its counterexample, executed. */

import { h, once } from "./dom.js";
import { fragment } from "./markup.js";

/** A term and its description, left out where there is none. */
const pair = (term, ...content) => (content.some(Boolean) ? [h("dt", null, term), h("dd", null, ...content)] : []);

/** The two instances of a finding, the one that runs first in the program first, and what they meet on. @param {Protocol.Witness} finding */
const instances = (finding) => [
  h("code", null, finding.source),
  " → ",
  h("code", null, finding.sink),
  finding.array ? h("span.soft", null, ` on ${cellName(finding.array, finding.element)}`) : "",
];

const cellName = (array, element) => `${array}${element?.length ? `[${element.join(", ")}]` : ""}`;

/** A problem of the front end itself. @param {string} why @returns {Protocol.Problem} */
export function failure(why) {
  const what = "the explorer's front end failed";
  const box = h("div.problem", { role: "group", "aria-label": what }, h("p.what", null, `✗ ${what}`), h("p", null, why));
  return { what, where: "", why, hints: [], finding: null, html: box.outerHTML };
}

/**
 * A problem's box with what `tools` can do for it; what they cannot is taken out of it, or left as words.
 * @param {Protocol.Problem} problem
 * @param {Record<string, any>} tools `{ brush, apply(call), run(call, host, button), pair(call), call }`; `call` is the refused step
 */
export function problemBox(problem, { brush, apply, run, pair: draw, call } = {}) {
  const content = fragment(problem.html);
  const box = /** @type {HTMLElement} */ (content.firstElementChild);
  const host = h("div.counter", { "aria-live": "polite" });
  const button = (kind, does) => {
    const found = box.querySelector(kind);
    if (does && call) found?.addEventListener("click", () => does(found));
    else found?.remove();
  };
  button(".execute", run && ((found) => run(call, host, found)));
  button(".drawpair", draw && (() => draw(call)));
  for (const link of box.querySelectorAll(".nodelink")) link.addEventListener("click", () => brush?.set(link.dataset.node));
  for (const hint of box.querySelectorAll("[data-call]")) {
    if (apply) hint.addEventListener("click", (event) => once(event) && apply(hint.dataset.call));
    else hint.replaceWith(h("span.hintword", null, hint.textContent.replace(" →", "")));
  }
  for (const empty of box.querySelectorAll("dd:empty")) {
    empty.previousElementSibling.remove();
    empty.remove();
  }
  box.append(host);
  return box;
}

/** An open obligation on one line: what is owed, and the steps that settle it. @param {Protocol.Problem} problem @param {Record<string, any>} tools */
export function owedLine(problem, { apply }) {
  return h(
    "div.owed",
    { role: "group", "aria-label": `open: ${problem.what}` },
    h("span", { "aria-hidden": "true" }, "◌ "),
    h("b", null, "open "),
    h("span.what", null, problem.what),
    ...(problem.hints ?? []).map((hint) =>
      hint.call
        ? h(
            "button.hint",
            { type: "button", "data-call": hint.call, title: hint.text, onclick: (event) => once(event) && apply(hint.call) },
            h("code", null, hint.call),
            h("span", { "aria-hidden": "true" }, " →"),
          )
        : h("span.hintword", null, hint.text),
    ),
  );
}

/** Cells of the output around the first wrong one, as they stand in memory: what came out above what must. */
function strip(rows) {
  const cell = (row) =>
    h(
      `div.ocell${row[3] === "wrong" ? ".wrong" : ""}`,
      { title: `${row[0]} is ${row[1]}, must be ${row[2]}` },
      h("span.soft", null, row[0]),
      h(row[3] === "wrong" ? "b.bad" : "span", null, row[3] === "wrong" ? `✗ ${row[1]}` : row[1]),
      row[3] === "wrong" ? h("span.good", null, `must be ${row[2]}`) : h("span.soft", null, "✓ right"),
    );
  return h("div.ostrip", { role: "group", "aria-label": "cells around the first wrong one", tabindex: 0 }, ...rows.map(cell));
}

/** Both orders side by side: the writes of the wrong cell with their values, and the pair that changes places. @param {Protocol.Counterexample} data @param {string} cell */
function orders(data, cell) {
  const { finding } = data;
  const list = (name, items) => h("div.oorder", null, h("h5", null, name), h("ol", null, ...items.map((item) => h("li", null, ...item))));
  const program = (data.trace ?? []).map(([who, value]) =>
    value ? [h("code", null, who), ` leaves ${cell} = `, h("b", null, value)] : [who]);
  const at = (who, when) => [h("code", null, who), when ? h("span.soft", null, ` at ${when}`) : ""];
  const refused = finding?.source && finding.sink
    ? [at(finding.sink, finding.sink_order), at(finding.source, finding.source_order),
        ["in the end ", h("code", null, cell), " is ", h("b.bad", null, data.got)]]
    : [["in the end ", h("code", null, cell), " is ", h("b.bad", null, data.got)]];
  return h("div.orders", null, list(`in the program: ${data.expected}`, program.length ? program : [[h("code", null, cell)]]),
    list(`in the refused order: ${data.got}`, refused));
}

/** The illegal order, executed: the cells with the wrong one, both orders, and the inputs they ran on. @param {Protocol.Counterexample} data */
export function counterBox(data) {
  const rows = data.cells ?? [];
  const sizes = Object.entries(data.sizes ?? {})
    .map(([name, value]) => `${name} = ${value}`)
    .join(", ");
  const cell = data.array ? cellName(data.array, data.element) : "";
  return h(
    "div.counterbox",
    { role: "group", "aria-label": "the counterexample, executed" },
    h(
      "p.what",
      null,
      h(`span.${data.caught ? "bad" : "soft"}`, { "aria-hidden": "true" }, data.caught ? "✗ " : "· "),
      data.verdict,
    ),
    rows.length ? strip(rows) : null,
    cell && data.got ? orders(data, cell) : null,
    h(
      "dl",
      null,
      ...pair("inputs", ...(data.inputs ?? []).map(([, values]) => h("div", null, h("code", null, values)))),
      ...pair("run at", sizes),
      ...pair("shown by", data.shown),
      ...pair("CPU device", data.device),
      ...(data.finding?.source && data.finding.sink ? pair("pair", ...instances(data.finding)) : []),
    ),
    data.text
      ? h(
          "details",
          null,
          h("summary", null, "the illegal order as CUDA"),
          h("pre.cudatext", { tabindex: 0, "aria-label": "the illegal order as CUDA" }, data.text),
        )
      : null,
  );
}
