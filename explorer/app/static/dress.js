/**
 * What the points of a figure look like on this screen: the selected node stands out, one run of it has an outline, and squares
 * are as large as their cells are apart.  Everything here is a change of a trace, told before or after it is drawn.
 */

import { there } from "./dom.js";
import { oneRun, squares, within } from "./marks.js";

/** Points with nodes of their own; a heat map has no marks. */
const marked = (trace) => Array.isArray(trace.customdata) && trace.type !== "heatmap";

/** What a trace has at a path of names with dots. */
const at = (trace, path) => path.split(".").reduce((value, name) => value?.[name], trace);

/** Write a change into a trace, without touching what it shares with others. */
export function put(trace, change) {
  for (const [path, value] of Object.entries(change)) {
    const names = path.split(".");
    const last = there(names.pop(), "name of what changes");
    let owner = trace;
    for (const name of names) owner = owner[name] = { ...owner[name] };
    owner[last] = value;
  }
}

/** Changes of one trace each, as one call of Plotly's `restyle`; a trace that a name does not concern has undefined there. */
export function together(changes) {
  const byTrace = new Map();
  for (const { index, ...change } of changes) byTrace.set(index, { ...byTrace.get(index), ...change });
  const names = new Set([...byTrace.values()].flatMap((change) => Object.keys(change)));
  const update = Object.fromEntries([...names].map((name) => [name, [...byTrace.values()].map((change) => change[name])]));
  return { indices: [...byTrace.keys()], update };
}

/** Only what differs from what a trace has. */
function lacking(trace, index, wanted) {
  const differs = ([path, value]) => JSON.stringify(at(trace, path) ?? null) !== JSON.stringify(value ?? null);
  const change = Object.fromEntries(Object.entries(wanted).filter(differs));
  return Object.keys(change).length ? [{ index, ...change }] : [];
}

/**
 * Points of the selected node stand out, and one run of it has an outline.
 *
 * @param {object[]} traces
 * @param {{node: string|null, near: number|null, colour: string, runs: boolean}} how the node; the point that the run begins from;
 *   the outline's colour; whether runs have outlines
 * @returns {{changes: object[], words: string[]}}
 */
export function marking(traces, { node, near, colour, runs }) {
  const changes = [];
  const words = [];
  traces.forEach((trace, index) => {
    if (!marked(trace)) return;
    const selectedpoints = node === null ? null : within(trace, node);
    changes.push(...lacking(trace, index, { selectedpoints }));
    if (trace.meta?.loops) changes.push(...outline(trace, index, { node, near, colour, runs }, words));
  });
  return { changes, words };
}

/** One run of the selected node has an outline, and words, beside the others of the node. */
function outline(trace, index, { node, near, colour, runs }, words) {
  const run = runs ? oneRun(trace, node, near) : null;
  const whole = run && run.points.length === trace.customdata.length && run.points.length > 1;
  const inside = new Set(run && !whole ? run.points : []);
  if (inside.size) words.push(runWords(trace, node, run));
  const sign = [...inside].join();
  if ((trace.meta.outlined ?? "") === sign) return [];
  trace.meta.outlined = sign;
  const each = (one, other) => trace.customdata.map((_, point) => (inside.has(point) || !inside.size ? one : other));
  if (trace.type === "scatter3d") return [{ index, "marker.symbol": each("square", "square-open") }];
  return [{ index, "marker.line.width": inside.size ? each(2.5, 0) : 0, "marker.line.color": colour }];
}

/** What has an outline, in words. */
function runWords(trace, node, run) {
  const name = /<b>(.*?)<\/b>/.exec(trace.hovertext?.[run.at] ?? "")?.[1] ?? node;
  if (run.innermost) return `Outlined: ${name}, one of ${within(trace, node).length} instances shown of ${node}.`;
  return `Outlined: one run of ${node}, ${run.points.length} of ${within(trace, node).length} instances shown.`;
}

/**
 * Squares as large as their cells are apart on this screen; digits only where they can be read.
 *
 * @param {object[]} traces
 * @param {object} axes Plotly's full layout: each axis has its `range` and its `_length` in pixels
 * @returns {{changes: object[], hidden: boolean}} whether digits had to be left out
 */
export function sizing(traces, axes) {
  const sizes = new Map();
  const changes = [];
  let hidden = false;
  const pitch = (name, cell) => {
    const axis = axes[`${name[0]}axis${name.slice(1)}`];
    return axis && (axis._length / Math.abs(axis.range[1] - axis.range[0])) * cell;
  };
  traces.forEach((trace, index) => {
    const [x, y] = [trace.xaxis ?? "x", trace.yaxis ?? "y"];
    if (trace.meta?.cell) {
      const apart = [pitch(x, trace.meta.cell[0]), pitch(y, trace.meta.cell[1])];
      if (apart.includes(undefined)) return;
      const { size, font, legible } = squares(trace.meta, apart[0], apart[1]);
      sizes.set(x, size);
      hidden ||= Boolean(trace.text) && !legible;
      const written = Boolean(trace.text) && legible;
      const wanted = { "marker.size": size, mode: written ? "markers+text" : "markers" };
      changes.push(...lacking(trace, index, written ? { ...wanted, "textfont.size": font } : wanted));
    } else if (trace.meta?.more && sizes.has(x)) {
      changes.push(...lacking(trace, index, { "marker.size": sizes.get(x) + trace.meta.more }));
    }
  });
  return { changes, hidden };
}
