/** Draws the life of a scheduled event to scale: notice, votes, limits, and the time it ran. */
import { h, s } from "./dom.js";
import { duration, now } from "./time.js";
import { shortType } from "./words.js";

/** @typedef {import("./shapes.js").EventDetail} EventDetail */

const MARKS = /** @type {Record<string, string>} */ ({ updated: "", "approval.recorded": "vote", "approval.granted": "vote", "approval.refused": "refused", "approval.due": "hold" });

/** @param {EventDetail} event */
export function timeline(event) {
  const { announced, started, ended } = event.times;
  const rows = event.history.filter((row) => (row.cloudevent.data["life"] ?? event.life) === event.life);
  const begin = Date.parse(announced ?? rows[0]?.cloudevent.time ?? event.lastChange);
  const limit = event.notBefore ? Date.parse(event.notBefore) : begin;
  const last = ended ? Date.parse(ended) : Math.max(now(), event.status === "Scheduled" ? limit : 0);
  const end = Math.max(last, ended && !started ? last : Math.min(limit, last + (last - begin) * 4), begin + 1000);
  const x = (/** @type {number} */ time) => `${Math.min(100, Math.max(0, ((time - begin) / (end - begin)) * 100)).toFixed(2)}%`;
  const width = (/** @type {number} */ from, /** @type {number} */ to) => `${Math.max(0.3, (Math.max(0, to - from) / (end - begin)) * 100).toFixed(2)}%`;
  const turn = started ? Date.parse(started) : last;
  const late = turn - begin > (end - begin) * 0.75;
  const sentence = description(event, begin, turn, last);
  return h(
    "figure",
    { class: "timeline", "data-key": "timeline" },
    s(
      "svg",
      { role: "img", "aria-label": sentence },
      s("rect", { class: "rail", x: 0, y: 46, width: "100%", height: 20, rx: 6 }),
      s("rect", { class: "phase", x: 0, y: 46, width: width(begin, Math.min(turn, started || ended ? turn : now())), height: 20, rx: 6 }),
      started && s("rect", { class: "phase running", x: x(turn), y: 46, width: width(turn, last), height: 20, rx: 6 }),
      event.notBefore && limit <= end && s("line", { class: "limit", x1: x(limit), x2: x(limit), y1: 30, y2: 74 }),
      event.notBefore && limit <= end && s("text", { x: x(limit), y: 24, "text-anchor": limit - begin > (end - begin) / 2 ? "end" : "start" }, "not before"),
      rows.map((row) => dot(row.cloudevent, x)),
      s("text", { class: "strong", x: 0, y: 24 }, "announced"),
      s("text", { x: 0, y: 88 }, started || ended ? `${duration((turn - begin) / 1000)} until it ${started ? "started" : "ended"}` : `announced ${duration((now() - begin) / 1000)} ago`),
      started && s("text", { class: "strong", x: x(late ? last : turn), y: 88, "text-anchor": late ? "end" : "start" }, `${ended ? "ran" : "running for"} ${duration((last - turn) / 1000)}`),
      legend(rows),
    ),
  );
}

/** @param {import("./shapes.js").Row[]} rows */
function legend(rows) {
  const kinds = new Set(rows.map((row) => mark(row.cloudevent)));
  /** @type {[string, string][]} */
  const all = [["", "update"], ["vote", "vote or grant"], ["hold", "hold or reminder"], ["refused", "refusal"]];
  const shown = all.filter(([kind]) => kinds.has(kind));
  return shown.flatMap(([kind, words], at) => [s("circle", { class: `dot ${kind}`, cx: 6 + at * 130, cy: 110, r: 4.5 }), s("text", { x: 18 + at * 130, y: 114 }, words)]);
}

/** @param {import("./shapes.js").CloudEvent} cloudevent */
function mark(cloudevent) {
  const kind = MARKS[shortType(cloudevent.type)];
  return kind === "vote" && cloudevent.data["decision"] === "hold" ? "hold" : kind;
}

/**
 * @param {import("./shapes.js").CloudEvent} cloudevent
 * @param {(time: number) => string} x
 */
function dot(cloudevent, x) {
  const kind = mark(cloudevent);
  return kind !== undefined && s("circle", { class: `dot ${kind}`, cx: x(Date.parse(cloudevent.time)), cy: 56, r: 6 }, s("title", {}, shortType(cloudevent.type)));
}

/**
 * @param {EventDetail} event
 * @param {number} begin
 * @param {number} turn
 * @param {number} last
 */
function description(event, begin, turn, last) {
  const wait = duration((turn - begin) / 1000);
  if (event.times.started) return `Announced, started ${wait} later, ran ${duration((last - turn) / 1000)}.`;
  return event.times.ended ? `Announced, and gone ${wait} later without a start.` : "Announced, and waiting to start.";
}
