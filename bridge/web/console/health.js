/** The page Health: source, journal, configuration, sinks, dead letters and approval sources. */
import * as api from "./api.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { badge, button, eventHref, panel, stateBadge, table, vacant } from "./parts.js";
import { duration, elapsed, moment } from "./time.js";
import { bytes, counted, shortType } from "./words.js";

/** @typedef {import("./shapes.js").Status} Status */
/** @typedef {import("./shapes.js").Model} Model */
/** @typedef {import("./shapes.js").DeadLetter} DeadLetter */

/** @type {import("./shapes.js").Page} */
export const page = { name: "health", title: "Health", load, view };

/** How many dead letters are listed. */
const MOST = 100;
/** How many refused votes are listed. */
const MOST_REFUSED = 20;

async function load() {
  const [letters, approvals] = await Promise.all([api.deadLetters(), api.approvals()]);
  return { letters, refused: approvals.filter((one) => one.outcome === "refused").slice(0, MOST_REFUSED) };
}

/** @param {Model} model */
function view(model) {
  const { status } = model;
  const head = h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Health"), h("p", {}, status ? [`Version ${status.version}, running for `, elapsed(status.startedAt)].map((one) => (typeof one === "string" ? h("span", {}, one) : one)) : "Loading…")));
  if (status === null) return h("div", { class: "page" }, head);
  const operates = model.session.caller?.scopes.includes("operate") ?? false;
  return h(
    "div",
    { class: "page" },
    head,
    h("div", { class: "tiles" }, source(status), journal(status), configuration(status, operates)),
    sinks(status, operates),
    letters(model.data?.letters ?? [], operates),
    approvalSources(status),
    refusals(model.data?.refused ?? []),
  );
}

/**
 * @param {string} title
 * @param {Node} state
 * @param {import("./dom.js").Child[]} inside
 */
function tile(title, state, ...inside) {
  return h("section", { class: "panel tile", "data-key": title }, h("div", { class: "tile-head" }, h("h2", {}, title), state), ...inside);
}

/** @param {[string, import("./dom.js").Child][]} rows */
function pairs(...rows) {
  return h("dl", { class: "pairs" }, rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** @param {Status} status */
function source({ source: one }) {
  const why = [one.problem, one.detail].filter(Boolean).join(": ");
  const errors = Object.values(one.problems).reduce((sum, count) => sum + count, 0);
  const kinds = Object.entries(one.problems).map(([kind, count]) => `${kind}: ${count}`).join(", ");
  return tile(
    "Metadata service",
    one.clockSkewed && one.state === "good" ? badge("wait", icon("warn"), "clock is wrong") : stateBadge(one.state),
    h("p", { class: "tile-large" }, age(one.lastGoodAgeSeconds), h("small", {}, one.lastGoodAgeSeconds === null ? " had a good answer" : " since the last good answer")),
    h("p", { class: `why ${one.problem ? "bad" : "muted"}`, title: why }, why || "Every answer can be used."),
    pairs(
      ["Address", h("span", { class: "mono", title: one.endpoint }, one.endpoint ?? "looking for it")],
      ["Asked", `every ${duration(one.pollIntervalSeconds)}, ${one.polls.toLocaleString("en-US")} times`],
      ["Bad answers", h("span", { title: kinds }, errors.toLocaleString("en-US"))],
      ["Clock", h("span", { class: one.clockSkewed ? "wait" : "" }, clock(one.clockSkewSeconds))],
    ),
  );
}

/** @param {number | null} ahead */
function clock(ahead) {
  if (ahead === null) return "not compared with Azure's yet";
  return `${duration(Math.abs(ahead))} ${ahead > 0 ? "ahead of" : "behind"} Azure's`;
}

/** @param {number | null} seconds */
function age(seconds) {
  if (seconds === null) return "never";
  return seconds < 1 ? "under 1 s" : duration(Math.round(seconds));
}

/** @param {Status} status */
function journal({ journal: one, readiness }) {
  const lost = readiness.notes.filter((note) => note.what === "journal").map((note) => note.why).join("; ");
  const why = one.trouble ?? lost;
  const good = lost ? badge("wait", icon("warn"), "something is lost") : badge("ok", "writable");
  return tile(
    "Journal",
    one.writable ? good : badge("bad", "cannot be written"),
    h("p", { class: "tile-large" }, bytes(one.bytes), h("small", {}, ` of ${bytes(one.maxBytes)}`)),
    h("p", { class: `why ${one.trouble ? "bad" : lost ? "wait" : "muted"}`, title: why }, why || "Everything that must not be lost is on disk."),
    h("progress", { class: "meter", max: one.maxBytes || 1, value: one.bytes, "aria-label": "Size of the journal" }),
    pairs(["File", h("span", { class: "mono", title: one.path }, one.path)], ["Deliveries lost", h("span", { class: one.lost > 0 ? "bad" : "" }, one.lost.toLocaleString("en-US"))]),
  );
}

/**
 * @param {Status} status
 * @param {boolean} operates
 */
function configuration({ configuration: one, approvals }, operates) {
  const state = one.fileError ? badge("bad", "cannot be read") : one.differs ? badge("wait", "file differs") : badge("ok", one.file ? "file in force" : "defaults");
  const failed = one.reload?.outcome === "rejected" ? `The last reload was rejected: ${one.reload.errors.join(" ")}` : "";
  const why = one.fileError ?? (one.differs ? "The file on disk is not the one in force. A reload applies it." : failed || "The bridge runs what the file says.");
  return tile(
    "Configuration",
    state,
    h("p", { class: "tile-large mono" }, one.sha256.slice(0, 12)),
    h("p", { class: `why ${one.fileError || failed ? "bad" : "muted"}`, title: why }, why),
    pairs(
      ["File", h("span", { class: "mono", title: one.file }, one.file ?? "none: defaults")],
      ["Loaded", moment(one.loadedAt)],
      ["Approvals need", approvals.dryRun ? `${approvals.require} (dry run)` : approvals.require],
    ),
    operates && h("footer", {}, button("reload", {}, "slim", "Reload")),
  );
}

/**
 * @param {Status} status
 * @param {boolean} operates
 */
function sinks(status, operates) {
  const rows = status.sinks.map((one) => ({
    key: one.name,
    class: one.state === "unavailable" || one.state === "stopped" || one.dead > 0 ? "bad-row" : "",
    cells: [
      h("span", { class: "cell-stack" }, h("b", { class: "break" }, one.name), h("span", { class: "muted small" }, one.type, one.required ? "" : ", best effort")),
      stateBadge(one.state),
      one.waiting.toLocaleString("en-US"),
      moment(one.oldest),
      one.delivered.toLocaleString("en-US"),
      one.dead > 0 ? h("b", { class: "bad" }, one.dead.toLocaleString("en-US")) : "0",
      h("span", { class: "clamp", title: one.error }, one.error ?? "–"),
      operates && h("span", { class: "cell-actions" }, one.state === "stopped" && button("resume-sink", { name: one.name }, "slim", "Resume"), button("replay-sink", { name: one.name }, "slim", "Replay all…")),
    ],
  }));
  const heads = ["Sink", "State", "#Waiting", "#Oldest", "#Delivered", "#Dead", "Last error"];
  return panel("Sinks", table("Sinks", operates ? [...heads, ""] : heads, rows.map((row) => (operates ? row : { ...row, cells: row.cells.slice(0, -1) }))));
}

/**
 * @param {DeadLetter[]} all
 * @param {boolean} operates
 */
function letters(all, operates) {
  const rows = all.slice(0, MOST).map((one) => ({
    key: one.id,
    cells: [
      h("b", { class: "break" }, one.sink),
      h("span", { class: "cell-stack" }, h("span", {}, shortType(one.type)), h("a", { href: eventHref(one.subject), class: "mono small" }, one.subject.slice(0, 13))),
      h("span", { class: "clamp", title: one.reason }, one.reason),
      String(one.attempts),
      moment(one.lastAttempt),
      h("span", { class: "cell-actions" }, button("view-letter", { id: one.id }, "slim", "View"), operates && button("replay-letter", { id: one.id }, "slim", "Replay"), operates && button("drop-letter", { id: one.id, sink: one.sink }, "slim", "Drop…")),
    ],
  }));
  const inside = rows.length > 0 ? table("Dead letters", ["Sink", "CloudEvent", "Reason", "#Attempts", "#Last attempt", ""], rows) : vacant("letter", "No dead letters", "A CloudEvent that a sink refuses for good appears here. You can look at it, send it again, or drop it.");
  const more = all.length > MOST ? h("p", { class: "more-row muted" }, `${counted(all.length - MOST, "more", "more")} in `, h("code", {}, "seb dead-letters list")) : "";
  return panel("Dead letters", inside, more);
}

/** @param {import("./shapes.js").Refusal[]} all */
function refusals(all) {
  const rows = all.map((one, at) => ({
    key: `${one.at} ${at}`,
    cells: [
      h("b", { class: "break" }, one.approver ?? "unknown"),
      badge("bad", one.reason),
      h("span", { class: "clamp", title: one.detail }, one.detail ?? "–"),
      one.eventId ? h("a", { href: eventHref(one.eventId), class: "mono small" }, one.eventId.slice(0, 13)) : "–",
      h("span", {}, one.via, one.stray && h("span", { class: "muted" }, ", stray")),
      moment(one.at),
    ],
  }));
  return panel("Refused votes", rows.length > 0 ? table("Refused votes", ["Approver", "Reason", "Why", "Event", "Via", "#At"], rows) : vacant("user", "No vote was refused", "Votes that do not count appear here with the reason, strays too."));
}

/** @param {Status} status */
function approvalSources(status) {
  const rows = status.approvalSources.map((one) => ({
    key: one.name,
    class: one.state === "unavailable" ? "bad-row" : "",
    cells: [
      h("span", { class: "cell-stack" }, h("b", { class: "break" }, one.name), h("span", { class: "muted small" }, one.type)),
      stateBadge(one.silent && one.state === "connected" ? "silent" : one.state),
      one.received.toLocaleString("en-US"),
      one.lag === null ? "–" : one.lag.toLocaleString("en-US"),
      one.heardSecondsAgo === null ? "–" : `${duration(Math.round(one.heardSecondsAgo))} ago`,
      h("span", { class: "clamp", title: one.error }, one.error ?? "–"),
    ],
  }));
  return panel("Approval sources", rows.length > 0 ? table("Approval sources", ["Source", "State", "#Received", "#Behind", "#Last sign of life", "Last error"], rows) : vacant("user", "No approval source is configured", "Votes come from this console, the command line and the API. Topics of Kafka and MQTT under approvals.from appear here."));
}
