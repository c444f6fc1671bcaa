/** The GPU that plans are made for: a choice in the head of a pane.  Every pane that plans has one; all show the session's. */

import { attr, h, keyed } from "./dom.js";

/** @param {App} app @returns {HTMLElement} the labelled choice */
export function target(app) {
  let shown = "";
  const select = h("select", { "aria-label": "plan for the GPU", onchange: () => choose() });
  const choose = async () => {
    const outcome = await app.act("target", { gpu: select.value });
    if (outcome?.problem) select.value = shown;
  };
  app.link.on("target", (pane) => {
    shown = pane.gpu;
    keyed(
      select,
      pane.gpus,
      (gpu) => gpu.name,
      (gpu) => h("option", { value: gpu.name }),
      (option, gpu) => {
        option.textContent = gpu.here ? `${gpu.name} (here)` : gpu.name;
        attr(option, "title", gpu.words);
      },
    );
    select.value = shown;
    attr(select, "title", pane.gpus.find((gpu) => gpu.name === shown)?.words);
  });
  return h("label.target.soft", null, "for the ", select);
}
