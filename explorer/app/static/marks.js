/**
 * Points of the selected node.  A point's customdata is its node.  Where one picture holds points of many nodes inside one
 * another, `meta.around` gives for each node those around it, the innermost first, and `meta.loops` the values of these loops
 * for each point: so one run of a node can be told from the others.
 */

/** The node of a point: customdata is it, or a list that begins with it. */
export const nodeOf = (custom) =>
  (Array.isArray(custom) ? custom[0] : custom && typeof custom === "object" ? custom.node : custom) ?? null;

/** A point's node and those around it, the innermost first. */
const chain = (trace, custom) => [nodeOf(custom), ...(trace.meta?.around?.[nodeOf(custom)] ?? [])];

/** All nodes that a trace has points of. */
export const nodesOf = (trace) =>
  Array.isArray(trace.customdata)
    ? [...new Set(trace.customdata.flat(1).map(nodeOf))].flatMap((node) => chain(trace, node))
    : [];

/** The points that belong to a node. */
export const within = (trace, node) =>
  trace.customdata.flatMap((custom, at) => (chain(trace, custom).includes(node) ? [at] : []));

/**
 * The points of one run of a node: those for which all loops around it have the same values.
 *
 * @param {object} trace
 * @param {string|null} node
 * @param {number|null} near the point to begin from, if it belongs to the node; else the first one that does
 * @returns {{points: number[], at: number, innermost: boolean}|null} null where nothing belongs to it
 */
export function oneRun(trace, node, near) {
  const loops = trace.meta?.loops;
  if (!loops || node === null) return null;
  const all = within(trace, node);
  if (!all.length) return null;
  const at = all.includes(near) ? near : all[0];
  const around = (point) => {
    const nodes = chain(trace, trace.customdata[point]);
    const depth = nodes.indexOf(node);
    return JSON.stringify([nodes.slice(depth), loops[point].slice(depth)]);
  };
  const sign = around(at);
  return { points: all.filter((point) => around(point) === sign), at, innermost: nodeOf(trace.customdata[at]) === node };
}

const SMALLEST = 9;
const LARGEST = 11;
const WIDTH = 0.62; /* of a digit, in its size */

/**
 * How large the squares of a grid may be where its cells are so many pixels apart, and whether digits can be read in them.
 *
 * @param {object} meta of the trace: `share` of the pitch that a square takes, `longest` word
 * @param {number} across pixels from cell to cell
 * @param {number} down
 */
export function squares(meta, across, down) {
  const size = Math.max(Math.round(Math.min(across, down, 46) * meta.share * 10) / 10, 3);
  const font = Math.min(Math.floor((size - 2) / (WIDTH * Math.max(meta.longest, 1))), LARGEST);
  return { size, font: Math.max(font, 1), legible: font >= SMALLEST && down >= font + 2 };
}
