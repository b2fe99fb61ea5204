/** What the buttons on the pages do, by the name in `data-action`. */
import * as api from "./api.js";
import { confirm, deedButton, open, perform, toast } from "./dialog.js";
import { h } from "./dom.js";
import * as history from "./history.js";
import { askForToken } from "./login.js";
import { switchTheme } from "./shell.js";
import { counted } from "./words.js";
import * as vote from "./vote.js";

/**
 * @typedef {object} Desk what actions need of the page around them
 * @property {() => import("./shapes.js").Status | null} status
 * @property {() => Promise<void>} refresh
 * @property {() => Promise<void>} enter after a log-in or log-out
 */

/** @typedef {(element: HTMLElement, desk: Desk) => void | Promise<void>} Act */

/**
 * @param {import("./shapes.js").Decision} decision
 * @returns {Act}
 */
function ballot(decision) {
  return async (element, desk) => {
    const status = desk.status();
    if (status !== null) vote.ask(decision, await api.event(element.dataset["event"] ?? ""), status);
  };
}

/** @type {Record<string, Act>} */
export const ACTIONS = {
  approve: ballot("approve"),
  hold: ballot("hold"),
  release: ballot("release"),
  theme: switchTheme,
  deed: (element) => perform(element.dataset["deed"] ?? ""),
  more: async (_, desk) => {
    history.showMore();
    await desk.refresh();
  },
  "read-only": () => {
    const file = "http:\n  tokens:\n    - {name: ops, token: {file: /etc/scheduled-events-bridge/ops.token}, scopes: [read, approve, operate]}";
    const body = [h("p", {}, "Anyone on this VM may read. To vote, replay or start a drill here, add a token to the configuration, and log in with it:"), h("pre", { class: "json", tabindex: "0" }, file), h("p", { class: "muted" }, "On the VM itself, ", h("code", {}, "seb approve"), " works without a token.")];
    open({ title: "This console is read-only", body, wide: true, buttons: [deedButton("close", "first", "Close")] }, {});
  },
  "log-in": (_, desk) => askForToken(desk.enter),
  "log-out": async (_, desk) => {
    await api.logOut();
    await desk.enter();
  },
  reload: async (_, desk) => {
    try {
      const done = await api.reload();
      toast(done.changed?.length > 0 ? `Reloaded. Changed: ${done.changed.join(", ")}.` : "Reloaded. Nothing changed.");
    } catch (error) {
      const why = error instanceof api.Problem ? (error.body["errors"] ?? [error.message]) : [String(error)];
      open({ title: "The reload was rejected", body: [h("p", {}, "Nothing changed. The bridge runs on with the configuration that it has."), h("ul", {}, why.map((/** @type {string} */ one) => h("li", { class: "break" }, one)))], buttons: [deedButton("close", "first", "Close")] }, {});
    }
    await desk.refresh();
  },
  "resume-sink": async (element, desk) => {
    const name = element.dataset["name"] ?? "";
    await api.resumeSink(name);
    toast(`Sink ${name} is tried again.`);
    await desk.refresh();
  },
  "replay-sink": (element, desk) => {
    const name = element.dataset["name"] ?? "";
    const body = [h("p", {}, `Sink ${name} gets every CloudEvent that is still in the journal again, under the same ids. Its consumers must tolerate repeats.`)];
    confirm({ title: `Replay everything to ${name}?`, body, words: "Replay all", look: "first" }, async () => {
      const done = await api.replaySink(name);
      void desk.refresh();
      return `${counted(done.cloudEvents, "CloudEvent")} will be sent to ${name} again.`;
    });
  },
  "view-letter": async (element) => {
    const letter = await api.deadLetter(element.dataset["id"] ?? "");
    const body = [h("p", { class: "break" }, h("b", {}, letter.sink), ` refused it: ${letter.reason}`), h("pre", { class: "json", tabindex: "0" }, JSON.stringify(letter.cloudevent, null, 2))];
    open({ title: "Dead letter", body, wide: true, buttons: [deedButton("close", "first", "Close")] }, {});
  },
  "replay-letter": async (element, desk) => {
    await api.replayLetter(element.dataset["id"] ?? "");
    toast("The dead letter is sent again.");
    await desk.refresh();
  },
  "drop-letter": (element, desk) => {
    const { id = "", sink = "" } = element.dataset;
    const body = [h("p", {}, `Sink ${sink} will never get this CloudEvent. The bridge records who dropped it.`)];
    confirm({ title: "Drop this dead letter?", body, words: "Drop", look: "danger" }, async () => {
      await api.dropLetter(id);
      void desk.refresh();
      return "The dead letter is dropped.";
    });
  },
  "stop-drill": (element, desk) => {
    const id = element.dataset["id"] ?? "";
    confirm({ title: "Stop the drill?", body: [h("p", {}, "Consumers are told that the event is no longer announced. A drill that is stopped proves nothing.")], words: "Stop the drill", look: "danger" }, async () => {
      await api.stopDrill(id);
      void desk.refresh();
      return "The drill is stopped.";
    });
  },
};

/** @type {Record<string, Act>} */
export const SUBMITS = {
  filters: (_, desk) => desk.refresh(),
  "start-drill": async (element, desk) => {
    const fields = new FormData(/** @type {HTMLFormElement} */ (element));
    const said = (/** @type {string} */ name) => String(fields.get(name) ?? "").trim();
    const named = said("resources").split(",").map((one) => one.trim()).filter(Boolean);
    const plan = { eventType: said("eventType"), ...(said("notice") && { notice: said("notice") }), ...(named.length > 0 && { resources: named }), ...(said("description") && { description: said("description") }) };
    const report = await api.startDrill(plan);
    location.hash = `#/drill/${report.eventId}`;
    await desk.refresh();
  },
};

/** @type {Record<string, Act>} */
export const CHANGES = {
  filter: async (element, desk) => {
    history.filter(/** @type {HTMLInputElement} */ (element));
    await desk.refresh();
  },
};
