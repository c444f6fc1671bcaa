/** The distribution of timings as a strip of dots, one row per kind of sample, with its median: a small SVG. */

import { duration, svg } from "./dom.js";

const [WIDTH, ROW, LEFT, TOP] = [340, 34, 64, 6];

export const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

/** @param {Object<string, number[]>} samples microseconds by kind, as `warm L2` */
export function dots(samples) {
  const rows = Object.entries(samples).filter(([, values]) => values.length);
  const all = rows.flatMap(([, values]) => values);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const room = Math.max(high - low, high * 0.02);
  const [from, to] = [Math.max(0, low - 0.08 * room), high + 0.08 * room];
  const x = (value) => LEFT + ((value - from) / (to - from)) * (WIDTH - LEFT - 12);
  const height = TOP + rows.length * ROW + 18;
  const words = rows.map(([name, values]) => `${name}: median ${duration(median(values))}, ${values.length} runs from ${duration(Math.min(...values))} to ${duration(Math.max(...values))}`);
  const drawing = svg("svg", { class: "dots", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": `timings. ${words.join(". ")}` });
  drawing.append(svg("path", { class: "axis", d: `M${LEFT} ${height - 16} H${WIDTH - 12}` }));
  for (const value of [from, (from + to) / 2, to]) {
    drawing.append(svg("text", { class: "tick", x: x(value), y: height - 4, "text-anchor": value === to ? "end" : value === from ? "start" : "middle" }, duration(value)));
  }
  rows.forEach(([name, values], index) => {
    const y = TOP + index * ROW + ROW / 2;
    drawing.append(svg("text", { class: "name", x: LEFT - 8, y: y + 4, "text-anchor": "end" }, name));
    values.forEach((value, at) => drawing.append(svg("circle", { cx: x(value), cy: y + (((at * 7) % 11) - 5) * 1.6, r: 2.2 })));
    const mid = median(values);
    drawing.append(svg("path", { class: "median", d: `M${x(mid)} ${y - 13} V${y + 13}` }));
  });
  return drawing;
}
