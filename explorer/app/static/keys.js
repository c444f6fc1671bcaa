/** Keys of the whole widget, and the dialog that tells them. */

import { h } from "./dom.js";

export const KEYS = [
  ["Ctrl+Z", "undo the last step"],
  ["Shift+Ctrl+Z", "redo"],
  ["Ctrl+Enter", "run (in the script: apply it)"],
  ["/", "filter the moves"],
  ["l", "go to the loops"],
  ["m", "go to the moves"],
  ["s", "go to the strategies"],
  ["v", "go to the views"],
  ["c", "go to the CUDA text"],
  ["h", "go to the history"],
  ["r", "go to the run"],
  ["?", "this help"],
  ["↑ ↓ Home End", "walk the rows: loops, moves, ways, steps, lines of CUDA"],
  ["← →", "fold and unfold a loop; other tab, pass or schedule of the history"],
  ["Enter", "on a loop: its moves; on a move: apply it; on a schedule: return to it"],
  ["F2", "on a schedule: name it"],
  ["Esc", "leave a form, close a dialog"],
];

/** @param {KeyboardEvent} event @returns {boolean} whether the key was one of ours */
export function shortcut(event, app) {
  const command = event.ctrlKey || event.metaKey;
  const key = event.key.toLowerCase();
  if (command && key === "z" && !event.altKey) {
    const way = event.shiftKey ? "redo" : "undo";
    if (app.link.busy || !app.head[way].disabled) app.act(way); // an answer on its way may enable it
    return true;
  }
  if (command && key === "enter") return (app.run(), true);
  if (command || event.altKey || event.target?.closest("input, textarea, select")) return false;
  const plain = {
    "/": () => (app.rightTabs.open("moves"), app.moves.filter.focus()),
    l: () => app.focusLoops(),
    m: () => app.focusMoves(),
    s: () => (app.rightTabs.open("strategies"), app.strategies.focus()),
    v: () => app.views.tabs.strip.querySelector('[tabindex="0"]').focus(),
    c: () => (app.views.open("cuda"), app.views.cuda.lines.focus()),
    h: () => app.history.cards.querySelector('[tabindex="0"]')?.focus(),
    r: () => app.runpane.start.focus(),
    "?": () => app.help(),
  }[key];
  if (!plain) return false;
  plain();
  return true;
}

/** The dialog of all keys. */
export function helpDialog() {
  const dialog = h(
    "dialog.help",
    { "aria-label": "keyboard help" },
    h("h3", null, "Keys"),
    h(
      "dl",
      null,
      ...KEYS.flatMap(([key, words]) => [
        h("dt", null, ...key.split(" ").map((one) => h("kbd", null, one))),
        h("dd", null, words),
      ]),
    ),
    h("p.soft", null, "Selecting anything, a loop, a line of CUDA, a point, a bar or a table row, selects its loop everywhere."),
    h("form", { method: "dialog" }, h("button.primary", null, "Close")),
  );
  dialog.addEventListener("keydown", (event) => event.stopPropagation());
  return dialog;
}
