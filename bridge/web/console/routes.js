/** Which page an address shows. */
import { page as drill } from "./drill.js";
import { page as event } from "./event.js";
import { page as health } from "./health.js";
import { page as history } from "./history.js";
import { page as now } from "./now.js";

/** @typedef {import("./shapes.js").Page} Page */

/** @type {[RegExp, Page][]} */
const PAGES = [
  [/^#\/history$/u, history],
  [/^#\/health$/u, health],
  [/^#\/drill(?:\/([^/]+))?$/u, drill],
  [/^#\/events\/([^/]+)$/u, event],
];

/** @param {string} text */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * The page, and the parts of the address that vary. Any other address is Now.
 * @param {string} hash
 * @returns {{page: Page, params: string[]}}
 */
export function find(hash) {
  for (const [pattern, page] of PAGES) {
    const found = pattern.exec(hash);
    if (found !== null) return { page, params: found.slice(1).flatMap((part) => (part === undefined ? [] : [decoded(part)])) };
  }
  return { page: now, params: [] };
}
