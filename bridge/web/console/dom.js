/** Builds elements, and makes the page equal to them while keeping the nodes that are already there. */

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, string | number | boolean | null | undefined>} Attributes */

/**
 * @param {Element} element
 * @param {Attributes} attributes
 * @param {(Child | Child[])[]} children
 */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined && child !== false) {
      element.append(child instanceof Node ? child : String(child));
    }
  }
}

/**
 * An element. Text is always text: nothing here reads markup.
 * @param {string} name
 * @param {Attributes} [attributes]
 * @param {(Child | Child[])[]} children
 */
export function h(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  fill(element, attributes, children);
  return element;
}

/**
 * An element of a drawing.
 * @param {string} name
 * @param {Attributes} [attributes]
 * @param {(Child | Child[])[]} children
 */
export function s(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  fill(element, attributes, children);
  return element;
}

/**
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`The page has no element #${id}`);
  return found;
}

/**
 * Make the children of *parent* equal to *children*, reusing nodes, so that focus, selection, scroll
 * positions and open details stay.
 * @param {Element} parent
 * @param {Child[]} children
 */
export function show(parent, ...children) {
  const fresh = document.createElement("div");
  fill(fresh, {}, children);
  morphChildren(parent, fresh);
}

/** What belongs to the reader, and is never changed from here. */
const KEPT = new Set(["open"]);

/**
 * @param {Element} old
 * @param {Element} fresh
 */
function morph(old, fresh) {
  for (const { name } of Array.from(old.attributes)) {
    if (!KEPT.has(name) && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of Array.from(fresh.attributes)) {
    if (!KEPT.has(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  morphChildren(old, fresh);
}

/** @param {Node} node */
function key(node) {
  return node instanceof Element ? node.getAttribute("data-key") : null;
}

/**
 * @param {Node} one
 * @param {Node} other
 */
function alike(one, other) {
  return one.nodeName === other.nodeName && key(one) === key(other);
}

/**
 * @param {Element} parent
 * @param {Element} fresh
 */
function morphChildren(parent, fresh) {
  /** @type {Map<string, Element>} */
  const keyed = new Map();
  for (const child of Array.from(parent.children)) {
    const name = key(child);
    if (name !== null) keyed.set(name, child);
  }
  /** @type {ChildNode | null} */
  let place = parent.firstChild;
  for (const next of Array.from(fresh.childNodes)) {
    const name = key(next);
    const known = name === null ? place : (keyed.get(name) ?? null);
    if (known === null || !alike(known, next)) {
      parent.insertBefore(next, place);
      continue;
    }
    if (known === place) place = place.nextSibling;
    else parent.insertBefore(known, place);
    if (known instanceof Element && next instanceof Element) morph(known, next);
    else if (known.nodeValue !== next.nodeValue) known.nodeValue = next.nodeValue;
  }
  while (place !== null) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}
