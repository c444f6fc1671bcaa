/** plotly.js on demand: asked of the kernel once per page, run from a Blob, shared by every widget of the page. */

/** Pixels above a figure for its bar of buttons, which would stand on its words otherwise. */
export const BAR = 26;
const SHARED = "__schedule_explorer_plotly__";

/** The Plotly object, or a rejected promise that says why there is none. */
export function plotly(link) {
  globalThis[SHARED] ??= load(link).catch((error) => {
    delete globalThis[SHARED];
    throw error;
  });
  return globalThis[SHARED];
}

async function load(link) {
  if (globalThis.Plotly?.react) return globalThis.Plotly;
  const answer = await link.ask("plotly", {}, "plotly");
  if (!answer?.buffers?.length) throw new Error(answer?.problem?.what ?? "plotly.js did not arrive");
  // The page may have an AMD loader or a global of that name: the wrapper keeps plotly.js from both.
  const wrapper = [
    "const module = { exports: {} }, exports = module.exports, define = undefined, window = globalThis;\n(function () {\n",
    answer.buffers[0],
    "\n}).call(globalThis);\nexport default module.exports;",
  ];
  const before = globalThis.Plotly;
  const url = URL.createObjectURL(new Blob(wrapper, { type: "text/javascript" }));
  try {
    const found = (await import(/* webpackIgnore: true */ url)).default;
    const result = found?.react ? found : globalThis.Plotly;
    if (before !== undefined) globalThis.Plotly = before;
    return result;
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** The colours of the widget as a Plotly layout; figures bring data and axes only. */
export function themed(layout, host) {
  const style = getComputedStyle(host);
  const value = (name) => resolve(host, style.getPropertyValue(name).trim());
  const [fg, soft, line] = ["--fg", "--soft", "--line"].map(value);
  const axis = {
    gridcolor: line,
    linecolor: line,
    zerolinecolor: line,
    tickcolor: line,
    tickfont: { color: soft },
    automargin: true,
  };
  const result = {
    ...layout,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    autosize: true,
    margin: { ...layout.margin, t: (layout.margin?.t ?? 34) + BAR },
    width: undefined,
    height: undefined,
    font: { ...layout.font, color: fg, family: style.fontFamily, size: layout.font?.size ?? 12 },
    hoverlabel: { ...layout.hoverlabel, font: { family: style.fontFamily } },
    clickmode: "event",
    dragmode: layout.dragmode ?? "pan",
    modebar: { bgcolor: "rgba(0,0,0,0)", color: soft, activecolor: fg },
  };
  for (const name of new Set([...Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key)), "xaxis", "yaxis"])) {
    const own = layout[name] ?? {};
    result[name] = {
      ...own,
      ...axis,
      gridcolor: own.gridcolor ?? line,
      title: typeof own.title === "string" ? { text: own.title } : own.title,
    };
  }
  return result;
}

/** A CSS colour with its mixtures computed, as Plotly reads no `color-mix`. */
function resolve(host, colour) {
  const probe = document.createElement("span");
  probe.style.color = colour;
  probe.hidden = true;
  host.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  const parts = /^color\(srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)/.exec(found);
  return parts
    ? `rgb(${parts
        .slice(1)
        .map((part) => Math.round(255 * Number(part)))
        .join(",")})`
    : found;
}
