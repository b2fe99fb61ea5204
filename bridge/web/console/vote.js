/** The dialog in which somebody approves, holds or releases a scheduled event. */
import * as api from "./api.js";
import { close, deedButton, isOpen, open } from "./dialog.js";
import { h } from "./dom.js";
import { note, vmList } from "./parts.js";
import { countdown, duration, moment } from "./time.js";
import { meaning, sameVm, vms } from "./words.js";

/** @typedef {import("./shapes.js").ScheduledEvent} ScheduledEvent */
/** @typedef {import("./shapes.js").Decision} Decision */
/** @typedef {import("./shapes.js").Status} Status */

/**
 * @typedef {object} Ballot
 * @property {Decision} decision
 * @property {ScheduledEvent} shown the event as the reader sees it; its state is sent as `seen`
 * @property {ScheduledEvent | null} latest the event as it is now, if that differs; null when it is gone
 * @property {Status} status
 * @property {"reading" | "sending" | "done"} stage
 * @property {string} news
 * @property {boolean} refused
 */

/** @type {Ballot | null} */
let ballot = null;

/** How many of those who are missing are named after a vote. */
const MOST_NAMES = 5;
const VERBS = { approve: "Approve", hold: "Hold", release: "Release" };

/**
 * @param {Decision} decision
 * @param {ScheduledEvent} event
 * @param {Status} status
 */
export function ask(decision, event, status) {
  ballot = { decision, shown: event, latest: event, status, stage: "reading", news: "", refused: false };
  draw();
}

export function forget() {
  ballot = null;
}

/**
 * Compare what the dialog shows with what is true now.
 * @param {ScheduledEvent[]} events
 */
export function compare(events) {
  if (ballot === null || ballot.stage !== "reading" || !isOpen()) return;
  ballot.latest = events.find((one) => one.eventId === ballot?.shown.eventId) ?? null;
  draw();
}

/** @param {Ballot} now */
function changed(now) {
  if (now.latest === null) return "gone";
  if (now.latest.status !== "Scheduled" || !now.latest.pending) return "late";
  return now.latest.state === now.shown.state && now.latest.life === now.shown.life ? "" : "changed";
}

function draw() {
  if (ballot === null) return;
  const now = ballot;
  const what = now.stage === "done" ? "" : changed(now);
  open(
    {
      title: `${VERBS[now.decision]} ${now.shown.drill ? "the drill: " : ""}${now.shown.eventType} of ${vms(now.shown.resources, now.status.vm.name)}${now.stage === "done" ? "" : "?"}`,
      body: now.stage === "done" ? [] : [...body(now), alarm(what)],
      news: now.news,
      bad: now.refused,
      buttons: buttons(now, what),
    },
    { send, again },
  );
}

/**
 * @param {Ballot} now
 * @param {string} what
 */
function buttons(now, what) {
  if (now.stage === "done") return [deedButton("close", "first", "Close")];
  if (what === "changed") return [deedButton("close", "", "Cancel"), deedButton("again", "first", "Show the new version")];
  return [deedButton("close", "", "Cancel"), deedButton("send", "first", label(now), what !== "" || now.stage === "sending")];
}

/** @param {Ballot} now */
function label(now) {
  if (now.stage === "sending") return "Sending…";
  if (now.decision !== "approve") return VERBS[now.decision];
  return "Approve";
}

/** @param {string} what */
function alarm(what) {
  if (what === "gone") return note("bad", "Azure no longer announces this event. A vote would not count.");
  if (what === "late") return note("bad", "The event has started or is over. A vote no longer counts.");
  if (what === "changed") return note("wait", h("b", {}, "The event changed while you were reading."), " Look at the new version, and confirm again.");
  return false;
}

/** @param {Ballot} now */
function body(now) {
  const event = now.shown;
  const list = h("div", { class: "release-list", tabindex: "0", role: "group", "aria-label": "VMs" }, vmList(event.resources, now.status.vm.name));
  const time = event.notBefore ? [moment(event.notBefore), " (in ", countdown(event.notBefore), ")"] : ["a time that Azure does not tell"];
  const choices = event.resources.length > 1 ? [resources(now)] : [];
  const reason = h("div", {}, h("label", { for: "vote-reason" }, "Reason"), h("input", { id: "vote-reason", maxlength: 200, autocomplete: "off", placeholder: now.decision === "approve" ? "drained" : "the nightly backup is running" }));
  return [
    h("p", {}, meaning(event.eventType), event.description ? h("span", { class: "muted break" }, ` “${event.description}”`) : ""),
    ...consequence(now, list, time),
    ...choices,
    reason,
  ];
}

/**
 * @param {Ballot} now
 * @param {Node} list
 * @param {import("./dom.js").Child[]} time
 * @returns {Node[]}
 */
function consequence(now, list, time) {
  const { drill, resources: affected } = now.shown;
  if (now.decision === "hold") {
    return [
      note("wait", h("b", {}, "A hold does not stop Azure."), drill ? " The drill goes ahead at " : " The event goes ahead at ", ...time, `. Until then, or for ${duration(now.status.approvals.holdTimeoutSeconds)} at most, this bridge does not tell Azure to start early.`),
      h("p", {}, affected.length > 1 ? "It affects these VMs. Bridges on the other VMs do not know of a hold that you give here, and may approve." : "It affects this VM:"),
      list,
    ];
  }
  if (now.decision === "release") {
    return [h("p", {}, "This ends your own hold. If the votes are then enough, Azure is told to go ahead, and starts the event on all of these VMs:"), list];
  }
  const start = drill ? "In a real event, Azure would start at once on all of these VMs. A drill never reaches Azure." : affected.length > 1 ? "When the votes are enough, Azure is told to start, and does not wait any longer. That releases all of these VMs together:" : "When the votes are enough, Azure is told to start, and does not wait any longer. That releases this VM:";
  return [h("p", {}, start), list, h("p", { class: "muted" }, "Without approval, it starts at ", ...time, ".")];
}

/** @param {Ballot} now */
function resources(now) {
  const each = now.status.approvals.require === "each-resource" && now.decision === "approve";
  const own = now.status.vm.name;
  const first = now.shown.resources.find((name) => sameVm(name, own)) ?? now.shown.approvals?.missing[0];
  const options = now.shown.resources.map((name) => h("option", { value: name, selected: each && name === first }, name, sameVm(name, own) ? " (this VM)" : ""));
  return h(
    "div",
    { "data-key": "resources" },
    h("label", { for: "vote-resource" }, "Your vote is for"),
    h("select", { id: "vote-resource" }, h("option", { value: "", selected: !each }, "all of these VMs"), options),
    h("p", { class: "hint" }, each ? "Each VM needs its own approval. Only an approver with all_resources may vote for all at once." : "Choose a VM if you speak for one of them only."),
  );
}

/** @param {string} id */
function field(id) {
  const found = document.getElementById(id);
  return found instanceof HTMLInputElement || found instanceof HTMLSelectElement ? found.value.trim() : "";
}

async function send() {
  if (ballot === null || ballot.stage !== "reading" || changed(ballot) !== "") return;
  const now = ballot;
  const resource = field("vote-resource");
  const reason = field("vote-reason");
  now.stage = "sending";
  now.refused = false;
  draw();
  try {
    const { outcomes } = await api.vote({ eventId: now.shown.eventId, decision: now.decision, seen: now.shown.state, ...(resource && { resource }), ...(reason && { reason }) });
    now.stage = "done";
    now.refused = outcomes.some((one) => one.outcome === "refused");
    now.news = [...outcomes.map((one) => sentence(one)), await remaining(now)].join(" ").trim();
  } catch (error) {
    now.stage = "reading";
    now.refused = true;
    now.news = error instanceof Error ? error.message : String(error);
  }
  if (ballot === now && isOpen()) draw();
}

/**
 * Who still has to approve.
 * @param {Ballot} now
 */
async function remaining(now) {
  if (now.decision !== "approve") return "";
  const event = await api.event(now.shown.eventId).catch(() => null);
  const missing = event?.pending && event.status === "Scheduled" ? (event.approvals?.missing ?? []) : [];
  const more = missing.length > MOST_NAMES ? ` and ${missing.length - MOST_NAMES} others` : "";
  return missing.length === 0 ? "" : `Still missing: ${missing.slice(0, MOST_NAMES).join(", ")}${more}.`;
}

/** @param {import("./shapes.js").Outcome} outcome */
function sentence(outcome) {
  if (outcome.outcome === "granted") return "Azure was told, and accepted.";
  if (outcome.outcome === "pending") return outcome.detail ?? "The votes are enough. Azure is being told.";
  if (outcome.outcome === "refused") return `The vote does not count: ${outcome.detail ?? outcome.reason}.`;
  return `The vote is recorded.${outcome.detail ? ` ${outcome.detail}` : ""}`;
}

/** The reader looks at the new version, and has to confirm that one. */
function again() {
  if (ballot === null) return;
  if (ballot.latest === null) close();
  else {
    ballot.shown = ballot.latest;
    ballot.news = "";
    ballot.refused = false;
    draw();
  }
}
