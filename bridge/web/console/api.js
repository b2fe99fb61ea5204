/** The only module that reaches data: the API of the bridge, and its stream. */
import { messages } from "./sse.js";
import { follow as followClock } from "./time.js";

/** @typedef {import("./shapes.js").Session} Session */

const KEY = "seb.key";
const PATIENCE = 15_000;
/** The bridge sends a comment every 15 seconds; a stream that is silent for longer is dead. */
const SILENCE = 40_000;
/** Between two attempts to open the stream. */
const FIRST_PAUSE = 500;
const LAST_PAUSE = 8000;

/** An answer that is not a success. `status` is 0 when there was no answer. */
export class Problem extends Error {
  /**
   * @param {number} code
   * @param {string} detail
   * @param {Record<string, any>} [body]
   */
  constructor(code, detail, body = {}) {
    super(detail);
    this.status = code;
    this.body = body;
  }
}

/** @param {Record<string, string>} [more] */
function headers(more = {}) {
  // Without a key, none: a cookie from another port of this host then has no effect.
  return { ...more, "X-Session-Key": localStorage.getItem(KEY) ?? "none" };
}

/**
 * @param {string} path
 * @param {string} [method]
 * @param {unknown} [body]
 */
async function ask(path, method = "GET", body) {
  const sent = body === undefined ? {} : { "Content-Type": "application/json" };
  let response;
  try {
    response = await fetch(`api/v1/${path}`, {
      method,
      headers: headers(/** @type {Record<string, string>} */ (sent)),
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(PATIENCE),
    });
  } catch {
    throw new Problem(0, "The bridge does not answer.");
  }
  followClock(response.headers.get("Date"));
  if (response.status === 204) return null;
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Problem(response.status, answer.detail ?? `The bridge answered ${response.status}.`, answer);
  return answer;
}

/** @returns {Promise<Session>} */
export async function session() {
  return await ask("session");
}

/**
 * Log in with a token, or with the one-time code of a link.
 * @param {{token: string} | {code: string}} proof
 * @returns {Promise<Session>}
 */
export async function logIn(proof) {
  const answer = await ask("session", "POST", { ...proof, key: true });
  localStorage.setItem(KEY, answer.key);
  return answer;
}

export async function logOut() {
  await ask("session", "DELETE");
  localStorage.removeItem(KEY);
}

/** @returns {Promise<import("./shapes.js").Status>} */
export async function status() {
  return await ask("status");
}

/**
 * @param {Record<string, string>} query
 * @returns {Promise<{events: import("./shapes.js").ScheduledEvent[], next: string | null}>}
 */
export async function events(query) {
  return await ask(`events?${new URLSearchParams(query)}`);
}

/**
 * @param {string} id
 * @returns {Promise<import("./shapes.js").EventDetail>}
 */
export async function event(id) {
  return await ask(`events/${encodeURIComponent(id)}`);
}

/** @returns {Promise<import("./shapes.js").DeadLetter[]>} */
export async function deadLetters() {
  return (await ask("dead-letters")).deadLetters;
}

/** @param {string} id */
export async function deadLetter(id) {
  return await ask(`dead-letters/${encodeURIComponent(id)}`);
}

/** @param {string} id */
export async function replayLetter(id) {
  await ask(`dead-letters/${encodeURIComponent(id)}/replay`, "POST");
}

/** @param {string} id */
export async function dropLetter(id) {
  await ask(`dead-letters/${encodeURIComponent(id)}`, "DELETE");
}

/** @param {string} name */
export async function replaySink(name) {
  return await ask(`sinks/${encodeURIComponent(name)}/replay`, "POST");
}

/** @param {string} name */
export async function resumeSink(name) {
  return await ask(`sinks/${encodeURIComponent(name)}/resume`, "POST");
}

/** @returns {Promise<import("./shapes.js").Reload>} */
export async function reload() {
  return await ask("reload", "POST");
}

/**
 * @param {{eventId: string, decision: string, resource?: string, reason?: string, seen: string}} cast
 * @returns {Promise<{outcomes: import("./shapes.js").Outcome[]}>}
 */
export async function vote(cast) {
  const random = crypto.getRandomValues(new Uint8Array(16));
  const id = Array.from(random, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return await ask("approvals", "POST", { ...cast, id: `console-${id}` });
}

/** @returns {Promise<import("./shapes.js").Refusal[]>} the latest votes and refusals */
export async function approvals() {
  return (await ask("approvals")).approvals;
}

/** @returns {Promise<import("./shapes.js").DrillSummary[]>} */
export async function drills() {
  return (await ask("drills")).drills;
}

/**
 * @param {string} id
 * @returns {Promise<import("./shapes.js").DrillReport>}
 */
export async function drill(id) {
  return await ask(`drills/${encodeURIComponent(id)}`);
}

/**
 * @param {Record<string, unknown>} plan
 * @returns {Promise<import("./shapes.js").DrillReport>}
 */
export async function startDrill(plan) {
  return await ask("drills", "POST", plan);
}

/** @param {string} id */
export async function stopDrill(id) {
  await ask(`drills/${encodeURIComponent(id)}`, "DELETE");
}

/**
 * Read the stream until the page is left. After a lost connection it resumes where it was.
 * @param {() => boolean} allowed whether there is somebody to read it for
 * @param {(state: "open" | "lost" | "off") => void} changed
 * @param {() => void} news called for each CloudEvent and stray
 */
export async function follow(allowed, changed, news) {
  let last = "";
  let pause = FIRST_PAUSE;
  const take = (/** @type {import("./sse.js").Message} */ message) => {
    pause = FIRST_PAUSE;
    if (message.id) last = message.id;
    if (message.event === "connected") changed("open");
    else if (message.event !== "position") news();
  };
  for (;;) {
    while (!allowed()) {
      changed("off");
      await rest(FIRST_PAUSE);
    }
    try {
      await read(last, take);
    } catch {
      /* It is tried again below, whatever happened. */
    }
    changed("lost");
    await rest(pause);
    pause = Math.min(pause * 2, LAST_PAUSE);
  }
}

/**
 * One connection, to its end.
 * @param {string} last
 * @param {(message: import("./sse.js").Message) => void} take
 */
async function read(last, take) {
  const connection = new AbortController();
  let timer = setTimeout(() => connection.abort(), SILENCE);
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => connection.abort(), SILENCE);
  };
  try {
    const asked = { Accept: "text/event-stream", ...(last && { "Last-Event-ID": last }) };
    const response = await fetch("api/v1/stream?strays=true", { headers: headers(asked), signal: connection.signal });
    if (!response.ok || response.body === null) throw new Problem(response.status, "no stream");
    take({ event: "connected", id: "", data: "" });
    for await (const message of messages(response.body, alive)) take(message);
  } finally {
    clearTimeout(timer);
    connection.abort();
  }
}

/**
 * Wait, but not while the network has just come back or somebody looks at the page again.
 * @param {number} milliseconds
 * @returns {Promise<void>}
 */
function rest(milliseconds) {
  return new Promise((done) => {
    const waiting = new AbortController();
    const end = () => {
      waiting.abort();
      clearTimeout(timer);
      done();
    };
    const timer = setTimeout(end, milliseconds);
    window.addEventListener("online", end, { signal: waiting.signal });
    document.addEventListener("visibilitychange", end, { signal: waiting.signal });
  });
}
