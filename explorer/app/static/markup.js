/**
 * The one place where text becomes markup: fragments that explorer/views wrote, with everything of the user's escaped there.
 * A fragment has no scripts, no handlers and no addresses; one that has is not shown.
 */

import { there } from "./dom.js";

const FORBIDDEN = ["script", "iframe", "object", "embed", "foreignobject", "image", "img", "use", "a", "link"];

/** Elements and attributes that could run or load are taken out of what stands below `root`. @param {ParentNode} root */
export function harmless(root) {
  for (const element of root.querySelectorAll("*")) {
    if (FORBIDDEN.includes(element.localName.toLowerCase())) element.remove();
    for (const { name } of [...element.attributes])
      if (name.startsWith("on") || name.endsWith("href") || name === "src") element.removeAttribute(name);
  }
  return root;
}

/** A fragment's nodes. @param {string} html @returns {DocumentFragment} */
export function fragment(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  harmless(template.content);
  return template.content;
}

/** Make an element what the fragment's only one is, in place: it keeps the focus. @param {HTMLElement} element @param {string} html */
export function become(element, html) {
  const made = there(fragment(html).firstElementChild, "element in the fragment");
  for (const { name } of [...element.attributes]) if (!made.hasAttribute(name)) element.removeAttribute(name);
  for (const { name, value } of made.attributes) element.setAttribute(name, value);
  element.replaceChildren(...made.childNodes);
}
