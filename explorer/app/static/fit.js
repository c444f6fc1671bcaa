/** Words of a figure that end where their box does: how much of a line of text there is room for is known only on the screen. */

import { there } from "./dom.js";

const GAP = 6; /* pixels that stay free before the end */
const pen = there(document.createElement("canvas").getContext("2d"), "canvas");

/** A line of text with tags, as far as there is room for it. */
function cut(html, room) {
  const plain = html.replace(/<[^>]*>/g, "");
  if (pen.measureText(plain).width <= room) return html;
  const from = html.lastIndexOf(">") + 1;
  const before = html.slice(0, from).replace(/<[^>]*>/g, "");
  let text = html.slice(from).replace(/…$/, "");
  while (text.length > 1 && pen.measureText(`${before}${text}…`).width > room) text = text.slice(0, -1);
  return `${html.slice(0, from)}${text.replace(/[…\s]+$/, "")}…`;
}

/**
 * Annotations that have to end somewhere along x, and do not.
 *
 * @param {object} layout what the kernel sent: `meta.within` has pairs of an annotation's place and the x where it ends
 * @param {object} drawn Plotly's full layout: its x axis has its `range` and its `_length` in pixels
 * @returns {object} changes of the layout
 */
export function fitting(layout, drawn) {
  const changes = {};
  const { range, _length: length } = drawn?.xaxis ?? {};
  if (!length) return changes;
  for (const [at, end] of layout?.meta?.within ?? []) {
    const { text, x, font } = layout.annotations[at];
    const { family, size } = { ...drawn.font, ...font };
    pen.font = `${size}px ${family}`;
    const wanted = cut(text, ((end - x) / Math.abs(range[1] - range[0])) * length - GAP);
    if (drawn.annotations[at]?.text !== wanted) changes[`annotations[${at}].text`] = wanted;
  }
  return changes;
}
