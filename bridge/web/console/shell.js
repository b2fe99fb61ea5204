/** The frame around the pages: navigation, connection, readiness, account and theme. */
import { byId, h, show } from "./dom.js";
import { icon } from "./icons.js";
import { button } from "./parts.js";
import { counted } from "./words.js";

/** @typedef {import("./shapes.js").Status} Status */
/** @typedef {import("./shapes.js").Session} Session */

/** The section of the runbook about a note that is normal on a quiet VM. */
const UNTRIED = "#a-sink-is-untried";

/** @param {"open" | "lost" | "off"} state */
export function showConnection(state) {
  const element = byId("live");
  element.dataset["state"] = state;
  element.textContent = { open: "Live", lost: "Reconnecting", off: "Not connected" }[state];
}

/** @param {string} name */
export function showPlace(name) {
  for (const link of document.querySelectorAll("nav [data-page]")) {
    if (link.getAttribute("data-page") === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/**
 * @param {string} title
 * @param {Status | null} status
 */
export function showTitle(title, status) {
  const count = (status?.pending.events ?? 0) + (status?.pending.drills ?? 0);
  document.title = `${count > 0 ? `(${count}) ` : ""}${title} · ${status?.vm.name ?? "Scheduled Events"}`;
  const badge = byId("pending-count");
  badge.classList.toggle("none", count === 0);
  badge.textContent = String(count);
  badge.setAttribute("aria-label", `${count} pending`);
  if (status?.vm.name) byId("vm").textContent = [status.vm.name, status.vm.location].filter(Boolean).join(" · ");
}

/** @param {Session} session */
export function showAccount(session) {
  const { caller, access } = session;
  const words = [];
  if (caller === null) words.push(button("log-in", {}, "slim first", "Log in"));
  else if (caller.by === "session") {
    words.push(h("span", { class: "account-name", title: `Scopes: ${caller.scopes.join(", ")}` }, icon("user"), h("span", { class: "words" }, caller.name)), button("log-out", {}, "slim", "Log out"));
  } else if (caller.by === "none") {
    words.push(button("read-only", {}, "slim", "Read only"), access.tokens ? button("log-in", {}, "slim", "Log in") : null);
  } else words.push(h("span", { class: "account-name" }, icon("user"), h("span", { class: "words" }, caller.name)));
  show(byId("account"), ...words);
}

/**
 * The strip under the top bar. It always has the same height, so that nothing moves when it turns red.
 * @param {Status | null} status
 * @param {string} trouble why there is no status
 */
export function showReadiness(status, trouble) {
  const strip = byId("ready");
  const words = byId("ready-words");
  if (status === null || trouble !== "") {
    strip.dataset["state"] = trouble ? "bad" : "unknown";
    show(words, icon(trouble ? "warn" : "clock"), h("span", { class: "line" }, trouble || "Asking the bridge how it is"));
    if (trouble) show(byId("ready-more"), h("p", {}, trouble, " What you see may be old."));
    return;
  }
  const { ready, reasons, notes } = status.readiness;
  const noted = failing(status) || notes.some((one) => !one.runbook.endsWith(UNTRIED));
  strip.dataset["state"] = ready ? (noted ? "wait" : "ok") : "bad";
  const first = reasons[0];
  const line = ready ? [h("b", {}, "Ready."), ` ${summary(status)}`] : [h("b", {}, "Not ready. "), `${first?.what}: ${first?.why}`];
  const others = reasons.length - 1;
  const more = others > 0 ? `and ${counted(others, "more reason")}` : notes.length > 0 ? counted(notes.length, "note") : "";
  show(words, icon(ready && !noted ? "check" : "warn"), h("span", { class: "line" }, ...line), h("span", { class: noted ? "more wait" : "more" }, more, " ▾"));
  const rows = [...reasons.map((one) => ({ ...one, tone: "bad" })), ...notes.map((one) => ({ ...one, tone: one.runbook.endsWith(UNTRIED) ? "" : "wait" }))];
  const list = h("dl", {}, rows.flatMap((one) => [h("dt", { class: one.tone }, one.what), h("dd", { class: "break" }, h("p", {}, one.why), h("p", { class: "muted small" }, "What to do: ", h("code", {}, one.runbook)))]));
  show(byId("ready-more"), rows.length > 0 ? list : h("p", { class: "muted" }, "The metadata service answers, the journal can be written, and no required sink is down."), h("p", { class: "small" }, h("a", { href: "#/health" }, "Open Health")));
}

/** @param {Status} status */
function failing({ source }) {
  return source.state === "failing" || source.state === "degraded";
}

/** @param {Status} status */
function summary(status) {
  const down = status.sinks.filter((one) => one.state === "unavailable" || one.state === "stopped").length;
  const waiting = status.sinks.reduce((sum, one) => sum + one.waiting, 0);
  const dead = status.sinks.reduce((sum, one) => sum + one.dead, 0);
  const parts = [down > 0 ? `${counted(down, "best-effort sink")} down` : `${counted(status.sinks.length, "sink")} up`];
  if (failing(status)) parts.unshift("but the metadata service does not answer");
  if (waiting > 0) parts.push(`${waiting.toLocaleString("en-US")} waiting`);
  if (dead > 0) parts.push(counted(dead, "dead letter"));
  if (status.approvals.dryRun) parts.push("dry run: Azure is never told");
  return parts.join(", ");
}

function isDark() {
  const chosen = document.documentElement.dataset["theme"];
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

export function showTheme() {
  show(byId("theme"), icon(isDark() ? "sun" : "moon"));
}

/** Switch; a choice that equals the system's preference is no choice. */
export function switchTheme() {
  const next = isDark() ? "light" : "dark";
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  if (next === system) {
    localStorage.removeItem("seb.theme");
    delete document.documentElement.dataset["theme"];
  } else {
    localStorage.setItem("seb.theme", next);
    document.documentElement.dataset["theme"] = next;
  }
  showTheme();
}
