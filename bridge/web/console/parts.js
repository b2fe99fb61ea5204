/** Small parts that several pages show: badges, lists of VMs, empty states, tables. */
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { condition, delivery, ownFirst, sameVm, standing } from "./words.js";

/** @typedef {import("./dom.js").Child} Child */

/**
 * @param {string} tone ok, wait, bad, accent or empty
 * @param {Child[]} words
 */
export function badge(tone, ...words) {
  return h("span", { class: `badge ${tone}`.trim() }, ...words);
}

export function drillBadge() {
  return h("span", { class: "badge drill", title: "A rehearsal. It never reaches Azure." }, "Drill");
}

/** @param {string} status */
export function statusBadge(status) {
  const [tone, word] = standing(status);
  return badge(tone, word);
}

/** @param {string} state of a sink, an approval source or the source */
export function stateBadge(state) {
  const [name, tone, word] = condition(state);
  return badge(tone === "muted" ? "" : tone, icon(name), word);
}

/**
 * @param {string} outcome
 * @param {string} sink may be empty
 * @param {string | null} [more]
 */
export function deliveryWords(outcome, sink, more = "") {
  const [name, tone, word] = delivery(outcome);
  const words = sink === "" ? [word] : [h("b", {}, sink), h("span", { class: "muted" }, ` ${word}${more ? `: ${more}` : ""}`)];
  return h("span", { class: `mark ${tone}` }, icon(name), h("span", {}, ...words));
}

/**
 * Every VM of an event, this one first and marked.
 * @param {string[]} resources
 * @param {string | null | undefined} own
 */
export function vmList(resources, own) {
  const items = ownFirst(resources, own).map((name) =>
    h("li", { class: sameVm(name, own) ? "vm own" : "vm", "data-key": name }, name, sameVm(name, own) && h("span", { class: "vm-own" }, "this VM")),
  );
  return h("ul", { class: "vms", "aria-label": "Affected VMs" }, items);
}

/**
 * @param {string} picture
 * @param {string} title
 * @param {Child[]} words
 */
export function empty(picture, title, ...words) {
  return h("div", { class: "empty" }, icon(picture), h("b", {}, title), h("p", {}, ...words));
}

/**
 * An empty state in one line, for a panel among others.
 * @param {string} picture
 * @param {string} title
 * @param {Child[]} words
 */
export function vacant(picture, title, ...words) {
  return h("div", { class: "empty slim" }, icon(picture), h("b", {}, title), h("p", {}, ...words));
}

/**
 * @param {string} tone
 * @param {Child[]} words
 */
export function note(tone, ...words) {
  const picture = { ok: "check", wait: "warn", bad: "warn" }[tone] ?? "info";
  return h("div", { class: `note ${tone}` }, icon(picture), h("div", {}, ...words));
}

/**
 * @param {string} title
 * @param {Child[]} inside
 */
export function panel(title, ...inside) {
  return h("section", { class: "panel", "data-key": `panel ${title}` }, h("header", {}, h("h2", {}, title)), ...inside);
}

/**
 * A table whose rows become blocks on a phone. A head that begins with # has numbers under it.
 * @param {string} caption
 * @param {string[]} heads
 * @param {{key: string, class?: string, cells: Child[]}[]} rows
 */
export function table(caption, heads, rows) {
  const plain = heads.map((head) => head.replace("#", ""));
  const kinds = heads.map((head) => (head.startsWith("#") ? "number" : null));
  return h(
    "div",
    { class: "table-frame" },
    h(
      "table",
      {},
      h("caption", { class: "unseen" }, caption),
      h("thead", {}, h("tr", {}, plain.map((head, at) => h("th", { scope: "col", class: kinds[at] }, head || h("span", { class: "unseen" }, "Actions"))))),
      h(
        "tbody",
        {},
        rows.map((row) =>
          h("tr", { "data-key": row.key, class: row.class }, row.cells.map((cell, at) => h("td", { "data-head": plain[at], class: kinds[at] }, cell))),
        ),
      ),
    ),
  );
}

/**
 * @param {string} action
 * @param {Record<string, string>} on what it acts on
 * @param {string} look
 * @param {Child[]} words
 */
export function button(action, on, look, ...words) {
  const data = Object.fromEntries(Object.entries(on).map(([name, value]) => [`data-${name}`, value]));
  return h("button", { type: "button", class: `button ${look}`.trim(), "data-action": action, "data-key": [action, ...Object.values(on)].join(" "), ...data }, ...words);
}

/** @param {string} id */
export function eventHref(id) {
  return `#/events/${encodeURIComponent(id)}`;
}
