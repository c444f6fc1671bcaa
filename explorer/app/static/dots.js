/** The distribution of timings as a strip of dots, one row per kind of sample, with its median: a small SVG. */

import { duration, svg } from "./dom.js";

const [WIDTH, ROW, TOP] = [360, 34, 6];
const LONGEST = 24; /* characters of a row's name */

/** A row's name: without its remark in brackets where that makes it too long for the strip. */
function shortName(name) {
  const plain = name.length > LONGEST ? name.replace(/ \(.*\)$/, "") : name;
  return plain.length > LONGEST ? `${plain.slice(0, LONGEST - 1)}…` : plain;
}

const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

/** @param {Object<string, number[]>} samples microseconds by kind, as `warm L2` */
export function dots(samples) {
  const rows = Object.entries(samples).filter(([, values]) => values.length);
  const all = rows.flatMap(([, values]) => values);
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const left = 16 + 6 * Math.max(...rows.map(([name]) => shortName(name).length));
  const logarithmic = high > 6 * low;
  const [scale, back] = logarithmic ? [Math.log, Math.exp] : [(value) => value, (value) => value];
  const room = 0.06 * Math.max(scale(high) - scale(low), logarithmic ? 0.1 : high * 0.02);
  const [from, to] = [back(scale(low) - room), back(scale(high) + room)];
  const x = (value) => left + ((scale(value) - scale(from)) / (scale(to) - scale(from))) * (WIDTH - left - 12);
  const height = TOP + rows.length * ROW + 18;
  const words = rows.map(([name, values]) => {
    const [least, most] = [Math.min(...values), Math.max(...values)].map(duration);
    return `${name}: median ${duration(median(values))}, ${values.length} runs from ${least} to ${most}`;
  });
  const drawing = svg("svg", {
    class: "dots",
    viewBox: `0 0 ${WIDTH} ${height}`,
    role: "img",
    "aria-label": `timings. ${words.join(". ")}`,
  });
  drawing.append(svg("path", { class: "axis", d: `M${left} ${height - 16} H${WIDTH - 12}` }));
  for (const value of [from, back((scale(from) + scale(to)) / 2), to]) {
    drawing.append(
      svg(
        "text",
        { class: "tick", x: x(value), y: height - 4, "text-anchor": value === to ? "end" : value === from ? "start" : "middle" },
        duration(value),
      ),
    );
  }
  if (logarithmic) drawing.append(svg("text", { class: "tick", x: left - 8, y: height - 4, "text-anchor": "end" }, "log"));
  rows.forEach(([name, values], index) => {
    const y = TOP + index * ROW + ROW / 2;
    drawing.append(svg("text", { class: "name", x: left - 8, y: y + 4, "text-anchor": "end" }, shortName(name)));
    values.forEach((value, at) => drawing.append(svg("circle", { cx: x(value), cy: y + (((at * 7) % 11) - 5) * 1.6, r: 2.2 })));
    const mid = median(values);
    drawing.append(svg("path", { class: "median", d: `M${x(mid)} ${y - 13} V${y + 13}` }));
  });
  return drawing;
}
