/**
 * Plain DOM in a few helpers: make elements, change only what differs, keep keyed lists in place.
 * Text is always set as text, never as markup.
 */

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = { value: 1, checked: 1, disabled: 1, hidden: 1, selected: 1 };
const PAGE = Math.random().toString(36).slice(2, 7);
let counter = 0;

/** An id unique on a page with several widgets, each with its copy of this module: for `aria-controls` and friends. */
export const uid = (stem) => `ex-${stem}-${PAGE}${++counter}`;

function put(element, props) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || (value === false && !(name in PROPERTIES))) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in PROPERTIES) element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/**
 * An HTML element: `h("button.primary", { onclick, "aria-label": "…" }, "text", child)`.
 * @template {string} K
 * @param {K} kind tag and classes, joined by dots
 * @param {Record<string, any> | null} [props]
 * @param {...any} children
 * @returns {Made<K>}
 */
export function h(kind, props, ...children) {
  const [tag, ...classes] = kind.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  put(element, props);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return /** @type {any} */ (element);
}

/** An SVG element, with text children as text. */
export function svg(tag, props, ...children) {
  const element = document.createElementNS(SVG, tag);
  put(element, props);
  element.append(...children);
  return element;
}

/**
 * What must be there; where it is not, an error that says what is missing.
 * @template T
 * @param {T} value
 * @param {string} what
 * @returns {NonNullable<T>}
 */
export function there(value, what) {
  if (value === null || value === undefined) throw new Error(`the explorer has no ${what} here`);
  return value;
}

/** The only element that a selector finds in another. @param {ParentNode} element @param {string} selector @returns {HTMLElement} */
export const part = (element, selector) => there(/** @type {HTMLElement | null} */ (element.querySelector(selector)), `"${selector}"`);

/**
 * What a map has at a key.
 * @template K, V
 * @param {Map<K, V>} map
 * @param {K} key
 */
export const entryOf = (map, key) => there(map.get(key), `"${key}"`);

/** Set the text of an element only where it differs. */
export function say(element, text) {
  const wanted = text ?? "";
  if (element.textContent !== wanted) element.textContent = wanted;
  return element;
}

/** Set an attribute only where it differs; null or false removes it. */
export function attr(element, name, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value === true ? "" : value)) {
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** Show or hide. */
export function show(element, visible) {
  if (element.hidden === visible) element.hidden = !visible;
  return visible;
}

/**
 * Make the children of `parent` follow `items`, keeping the elements whose key stays.
 * `make(item)` makes an element; `update(element, item)` runs only when the item's JSON has changed.
 * @template T
 * @template {HTMLElement} E
 * @param {HTMLElement} parent
 * @param {T[]} items
 * @param {(item: T, index: number) => any} keyOf
 * @param {(item: T, index: number) => E} make
 * @param {(element: E, item: T, index: number) => void} update
 */
export function keyed(parent, items, keyOf, make, update) {
  const known = (parent.exKnown ??= new Map());
  const seen = new Set();
  let place = parent.firstElementChild;
  items.forEach((item, index) => {
    let key = String(keyOf(item, index));
    while (seen.has(key)) key += "'";
    seen.add(key);
    let element = known.get(key);
    if (!element) {
      element = make(item, index);
      known.set(key, element);
    }
    const sign = JSON.stringify(item);
    if (element.exSign !== sign) {
      element.exSign = sign;
      element.exItem = item;
      update(element, item, index);
    }
    if (place && element === place) place = place.nextElementSibling;
    else parent.insertBefore(element, place);
  });
  for (const [key, element] of known) {
    if (!seen.has(key)) {
      element.remove();
      known.delete(key);
    }
  }
}

/** A sentence whose `quoted` words become code. */
export const words = (text) => (text ?? "").split("`").map((part, index) => (index % 2 ? h("code", null, part) : part));

/** `run` after `ms` without another call; `.cancel()` forgets it. */
export function debounce(run, ms) {
  let timer = 0;
  const later = (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...args), ms);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

/** What was thrown, in words. @param {unknown} error */
export const said = (error) => (error instanceof Error ? error.message : String(error));

/** A time in the unit that reads best. */
export function duration(us) {
  if (us === null || us === undefined) return "";
  const [value, unit] = us < 0.9995 ? [us * 1000, "ns"] : us < 999.5 ? [us, "µs"] : us < 999500 ? [us / 1000, "ms"] : [us / 1e6, "s"];
  return `${value >= 99.95 ? value.toFixed(0) : value.toPrecision(3)} ${unit}`;
}

/**
 * Scroll `element` into view inside its own scroller, never the page; `place` 0 … 1 is where it lands, else near the edge.
 * @param {Element | null | undefined} element
 * @param {Element | null} scroller
 * @param {number | null} place
 */
export function reveal(element, scroller, place = null) {
  if (!element || !scroller || element.hidden) return;
  const inner = element.getBoundingClientRect();
  const outer = scroller.getBoundingClientRect();
  if (inner.height > outer.height - 24) place ??= 0.02;
  const outside = inner.top < outer.top || inner.bottom > outer.bottom;
  if (outside && place !== null) scroller.scrollTop += inner.top - outer.top - place * outer.height;
  else if (inner.top < outer.top) scroller.scrollTop -= outer.top - inner.top + 12;
  else if (inner.bottom > outer.bottom) scroller.scrollTop += inner.bottom - outer.bottom + 12;
}

/** Move the roving tabindex of `list` by an arrow key; returns the element that got the focus, or null. */
export function rove(event, list, { next = "ArrowDown", previous = "ArrowUp" } = {}) {
  const here = list.indexOf(event.target.closest("[data-rove]"));
  const goal = { [next]: here + 1, [previous]: here - 1, Home: 0, End: list.length - 1 }[event.key];
  if (goal === undefined || here < 0 || !list[goal]) return null;
  event.preventDefault();
  list[here].tabIndex = -1;
  list[goal].tabIndex = 0;
  list[goal].focus();
  return list[goal];
}

/** Whether a click is the first of its kind: the second one of a double click takes no step, since another stands there by then. */
export const once = (event) => event.detail < 2;

/** Put a text on the clipboard, with the old way where the new one is forbidden; true when it worked. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h("textarea", { "aria-hidden": "true", style: "position:fixed;opacity:0" });
    area.value = text;
    const before = document.activeElement;
    document.body.append(area);
    area.select();
    const worked = document.execCommand("copy");
    area.remove();
    before?.focus?.();
    return worked;
  }
}

/** Hand a text to the reader as a file. */
export function download(filename, text) {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  const link = h("a", { href: url, download: filename });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
