/** A refusal in words: what, where, why, the pair of instances, what to try; and its counterexample, executed. */

import { h, once } from "./dom.js";
import { fragment } from "./markup.js";

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
    empty.previousElementSibling?.remove();
    empty.remove();
  }
  box.append(host);
  return box;
}

/** An open obligation on one line, with the steps that close it. @param {Protocol.Problem} problem @param {Record<string, any>} tools */
export function obligationLine(problem, { apply }) {
  return h(
    "div.obligation",
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

/** The illegal order, executed. @param {Protocol.Counterexample} data @returns {HTMLElement} */
export const counterBox = (data) => /** @type {HTMLElement} */ (fragment(data.html).firstElementChild);
