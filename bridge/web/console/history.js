/** The page History: past and pending events, by type, VM, outcome and time. */
import * as api from "./api.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { button, drillBadge, empty, eventHref, statusBadge, table } from "./parts.js";
import { duration, moment, now } from "./time.js";
import { vms } from "./words.js";

/** @typedef {import("./shapes.js").ScheduledEvent} ScheduledEvent */
/** @typedef {import("./shapes.js").Model} Model */

/** @type {Record<string, string>} */
const FILTERS = { type: "", vm: "", outcome: "", since: "", drill: "" };
let filters = { ...FILTERS };
/** How many pages are shown. */
let pages = 1;

/** @type {import("./shapes.js").Page} */
export const page = { name: "history", title: "History", load, view };

async function load() {
  /** @type {ScheduledEvent[]} */
  const events = [];
  let next = null;
  for (let number = 0; number < pages; number += 1) {
    const answer = await api.events({ ...query(), limit: "100", ...(next && { before: next }) });
    events.push(...answer.events);
    next = answer.next;
    if (next === null) break;
  }
  return { events, more: next !== null };
}

function query() {
  const since = filters["since"] ? { from: new Date(now() - Number(filters["since"]) * 1000).toISOString().slice(0, 19) + "Z" } : {};
  const plain = Object.entries(filters).filter(([name, value]) => value !== "" && name !== "since");
  return { ...Object.fromEntries(plain), ...since };
}

/** @param {HTMLInputElement | HTMLSelectElement} field */
export function filter(field) {
  filters = { ...filters, [field.name]: field.value.trim() };
  pages = 1;
}

export function showMore() {
  pages += 1;
}

/**
 * @param {string} name
 * @param {string} label
 * @param {[string, string][]} options
 */
function choice(name, label, options) {
  const made = options.map(([value, words]) => h("option", { value, selected: filters[name] === value }, words));
  return h("div", {}, h("label", { for: `filter-${name}` }, label), h("select", { id: `filter-${name}`, name, "data-change": "filter" }, made));
}

/** @param {Model} model */
function view(model) {
  /** @type {{events: ScheduledEvent[], more: boolean} | null} */
  const data = model.data;
  const own = model.status?.vm.name;
  return h(
    "div",
    { class: "page" },
    h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "History"), h("p", {}, "What Azure did, how much notice it gave, and how long the approval took."))),
    h(
      "section",
      { class: "panel", "aria-label": "Events" },
      h(
        "form",
        { class: "filters", role: "search", "aria-label": "Filter events", "data-submit": "filters" },
        choice("type", "Type", [["", "All types"], ...["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"].map((one) => /** @type {[string, string]} */ ([one, one]))]),
        h("div", {}, h("label", { for: "filter-vm" }, "VM"), h("input", { id: "filter-vm", name: "vm", "data-change": "filter", autocomplete: "off", placeholder: own ?? "name", value: filters["vm"] })),
        choice("outcome", "Outcome", [["", "All outcomes"], ["completed", "Completed"], ["canceled", "No longer announced"], ["open", "Still open"]]),
        choice("since", "Time", [["", "All times"], ["86400", "Last day"], ["604800", "Last 7 days"], ["2592000", "Last 30 days"]]),
        choice("drill", "Drills", [["", "With drills"], ["false", "Without drills"], ["true", "Only drills"]]),
      ),
      data === null ? empty("clock", "Loading", "") : list(data, own),
    ),
  );
}

/**
 * @param {{events: ScheduledEvent[], more: boolean}} data
 * @param {string | null | undefined} own
 */
function list(data, own) {
  if (data.events.length === 0) {
    const filtered = Object.values(filters).some((value) => value !== "");
    return filtered ? empty("list", "Nothing matches these filters", "Change a filter to see more.") : empty("list", "Nothing has happened yet", "Every event that Azure announces appears here, and stays for as long as the journal keeps it.");
  }
  const rows = data.events.map((one) => ({
    key: one.eventId,
    cells: [
      h("span", { class: "cell-type" }, icon(one.eventType), h("a", { href: eventHref(one.eventId) }, one.eventType), one.drill && drillBadge()),
      h("span", { class: "break", title: one.resources.join(", ") }, vms(one.resources, own)),
      h("span", {}, statusBadge(one.status), one.inferred && one.status === "Completed" && h("span", { class: "muted small", title: "The bridge did not see the end; it concluded it." }, " inferred")),
      moment(one.times.announced),
      duration(one.times.noticeSeconds),
      one.times.granted ? duration(one.times.approvalSeconds) : h("span", { class: "muted" }, "none"),
      duration(one.times.durationSeconds),
    ],
  }));
  const more = data.more && h("div", { class: "more-row" }, button("more", {}, "slim", "Show older events"));
  return h("div", {}, table("Scheduled events", ["Type", "VMs", "Outcome", "#Announced", "#Notice", "#Approved after", "#Lasted"], rows), more);
}
