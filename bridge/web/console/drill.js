/** The page Drill: start a rehearsal, watch it, and read its report. */
import * as api from "./api.js";
import { h } from "./dom.js";
import { badge, button, deliveryWords, drillBadge, empty, vacant, eventHref, note, panel, statusBadge, table } from "./parts.js";
import { countdown, duration, moment } from "./time.js";
import { counted, vms } from "./words.js";

/** @typedef {import("./shapes.js").DrillReport} DrillReport */
/** @typedef {import("./shapes.js").DrillSummary} DrillSummary */
/** @typedef {import("./shapes.js").Model} Model */

/** @type {import("./shapes.js").Page} */
export const page = { name: "drill", title: "Drill", load, view };

/** @param {string[]} params */
async function load(params) {
  const drills = await api.drills();
  const chosen = params[0] ?? drills[0]?.eventId;
  const report = chosen ? await api.drill(chosen).catch(() => null) : null;
  return { drills, report };
}

/** @param {Model} model */
function view(model) {
  /** @type {{drills: DrillSummary[], report: DrillReport | null} | null} */
  const data = model.data;
  const head = h("div", { class: "page-head" }, h("div", {}, h("h1", {}, "Drill"), h("p", {}, "Rehearse maintenance: a made-up event goes through the real journal, sinks and approvals. It never reaches Azure.")));
  return h(
    "div",
    { class: "page" },
    head,
    h("div", { class: "split" }, h("div", { class: "report" }, form(model, data?.drills ?? []), earlier(data?.drills ?? [])), h("div", { class: "report" }, data === null ? "" : data.report ? report(data.report, model) : nothing())),
  );
}

function nothing() {
  return h("div", { class: "panel" }, empty("list", "No drill yet", "The report of a drill appears here while it runs: which sink got the announcement and how fast, who approved and how long before the deadline, and who stayed silent."));
}

/**
 * @param {Model} model
 * @param {DrillSummary[]} drills
 */
function form(model, drills) {
  const running = drills.find((one) => one.endedAt === null);
  if (!model.session.caller?.scopes.includes("operate")) {
    const why = model.session.access.tokens ? "Log in with a token that has the scope operate to start one here." : "To start one here, add a token with the scope operate under http.tokens.";
    return panel("Start a drill", h("div", { class: "inside" }, note("", why, " On the VM, run ", h("code", {}, "seb drill"), ".")));
  }
  const types = ["Reboot", "Freeze", "Redeploy", "Preempt", "Terminate"].map((one) => h("option", { value: one }, one));
  return panel(
    "Start a drill",
    h(
      "form",
      { class: "form", "data-submit": "start-drill" },
      h("div", { class: "form-pair" }, h("div", {}, h("label", { for: "drill-type" }, "Type"), h("select", { id: "drill-type", name: "eventType" }, types)), h("div", {}, h("label", { for: "drill-notice" }, "Notice"), h("input", { id: "drill-notice", name: "notice", placeholder: "as Azure gives", autocomplete: "off" }))),
      h("div", {}, h("label", { for: "drill-vms" }, "VMs"), h("input", { id: "drill-vms", name: "resources", placeholder: model.status?.vm.name ?? "this VM", autocomplete: "off" }), h("p", { class: "hint" }, "Names with commas between them. Empty: this VM.")),
      h("div", {}, h("label", { for: "drill-description" }, "Description"), h("input", { id: "drill-description", name: "description", placeholder: "Tuesday's rehearsal", autocomplete: "off", maxlength: 200 })),
      note("wait", "Pagers ring and consumers act, as for a real event. Tell people first."),
      h("button", { class: "button first", disabled: running !== undefined }, running ? "A drill is running" : "Start the drill"),
    ),
  );
}

/** @param {DrillSummary[]} drills */
function earlier(drills) {
  if (drills.length === 0) return "";
  const items = drills.slice(0, 20).map((one) => h("li", { "data-key": one.eventId }, h("span", {}, h("a", { href: `#/drill/${one.eventId}` }, `${one.eventType} of ${vms(one.resources, null)}`), h("span", { class: "muted small" }, ` by ${one.begunBy}`)), h("span", { class: "side" }, moment(one.begunAt))));
  return panel("Drills", h("ul", { class: "inside rows" }, items));
}

/**
 * @param {DrillReport} one
 * @param {Model} model
 */
function report(one, model) {
  const running = one.endedAt === null;
  const operates = model.session.caller?.scopes.includes("operate");
  const tone = one.passed === null ? "" : one.passed ? "ok" : "bad";
  return h(
    "section",
    { class: "report", "data-key": one.eventId, "aria-label": "Report" },
    h(
      "div",
      { class: "panel" },
      h("header", {}, drillBadge(), h("h2", {}, h("a", { href: eventHref(one.eventId) }, `${one.eventType} of ${vms(one.resources, model.status?.vm.name)}`)), statusBadge(one.status), running && operates && h("span", { class: "end" }, button("stop-drill", { id: one.eventId }, "slim", "Stop the drill"))),
      h("div", { class: "inside" }, note(tone, h("b", {}, one.verdict), " ", azure(one))),
      h(
        "div",
        { class: "inside" },
        h("dl", { class: "pairs" }, h("dt", {}, "Started by"), h("dd", {}, one.begunBy, " at ", moment(one.begunAt)), h("dt", {}, "Approve by"), h("dd", {}, moment(one.approveBy), one.status === "Scheduled" && h("span", { class: "muted" }, " (in ", countdown(one.approveBy), ")")), h("dt", {}, "Not before"), h("dd", {}, moment(one.notBefore)), h("dt", {}, "Over"), h("dd", {}, moment(one.endedAt))),
      ),
    ),
    panel("Who heard of it", table("Sinks", ["Sink", "Announcement", "#After", "#Attempts", "Error"], one.sinks.map((sink) => ({ key: sink.sink, cells: [h("span", { class: "cell-stack" }, h("b", {}, sink.sink), !sink.required && h("span", { class: "muted small" }, "best effort")), deliveryWords(sink.outcome, ""), duration(sink.seconds), String(sink.attempts), h("span", { class: "clamp", title: sink.error }, sink.error ?? "–")] })))),
    voters(one),
  );
}

/** @param {DrillReport} one */
function azure(one) {
  if (one.azure.wouldBeTold) return h("span", {}, "Azure would have been told at ", moment(one.azure.at), `, ${duration(one.azure.secondsBeforeApproveBy)} before the deadline. Nothing was sent.`);
  return one.endedAt === null ? "Nothing is sent to Azure." : "Azure would not have been told.";
}

/** @param {DrillReport} one */
function voters(one) {
  const cast = one.approvals.votes.map((vote, at) => ({ key: `vote ${at}`, cells: [h("b", { class: "break" }, vote.approver), badge(vote.decision === "approve" ? "ok" : "wait", vote.decision), vote.resource ?? "all VMs", moment(vote.at), duration(vote.secondsBeforeApproveBy)] }));
  const refused = one.approvals.refused.map((vote, at) => ({ key: `refused ${at}`, cells: [h("b", { class: "break" }, vote.approver ?? "unknown"), badge("bad", `refused: ${vote.reason}`), vote.resource ?? "all VMs", moment(vote.at), duration(vote.secondsBeforeApproveBy)] }));
  const silent = one.approvals.silent.map((name) => ({ key: `silent ${name}`, cells: [h("b", { class: "break" }, name), badge("", "silent"), "–", "–", "–"] }));
  const rows = [...cast, ...refused, ...silent];
  const missing = one.approvals.satisfied ? "" : h("p", { class: "more-row muted" }, `${counted(one.approvals.missing.length, "approval")} missing: ${one.approvals.missing.join(", ")}`);
  return panel("Who approved", rows.length > 0 ? table("Votes", ["Approver", "Vote", "For", "#At", "#Before the deadline"], rows) : vacant("user", "Nobody has voted yet", "Votes appear here as they come."), missing);
}
