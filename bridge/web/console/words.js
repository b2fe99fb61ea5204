/** The words that the console uses for what the API says. */

/** What each type of event does to a VM. @type {Record<string, string>} */
const MEANINGS = {
  Freeze: "The VM pauses for a few seconds. Memory, files and connections stay.",
  Reboot: "The VM restarts. Memory is lost; disks stay.",
  Redeploy: "The VM moves to another host. Memory and temporary disks are lost.",
  Preempt: "Azure takes this Spot VM away. Memory and temporary disks are lost.",
  Terminate: "Azure deletes the VM.",
};

/** @param {string} type */
export function meaning(type) {
  return MEANINGS[type] ?? "The bridge does not know this type of event.";
}

/**
 * `1 VM`, `3 VMs`.
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
export function counted(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en-US")} ${count === 1 ? one : many}`;
}

/**
 * `vm-0`, `vm-0 and vm-1`, `vm-0 and 2 others`; this VM first.
 * @param {string[]} resources
 * @param {string | null | undefined} own
 */
export function vms(resources, own) {
  const sorted = ownFirst(resources, own);
  const [first = "no VM", second] = sorted;
  if (second === undefined) return first;
  return sorted.length === 2 ? `${first} and ${second}` : `${first} and ${sorted.length - 1} others`;
}

/**
 * @param {string} one
 * @param {string | null | undefined} other
 */
export function sameVm(one, other) {
  return one.toLowerCase() === (other ?? "").toLowerCase();
}

/**
 * @param {string[]} resources
 * @param {string | null | undefined} own
 */
export function ownFirst(resources, own) {
  return [...resources.filter((name) => sameVm(name, own)), ...resources.filter((name) => !sameVm(name, own))];
}

/** Icon, tone and word of a delivery's outcome. @type {Record<string, [string, string, string]>} */
const DELIVERIES = {
  delivered: ["check", "ok", "delivered"],
  waiting: ["clock", "wait", "waiting"],
  dead: ["cross", "bad", "dead letter"],
  dropped: ["cross", "bad", "dropped"],
  filtered: ["minus", "muted", "filtered out"],
  overtaken: ["skip", "muted", "overtaken"],
  before: ["minus", "muted", "older than the sink"],
  own: ["minus", "muted", "about the sink itself"],
};

/**
 * @param {string} outcome
 * @returns {[string, string, string]}
 */
export function delivery(outcome) {
  return DELIVERIES[outcome] ?? ["info", "muted", outcome];
}

/** Icon, tone and word of a sink's or an approval source's state. @type {Record<string, [string, string, string]>} */
const STATES = {
  connected: ["check", "ok", "connected"],
  untried: ["minus", "muted", "untried"],
  starting: ["clock", "wait", "starting"],
  unavailable: ["cross", "bad", "unavailable"],
  stopped: ["cross", "bad", "stopped"],
  silent: ["warn", "wait", "silent"],
  good: ["check", "ok", "answering"],
  waiting: ["clock", "wait", "not asked yet"],
  failing: ["warn", "wait", "failing"],
  degraded: ["cross", "bad", "not answering"],
};

/**
 * @param {string} state
 * @returns {[string, string, string]}
 */
export function condition(state) {
  return STATES[state] ?? ["info", "muted", state];
}

/** Tone and word of an event's status. @type {Record<string, [string, string]>} */
const STATUSES = {
  Scheduled: ["accent", "Scheduled"],
  Started: ["wait", "Started"],
  Completed: ["ok", "Completed"],
  Canceled: ["", "No longer announced"],
};

/**
 * @param {string} status
 * @returns {[string, string]}
 */
export function standing(status) {
  return STATUSES[status] ?? ["", status];
}

/** @param {string} type the type of a CloudEvent */
export function shortType(type) {
  return type.replace(/^azure\.scheduledevents\./, "").replace(/\.v\d+$/, "");
}

/**
 * Who is missing, where that is not the name of an approver or a VM.
 * @param {string} missing
 */
export function lacking(missing) {
  return missing === "any" ? "One approval, from anyone who may vote" : missing;
}

/** @param {string} require */
export function policy(require) {
  if (require === "each-resource") return "Each VM must be approved";
  if (require === "any") return "One approval is enough";
  if (require.startsWith("count:")) return `${counted(Number(require.slice(6)), "approver")} must approve`;
  return `Must approve: ${require.replace("approvers: ", "")}`;
}

/** @param {number} size */
export function bytes(size) {
  if (size < 1024) return `${size} B`;
  if (size < 1_048_576) return `${(size / 1024).toFixed(0)} KiB`;
  return `${(size / 1_048_576).toFixed(1)} MiB`;
}
