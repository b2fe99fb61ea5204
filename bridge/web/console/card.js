/** A scheduled event as a card: what happens and when, who is ready, who knows, and what to press. */
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { badge, button, deliveryWords, drillBadge, eventHref, statusBadge, vmList } from "./parts.js";
import { countdown, duration, elapsed, moment, share } from "./time.js";
import { counted, lacking, meaning, policy, shortType, vms } from "./words.js";

/** @typedef {import("./shapes.js").ScheduledEvent} ScheduledEvent */
/** @typedef {import("./shapes.js").EventDetail} EventDetail */
/** @typedef {import("./shapes.js").Model} Model */

const TRANSITIONS = new Set(["scheduled", "updated", "started", "completed", "canceled"]);

/**
 * @param {EventDetail | ScheduledEvent} event
 * @param {Model} model
 * @param {boolean} [whole] whether it stands on its own page
 */
export function eventCard(event, model, whole = false) {
  const own = model.status?.vm.name;
  const level = whole ? "h2" : "h3";
  const title = `${event.eventType} of ${vms(event.resources, own)}`;
  const name = whole ? h("h1", {}, title) : h("h2", {}, h("a", { href: eventHref(event.eventId) }, title));
  return h(
    "article",
    { class: "card", "data-key": event.eventId, id: `event-${event.eventId}`, "data-status": event.status, "aria-label": `${event.drill ? "Drill: " : ""}${title}` },
    notice(event),
    h(
      "header",
      { class: "card-head" },
      h("span", { class: "card-icon" }, icon(event.eventType)),
      h("div", { class: "card-title" }, h("div", { class: "card-name" }, name, event.drill && drillBadge(), statusBadge(event.status)), h("p", { class: "muted" }, meaning(event.eventType))),
      when(event),
    ),
    h("div", { class: "card-body" }, what(event, own, level), ready(event, level), heard(event, level)),
    press(event, model),
  );
}

/**
 * The notice that is left, as a line that shortens.
 * @param {ScheduledEvent} event
 */
function notice(event) {
  const from = event.times.announced;
  const until = event.status === "Scheduled" ? event.notBefore : null;
  if (!from || !until) return h("div", { class: "notice" });
  return h("progress", { class: "notice", max: 1, value: share(from, until), "data-since": from, "data-until": until, "aria-hidden": "true" });
}

/** @param {ScheduledEvent} event */
function when(event) {
  const { started, ended } = event.times;
  if (event.status === "Scheduled" && event.notBefore) {
    return h(
      "div",
      { class: "when" },
      h("div", { class: "when-large" }, countdown(event.notBefore)),
      h("dl", {}, h("dt", {}, "Not before"), h("dd", {}, moment(event.notBefore)), h("dt", {}, "Approve by"), h("dd", {}, event.approveBy ? moment(event.approveBy) : "–", event.approveBy && h("span", { class: "when-left" }, countdown(event.approveBy), " left"))),
    );
  }
  if (event.status === "Started" && started) {
    return h("div", { class: "when" }, h("div", { class: "when-large" }, elapsed(started)), h("dl", {}, h("dt", {}, "Started"), h("dd", {}, moment(started)), h("dt", {}, "Expected to last"), h("dd", {}, expected(event))));
  }
  const last = h("dl", {}, h("dt", {}, "Ended"), h("dd", {}, moment(ended ?? event.lastChange)), h("dt", {}, "Lasted"), h("dd", {}, duration(event.times.durationSeconds)));
  return h("div", { class: "when" }, h("div", { class: "when-large over" }, event.status === "Scheduled" ? "No time given" : "Over"), last);
}

/** @param {ScheduledEvent} event */
function expected(event) {
  const seconds = event.durationInSeconds;
  return seconds === null || seconds < 0 ? "not known" : duration(seconds);
}

/**
 * @param {ScheduledEvent} event
 * @param {string | null | undefined} own
 * @param {string} level of the heading
 */
function what(event, own, level) {
  return h(
    "section",
    {},
    h(level, { class: "section-title" }, counted(event.resources.length, "VM"), " affected"),
    h("div", { class: "card-list", tabindex: "0", role: "group", "aria-label": "What Azure does" }, vmList(event.resources, own), h("p", { class: "description break" }, event.description || "Azure gives no description.")),
    h("dl", { class: "facts" }, h("dt", {}, "Source"), h("dd", {}, event.eventSource ?? "–"), h("dt", {}, "Expected to last"), h("dd", {}, expected(event))),
  );
}

/**
 * @param {EventDetail | ScheduledEvent} event
 * @param {string} level
 */
function ready(event, level) {
  const judged = event.approvals;
  const rows = [...seats(event), ...(judged?.holds ?? []).map((hold) => heldBy(hold))];
  return h(
    "section",
    {},
    h(level, { class: "section-title" }, verdict(event)),
    h("ul", { class: "card-list rows", tabindex: "0", "aria-label": "Votes" }, rows.length > 0 ? rows : h("li", { class: "muted" }, event.pending ? "Votes will appear here." : "Nobody voted.")),
    h("p", { class: "foot muted" }, judged ? `${policy(judged.require)}.` : "\u00A0", judged?.dryRun && !event.drill && " Dry run: Azure is never told."),
  );
}

/**
 * Who has to be ready and who is, in an order that stays when votes come.
 * @param {EventDetail | ScheduledEvent} event
 */
function seats(event) {
  const judged = event.approvals;
  const votes = "votes" in event ? event.votes.filter((vote) => vote.life === event.life && vote.decision === "approve") : [];
  if (judged === null) return votes.map((vote) => seat(vote.approver, vote));
  const each = judged.require === "each-resource";
  const missing = new Set(judged.missing);
  const names = each ? event.resources : [...judged.have, ...judged.missing];
  return names.map((name) => {
    if (missing.has(name)) return seat(each ? name : lacking(name), undefined, true);
    return seat(name, votes.find((vote) => (each ? vote.resource === name : vote.approver === name)) ?? votes[0]);
  });
}

/**
 * @param {string} name
 * @param {import("./shapes.js").Vote | undefined} vote
 * @param {boolean} [missing]
 */
function seat(name, vote, missing = false) {
  const by = vote === undefined ? "" : `${vote.approver === name ? "" : ` by ${vote.approver}`}${vote.reason ? `: ${vote.reason}` : ""}`;
  return h(
    "li",
    { "data-key": `seat ${name}` },
    h("span", { class: `mark ${missing ? "wait" : "ok"}` }, icon(missing ? "clock" : "check"), h("span", {}, h("b", {}, name), h("span", { class: "muted" }, by))),
    h("span", { class: "side" }, missing ? "not ready" : vote ? moment(vote.at) : "ready"),
  );
}

/** @param {import("./shapes.js").Hold} hold */
function heldBy(hold) {
  const why = `${hold.resource ? ` for ${hold.resource}` : ""}${hold.reason ? `: ${hold.reason}` : ""}`;
  return h(
    "li",
    { "data-key": `hold ${hold.approver} ${hold.resource}` },
    h("span", { class: "mark wait" }, icon("hand"), h("span", {}, h("b", {}, hold.approver), " holds", h("span", { class: "muted" }, why))),
    h("span", { class: "side" }, "ends in ", countdown(hold.until)),
  );
}

/** @param {ScheduledEvent} event */
function verdict(event) {
  const judged = event.approvals;
  if (event.times.granted || judged?.grant === "granted") return badge("ok", icon("check"), "Azure was told to go ahead");
  if (judged === null) return "Who approved";
  if (event.status === "Started") return "Approvals no longer matter";
  if (judged.holds.length > 0) return badge("wait", icon("hand"), "Held: Azure is not told");
  if (judged.grant === "due" || judged.grant === "asked") return badge("accent", icon("clock"), "Azure is being told");
  if (judged.satisfied) return badge("ok", icon("check"), judged.dryRun ? "Everyone is ready (dry run)" : "Everyone is ready");
  return badge("wait", icon("clock"), `${counted(judged.missing.length, "approval")} missing`);
}

/**
 * @param {EventDetail | ScheduledEvent} event
 * @param {string} level
 */
function heard(event, level) {
  const last = "history" in event ? event.history.findLast((row) => TRANSITIONS.has(shortType(row.cloudevent.type))) : undefined;
  const rows = last?.deliveries ?? [];
  const wanted = rows.filter((one) => !["filtered", "before", "own", "overtaken"].includes(one.outcome));
  const got = wanted.filter((one) => one.outcome === "delivered").length;
  const bad = wanted.some((one) => one.outcome === "dead" || (one.outcome === "waiting" && one.error));
  const tone = bad ? "bad" : got === wanted.length ? "ok" : "wait";
  const words = wanted.length === 0 ? "No sink gets this event" : got === wanted.length ? (got === 1 ? "The sink knows" : `All ${got} sinks know`) : `${got} of ${counted(wanted.length, "sink")} know`;
  return h(
    "section",
    {},
    h(level, { class: "section-title" }, last === undefined ? "Who knows" : badge(wanted.length === 0 ? "" : tone, icon(tone === "ok" ? "check" : tone === "bad" ? "cross" : "clock"), words)),
    h(
      "ul",
      { class: "card-list rows", tabindex: "0", "aria-label": "Sinks" },
      last === undefined && h("li", { class: "muted" }, "Deliveries will appear here."),
      rows.map((one) => h("li", { "data-key": one.sink }, deliveryWords(one.outcome, one.sink, one.outcome === "delivered" ? "" : one.error), h("span", { class: "side" }, late(one, last?.cloudevent.time)))),
    ),
    h("p", { class: "foot muted" }, last ? `About: ${shortType(last.cloudevent.type)}, ` : "\u00A0", last && moment(last.cloudevent.time)),
  );
}

/**
 * @param {import("./shapes.js").Delivery} one
 * @param {string | undefined} recorded
 */
function late(one, recorded) {
  if (one.outcome === "delivered" && one.at && recorded) return `after ${duration(Math.max(0, (Date.parse(one.at) - Date.parse(recorded)) / 1000))}`;
  if (one.attempts > 0 && one.outcome !== "delivered") return counted(one.attempts, "attempt");
  return "";
}

/**
 * @param {ScheduledEvent} event
 * @param {Model} model
 */
function press(event, model) {
  const id = { event: event.eventId };
  const open = event.pending && event.status === "Scheduled";
  const may = model.session.caller?.scopes.includes("approve") ?? false;
  const buttons = open && may ? [button("approve", id, "first", "Approve…"), button("hold", id, "", "Hold…"), (event.approvals?.holds.length ?? 0) > 0 && button("release", id, "", "Release…")] : [];
  return h("footer", { class: "card-foot" }, h("div", { class: "buttons" }, ...buttons), h("p", { class: "muted" }, advice(event, model, open, may)), h("a", { href: eventHref(event.eventId), class: "card-id mono", title: "Open this event" }, event.eventId.slice(0, 13)));
}

/**
 * @param {ScheduledEvent} event
 * @param {Model} model
 * @param {boolean} open
 * @param {boolean} may
 */
function advice(event, model, open, may) {
  if (!open) return event.pending ? "It has started, so votes no longer count." : "It is over.";
  if (!may) return locked(model);
  if (event.drill) return "A drill: Azure is never told.";
  if (event.approvals?.grant === "granted") return "Azure accepted, and starts it soon.";
  return "Without approval, Azure starts it at the time above.";
}

/** @param {Model} model */
function locked(model) {
  const { caller, access } = model.session;
  if (!access.tokens && !access.certificates) {
    return h("span", {}, "Read only. To vote here, add a token under ", h("code", {}, "http.tokens"), " and log in.");
  }
  return caller?.by === "session" ? `${caller.name} has no scope approve, so it cannot vote.` : "Log in with a token that has the scope approve to vote.";
}
