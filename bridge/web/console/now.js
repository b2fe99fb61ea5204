/** The page Now: every pending scheduled event, the most urgent first. */
import * as api from "./api.js";
import { eventCard } from "./card.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { drillBadge, empty, eventHref, panel, statusBadge } from "./parts.js";
import { countdown, elapsed, moment } from "./time.js";
import { counted, vms } from "./words.js";

/** @typedef {import("./shapes.js").EventDetail} EventDetail */
/** @typedef {import("./shapes.js").ScheduledEvent} ScheduledEvent */
/** @typedef {import("./shapes.js").Model} Model */

/** @typedef {{cards: (EventDetail | ScheduledEvent)[], lately: ScheduledEvent[], left: number, next: ScheduledEvent | null}} Loaded */

/** How many events have a card. Of more than that, the most urgent ones do. */
const MOST = 12;
/** How many events that end while the page is open stay on it. */
const MOST_ENDED = 3;

/** The order in which cards stand. Nothing moves while somebody reads: what is new comes last. @type {string[]} */
let order = [];

/** @type {import("./shapes.js").Page} */
export const page = { name: "now", title: "Now", enter, load, view };

function enter() {
  order = [];
}

/** @returns {Promise<Loaded>} */
async function load() {
  const { events } = await api.events({ pending: "true" });
  const pending = new Set(events.map((one) => one.eventId));
  const ended = new Set(order.filter((id) => !pending.has(id)).slice(-MOST_ENDED));
  const kept = order.filter((id) => pending.has(id) || ended.has(id));
  order = pending.size > MOST ? [...pending].slice(0, MOST) : [...new Set([...kept, ...pending])];
  const detailed = await Promise.all(order.map((id) => api.event(id).catch(() => null)));
  const known = new Map(detailed.filter((one) => one !== null).map((one) => [one.eventId, one]));
  const all = new Map(events.map((one) => [one.eventId, one]));
  const cards = order.map((id) => known.get(id) ?? all.get(id)).filter((one) => one !== undefined);
  const lately = cards.length > 0 ? [] : (await api.events({ pending: "false", limit: "5" })).events;
  return { cards, lately, left: Math.max(0, pending.size - cards.length), next: events.find((one) => one.status === "Scheduled" && !one.drill) ?? events[0] ?? null };
}

/** @param {Model} model */
function view(model) {
  /** @type {Loaded | null} */
  const data = model.data;
  if (data === null) return h("div", { class: "page" }, h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Now"), h("p", {}, "Loading…"))));
  const cards = data.cards.length > 0 ? data.cards.map((one) => eventCard(one, model)) : [quiet(model), recent(data.lately, model)];
  return h("div", { class: "page" }, head(data, model), h("div", { class: "cards" }, cards), data.left > 0 && h("p", { class: "muted" }, `${counted(data.left, "less urgent event")} in the `, h("a", { href: "#/history" }, "history"), "."));
}

/**
 * @param {Loaded} data
 * @param {Model} model
 */
function head(data, model) {
  const pending = data.cards.filter((one) => one.pending && !one.drill).length + data.left;
  const drills = data.cards.filter((one) => one.pending && one.drill).length;
  const title = pending > 0 ? `${counted(pending, "event")} pending` : drills > 0 ? "Only a drill is pending" : "Nothing is pending";
  const also = pending > 0 && drills > 0 && h("span", { class: "muted" }, ", and a drill");
  return h("div", { class: "page-head" }, h("div", {}, h("h1", {}, title, also), h("p", {}, next(data.next, model))));
}

/**
 * @param {ScheduledEvent | null} event
 * @param {Model} model
 */
function next(event, model) {
  const own = model.status?.vm.name;
  if (event === null) return `Azure has announced nothing for ${own ?? "this VM"}.`;
  const what = h("a", { href: eventHref(event.eventId) }, `${event.drill ? "Drill: " : ""}${event.eventType} of ${vms(event.resources, own)}`);
  if (event.status === "Started") return h("span", {}, what, " is under way", event.times.started && h("span", {}, " for ", elapsed(event.times.started)));
  return h("span", {}, "Next: ", what, event.notBefore && h("span", {}, " in ", h("b", {}, countdown(event.notBefore))));
}

/**
 * @param {ScheduledEvent[]} events
 * @param {Model} model
 */
function recent(events, model) {
  if (events.length === 0) return "";
  const own = model.status?.vm.name;
  const items = events.map((one) =>
    h("li", { "data-key": one.eventId }, h("span", { class: "mark muted" }, icon(one.eventType), h("span", {}, h("a", { href: eventHref(one.eventId) }, `${one.eventType} of ${vms(one.resources, own)}`))), one.drill && drillBadge(), statusBadge(one.status), h("span", { class: "side" }, moment(one.lastChange))),
  );
  return panel("Recent events", h("ul", { class: "inside rows" }, items));
}

/** @param {Model} model */
function quiet(model) {
  const source = model.status?.source;
  const asked = source?.lastGood ? h("span", {}, "Azure's last answer: ", moment(source.lastGood), ".") : "Azure has not answered yet.";
  const whose = source?.scope === "all" ? "any VM that this one can see" : (model.status?.vm.name ?? "this VM");
  return h(
    "div",
    { class: "panel", "data-key": "quiet" },
    empty("calm", "Azure plans nothing here", `When Azure announces a freeze, reboot, redeploy, preemption or termination of ${whose}, it appears here at once: what happens, who is not ready, who knows, and what you can press. `, asked),
  );
}
