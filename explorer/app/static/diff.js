/** Before and after as lines: signs, colours and, for screen readers, words. */

import { h } from "./dom.js";

const WORDS = { "+": "added: ", "-": "removed: ", " ": "" };

/**
 * @param {Protocol.DiffLine[]} lines
 * @param {number} around how many unchanged lines stay beside a change; the rest is folded
 */
export function diff(lines, around = 2) {
  const margin = Math.min(...lines.filter((line) => line.text.trim()).map((line) => line.text.search(/\S/)), 40);
  const near = lines.map((_, index) =>
    lines.slice(Math.max(0, index - around), index + around + 1).some((line) => line.sign !== " "),
  );
  const box = h("div.diff", { role: "group", "aria-label": "before and after" });
  let folded = 0;
  const fold = () => {
    if (folded) box.append(h("div.fold", null, `⋯ ${folded} unchanged`));
    folded = 0;
  };
  lines.forEach((line, index) => {
    if (!near[index]) {
      folded += 1;
      return;
    }
    fold();
    const kind = line.sign === "+" ? "add" : line.sign === "-" ? "del" : "same";
    box.append(
      h(
        `div.dl.${kind}`,
        null,
        h("span.sign", { "aria-hidden": "true" }, line.sign),
        h("span.ex-sr", null, WORDS[line.sign]),
        h("span.dt", null, line.text.slice(margin)),
      ),
    );
  });
  fold();
  if (!lines.some((line) => line.sign !== " ")) box.replaceChildren(h("div.fold", null, "no visible change"));
  return box;
}
