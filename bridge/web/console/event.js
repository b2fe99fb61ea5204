/** The page of one scheduled event: its card, its timeline, every CloudEvent, votes and refusals. */
import * as api from "./api.js";
import { eventCard } from "./card.js";
import { h } from "./dom.js";
import { badge, deliveryWords, empty, vacant, panel, table } from "./parts.js";
import { duration, moment } from "./time.js";
import { timeline } from "./timeline.js";
import { counted, shortType } from "./words.js";

/** @typedef {import("./shapes.js").EventDetail} EventDetail */
/** @typedef {import("./shapes.js").Row} Row */
/** @typedef {import("./shapes.js").Model} Model */

/** @type {import("./shapes.js").Page} */
export const page = { name: "", title: "Event", load, view };

/** @param {string[]} params */
async function load(params) {
  try {
    return { event: await api.event(params[0] ?? ""), missing: "" };
  } catch (error) {
    if (error instanceof api.Problem && error.status === 404) return { event: null, missing: error.message };
    throw error;
  }
}

/** @param {Model} model */
function view(model) {
  /** @type {{event: EventDetail | null, missing: string} | null} */
  const data = model.data;
  const crumbs = h("p", { class: "crumbs muted" }, h("a", { href: "#/" }, "Now"), " / ", h("a", { href: "#/history" }, "History"), " / ", h("span", { class: "mono break" }, model.params[0] ?? ""));
  if (data === null) return h("div", { class: "page" }, crumbs);
  if (data.event === null) return h("div", { class: "page" }, crumbs, h("div", { class: "panel" }, h("h1", { class: "unseen" }, "Unknown event"), empty("list", "No such event", data.missing)));
  const event = data.event;
  return h(
    "div",
    { class: "page" },
    crumbs,
    eventCard(event, model, true),
    panel("Timeline", timeline(event)),
    votes(event),
    refusals(event),
    panel("Every CloudEvent", h("ol", { class: "steps" }, event.history.map((row, at) => step(row, event.history[at - 1]))), event.more ? h("p", { class: "more-row muted" }, "Later ones are left out.") : ""),
  );
}

/** @param {EventDetail} event */
function votes(event) {
  const rows = event.votes.map((vote) => ({
    key: vote.approvalId + vote.approver + vote.resource,
    cells: [
      h("b", { class: "break" }, vote.approver),
      badge(vote.decision === "approve" ? "ok" : vote.decision === "hold" ? "wait" : "", vote.decision),
      vote.resource ?? "all VMs",
      h("span", { class: "break" }, vote.reason ?? "–"),
      h("span", {}, vote.via, h("span", { class: "muted" }, vote.verified ? ", verified" : ", not verified")),
      moment(vote.at),
    ],
  }));
  return panel("Votes", rows.length > 0 ? table("Votes", ["Approver", "Vote", "For", "Reason", "Via", "#At"], rows) : vacant("user", "Nobody has voted", "Votes appear here as they come, from the console, the command line, Kafka or MQTT."));
}

/** @param {EventDetail} event */
function refusals(event) {
  if (event.refusals.length === 0) return "";
  const rows = event.refusals.map((one, at) => ({
    key: `${one.at} ${at}`,
    cells: [h("b", { class: "break" }, one.approver ?? "unknown"), badge("bad", one.reason), h("span", { class: "break" }, one.detail ?? "–"), h("span", {}, one.via, one.stray && h("span", { class: "muted" }, ", stray")), moment(one.at)],
  }));
  return panel("Refused votes", table("Refused votes", ["Approver", "Reason", "Why", "Via", "#At"], rows));
}

/** @type {Record<string, [string, string]>} */
const STEPS = {
  scheduled: ["Announced", ""],
  updated: ["Updated", ""],
  started: ["Started", "wait"],
  completed: ["Completed", "ok"],
  canceled: ["No longer announced", ""],
  "approval.recorded": ["Vote recorded", "ok"],
  "approval.granted": ["Azure accepted the approval", "ok"],
  "approval.refused": ["Vote refused", "bad"],
  "approval.failed": ["Azure could not be told", "bad"],
  "approval.due": ["Votes are missing", "wait"],
};

/**
 * @param {Row} row
 * @param {Row | undefined} before
 */
function step(row, before) {
  const { cloudevent, deliveries } = row;
  const [name, tone] = STEPS[shortType(cloudevent.type)] ?? [shortType(cloudevent.type), ""];
  const gap = before ? (Date.parse(cloudevent.time) - Date.parse(before.cloudevent.time)) / 1000 : null;
  const about = words(cloudevent.data);
  return h(
    "li",
    { class: "step", "data-key": cloudevent.id, "data-tone": cloudevent.data["decision"] === "hold" && tone === "ok" ? "wait" : tone },
    h("div", { class: "step-time" }, moment(cloudevent.time), h("span", { class: "step-gap" }, gap === null ? "\u00A0" : `+ ${duration(gap)}`)),
    h(
      "div",
      {},
      h("div", {}, h("span", { class: "step-name" }, name), about && h("span", { class: "muted break" }, ` · ${about}`)),
      h("div", { class: "sent" }, deliveries.map((one) => deliveryWords(one.outcome, one.sink, effort(one)))),
      h("details", {}, h("summary", {}, "CloudEvent"), h("pre", { class: "json", tabindex: "0" }, JSON.stringify(cloudevent, null, 2))),
    ),
  );
}

/** @param {import("./shapes.js").Delivery} one */
function effort(one) {
  const tries = one.attempts > 1 ? counted(one.attempts, "attempt") : "";
  return [tries, one.outcome === "delivered" ? "" : one.error, one.note].filter(Boolean).join(", ");
}

/** @param {Record<string, any>} data */
function words(data) {
  if (data["decision"]) {
    const reason = data["detail"] ?? data["reason"];
    return `${data["approver"] ?? "unknown"}: ${data["decision"]}${data["resource"] ? ` for ${data["resource"]}` : ""}${reason ? `, ${reason}` : ""}`;
  }
  const changes = Object.keys(data["changes"] ?? {});
  return changes.length > 0 ? `changed: ${changes.join(", ")}` : (data["inferred"] ? "concluded, not seen" : "");
}
