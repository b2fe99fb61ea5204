/** Starts the console: finds the page for the address, keeps it up to date, and listens to the reader. */
import { ACTIONS, CHANGES, SUBMITS } from "./actions.js";
import * as api from "./api.js";
import { close, submitByEnter, toast, whenClosed } from "./dialog.js";
import { byId, show } from "./dom.js";
import { loginPage, useCode } from "./login.js";
import { find } from "./routes.js";
import { showAccount, showConnection, showPlace, showReadiness, showTheme, showTitle } from "./shell.js";
import { tick } from "./time.js";
import * as vote from "./vote.js";

/** How often the pages ask for what the stream does not tell, such as deliveries. */
const POLL = 2000;
/** The shortest time between two refreshes, however much the stream tells. */
const GAP = 200;

const state = {
  ...find(""),
  /** @type {any} */
  data: null,
  /** @type {import("./shapes.js").Status | null} */
  status: null,
  /** @type {import("./shapes.js").Session} */
  session: { caller: null, access: { tokens: false, certificates: false, votes: false } },
  /** Whether the session above is an answer. */
  known: false,
  trouble: "",
  /** Which page the answers under way are for. */
  visit: 0,
  refreshing: false,
  again: false,
};

function render() {
  const { page, params, data, status, session, trouble } = state;
  if (state.known) showAccount(session);
  showReadiness(status, trouble);
  showTitle(page.title, status);
  if (session.caller === null) show(byId("main"), state.known ? loginPage() : null);
  else show(byId("main"), page.view({ data, status, session, params }));
}

/** Ask for everything that the page shows. Calls that come meanwhile become one more round. */
async function refresh() {
  if (state.refreshing) {
    state.again = true;
    return;
  }
  state.refreshing = true;
  try {
    do {
      state.again = false;
      await load();
      await new Promise((done) => {
        setTimeout(done, GAP);
      });
    } while (state.again);
  } finally {
    state.refreshing = false;
  }
}

async function load() {
  const { page, params, visit } = state;
  try {
    if (state.session.caller === null) Object.assign(state, { session: await api.session(), known: true });
    if (state.session.caller !== null) {
      const [status, data] = await Promise.all([api.status(), page.load(params)]);
      if (visit !== state.visit) {
        state.again = true;
        return;
      }
      Object.assign(state, { status, data });
      vote.compare("event" in (data ?? {}) && data.event ? [data.event] : (data?.cards ?? []));
    }
    state.trouble = "";
  } catch (error) {
    await fail(error);
  }
  render();
}

/** @param {unknown} error */
async function fail(error) {
  if (error instanceof api.Problem && error.status === 401) {
    state.session = await api.session().catch(() => ({ ...state.session, caller: null }));
    return;
  }
  state.trouble = error instanceof api.Problem ? error.message : `The console failed: ${String(error)}`;
}

/** After a log-in or log-out everything is asked for anew. */
async function enter() {
  close();
  state.session = await api.session();
  state.status = null;
  state.data = null;
  await refresh();
  byId("main").focus({ preventScroll: true });
}

function visit() {
  if (location.hash === "#main") return;
  const { page, params } = find(location.hash);
  const moved = page !== state.page;
  Object.assign(state, { page, params, data: null, visit: state.visit + 1 });
  page.enter?.();
  showPlace(page.name);
  byId("ready").removeAttribute("open");
  render();
  if (moved) {
    window.scrollTo(0, 0);
    byId("main").focus({ preventScroll: true });
  }
  void refresh();
}

const desk = { status: () => state.status, refresh, enter };

/**
 * @param {string} kind
 * @param {string} attribute
 * @param {Record<string, import("./actions.js").Act>} acts
 */
function listen(kind, attribute, acts) {
  document.addEventListener(kind, async (happened) => {
    const element = happened.target instanceof Element ? happened.target.closest(`[data-${attribute}]`) : null;
    const act = element instanceof HTMLElement ? acts[element.dataset[attribute] ?? ""] : undefined;
    if (act === undefined || !(element instanceof HTMLElement)) return;
    happened.preventDefault();
    try {
      await act(element, desk);
    } catch (error) {
      toast(error instanceof Error ? error.message : String(error));
    }
  });
}

async function start() {
  showTheme();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);
  listen("click", "action", ACTIONS);
  listen("submit", "submit", SUBMITS);
  listen("change", "change", CHANGES);
  submitByEnter();
  whenClosed(vote.forget);
  window.addEventListener("hashchange", visit);
  const news = await useCode();
  if (news) toast(news);
  visit();
  setInterval(tick, 1000);
  setInterval(() => {
    if (!document.hidden) void refresh();
  }, POLL);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) void refresh();
  });
  await api.follow(
    () => state.session.caller !== null,
    (connection) => {
      showConnection(connection);
      if (connection === "open") void refresh();
    },
    () => void refresh(),
  );
}

await start();
