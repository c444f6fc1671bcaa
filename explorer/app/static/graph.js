/** The statement graph: values as boxes in columns, an arrow for each edge with its kind and its scheme, kernels told by number. */

import { svg } from "./dom.js";

const [WIDTH, HEIGHT, ACROSS, DOWN, LABEL] = [80, 34, 68, 26, 15];
const WORDS = 56; /* the width of a scheme's name */
const SMALLEST = 0.8; /* of its natural width; then the graph scrolls */
const ENDS = { cut: "✂ ", global: "▥ ", grid: "‖ ", recompute: "⟳ " };

/** Column of each value: one more than the last of those it is made from. */
function columns(edges) {
  const column = new Map();
  for (const edge of edges) for (const name of [edge.array, edge.into]) column.set(name, 0);
  for (let round = 0; round < column.size; round += 1)
    for (const edge of edges) column.set(edge.into, Math.max(column.get(edge.into), Math.min(column.get(edge.array) + 1, column.size)));
  return column;
}

/** Where each box stands. */
function places(edges) {
  const column = columns(edges);
  const rows = new Map();
  const place = new Map();
  for (const [name, at] of column) {
    const row = rows.get(at) ?? 0;
    rows.set(at, row + 1);
    place.set(name, { column: at, row, x: at * (WIDTH + ACROSS), y: row * (HEIGHT + DOWN) });
  }
  return place;
}

/** A place for the words of an arrow: at its middle, or farther along where the words of another one stand. */
function free(x1, y1, x2, y2, labels) {
  /** @param {number} t @returns {[number, number]} */
  const at = (t) => {
    const [a, b, c, d] = [(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t ** 3];
    return [a * x1 + b * (x1 + ACROSS / 2) + c * (x2 - ACROSS / 2) + d * x2, (a + b) * y1 + (c + d) * y2 - 5];
  };
  const apart = ([x, y]) => labels.every(([u, v]) => Math.abs(x - u) > WORDS || Math.abs(y - v) > LABEL - 3);
  return [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8].map(at).find(apart) ?? at(0.5);
}

/**
 * @param {object[]} edges EdgeData of the protocol
 * @param {object|null} price StitchPrice: schemes and kernels
 * @param {string|null} active id of the edge that is marked
 * @param {(id: string) => void} choose an arrow is clicked
 */
export function graph(edges, price, active, choose) {
  const place = places(edges);
  let room = LABEL;
  const boxes = [...place.values()];
  const width = Math.max(...boxes.map((one) => one.x)) + WIDTH + 4;
  const bottom = Math.max(...boxes.map((one) => one.y)) + HEIGHT;
  const kernel = (name) => (price?.groups ?? []).findIndex((group) => group.includes(name)) + 1;
  const several = (price?.groups ?? []).length > 1;
  const parts = [];
  const over = new Map();
  const labels = [];
  for (const edge of edges) {
    const [from, to] = [place.get(edge.array), place.get(edge.into)];
    const scheme = price?.chosen[edge.id] ?? "";
    const [x1, y1, x2, y2] = [from.x + WIDTH, from.y + HEIGHT / 2, to.x - 5, to.y + HEIGHT / 2];
    const skips = to.column - from.column - 1;
    const blocked = skips > 0 && from.row === to.row;
    const level = blocked ? (over.get(skips) ?? 0) + 1 : 0;
    if (blocked) over.set(skips, level);
    const height = blocked ? 12 + 22 * (skips + level - 1) : 0;
    room = Math.max(room, height + LABEL);
    const path = blocked
      ? `M ${from.x + WIDTH - 14} ${from.y} C ${from.x + WIDTH + 10} ${from.y - height * 1.35}, ${to.x - 10} ${to.y - height * 1.35}, ${to.x + 12} ${to.y - 5}`
      : `M ${x1} ${y1} C ${x1 + ACROSS / 2} ${y1}, ${x2 - ACROSS / 2} ${y2}, ${x2} ${y2}`;
    const apart = several && kernel(edge.array) !== kernel(edge.into);
    const words = `${ENDS[scheme] ?? ""}${scheme || edge.kind}`;
    const [cx, cy] = blocked ? [(from.x + WIDTH + to.x) / 2, from.y - height - 7] : free(x1, y1, x2, y2, labels);
    labels.push([cx, cy]);
    parts.push(
      svg(
        "g",
        { class: `gedge${edge.id === active ? " on" : ""}${apart ? " apart" : ""}${scheme === "grid" ? " grid" : ""}`, "data-edge": edge.id, onclick: () => choose(edge.id) },
        svg("path", { d: path, class: "gline" }),
        svg("path", { d: blocked ? `M ${to.x + 8} ${to.y - 9} l 4 8 l 5 -7 z` : `M ${x2 - 2} ${y2 - 4} l 7 4 l -7 4 z`, class: "ghead" }),
        svg("text", { x: cx, y: cy, "text-anchor": "middle", class: "gscheme" }, words),
      ),
    );
  }
  for (const [name, at] of place) {
    const number = kernel(name);
    parts.push(
      svg(
        "g",
        { class: `gvalue g${number % 4}` },
        svg("rect", { x: at.x, y: at.y, width: WIDTH, height: HEIGHT, rx: 7 }),
        svg("text", { x: at.x + WIDTH / 2, y: at.y + (several ? 14 : 21), "text-anchor": "middle", class: "gname" }, name.length > 13 ? `${name.slice(0, 12)}…` : name),
        ...(several ? [svg("text", { x: at.x + WIDTH / 2, y: at.y + 27, "text-anchor": "middle", class: "gkernel" }, `kernel ${number}`)] : []),
      ),
    );
  }
  const top = room;
  return svg(
    "svg",
    { class: "graph", style: `min-width: ${Math.round(SMALLEST * width)}px`, viewBox: `-3 ${-top} ${width + 6} ${bottom + top + 4}`, width: width + 6, height: bottom + top + 4, "aria-hidden": "true" },
    ...parts,
  );
}
