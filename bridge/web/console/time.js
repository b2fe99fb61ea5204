/** Times and durations as people read them; the bridge's clock decides what "now" is. */
import { h } from "./dom.js";

let offset = 0;

/**
 * Follow the bridge's clock when it differs from the browser's by more than rounding.
 * @param {string | null} date the Date header of an answer
 */
export function follow(date) {
  const there = date === null ? Number.NaN : Date.parse(date);
  if (Number.isNaN(there)) return;
  const apart = there + 500 - Date.now();
  offset = Math.abs(apart) > 2500 ? apart : 0;
}

export function now() {
  return Date.now() + offset;
}

const CLOCK = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const YEAR = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });

/** @param {Date} date */
function day(date) {
  const today = new Date(now());
  if (date.toDateString() === today.toDateString()) return "";
  return `${(date.getFullYear() === today.getFullYear() ? DAY : YEAR).format(date)}, `;
}

/**
 * The local time, with UTC on hover.
 * @param {string | null | undefined} iso
 */
export function moment(iso) {
  if (!iso) return h("span", { class: "muted" }, "–");
  const date = new Date(iso);
  const utc = `${date.toISOString().slice(0, 19).replace("T", " ")} UTC`;
  return h("time", { datetime: iso, title: utc }, day(date) + CLOCK.format(date));
}

/**
 * `12 ms`, `5.2 s`, `14 min 32 s`, `3 h 5 min`, `2 d 4 h`.
 * @param {number | null | undefined} seconds
 */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const size = Math.abs(seconds);
  const sign = seconds < 0 ? "−" : "";
  if (size < 1) return `${sign}${Math.round(size * 1000)} ms`;
  if (size < 10) return `${sign}${size.toFixed(1).replace(".0", "")} s`;
  const whole = Math.round(size);
  /** @type {[number, string][]} */
  const parts = [
    [Math.floor(whole / 86_400), "d"],
    [Math.floor(whole / 3600) % 24, "h"],
    [Math.floor(whole / 60) % 60, "min"],
    [whole % 60, "s"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  const said = parts.slice(first, first + 2).filter(([count]) => count > 0);
  return sign + said.map(([count, unit]) => `${count} ${unit}`).join(" ");
}

/** @param {number} value */
function two(value) {
  return String(value).padStart(2, "0");
}

/**
 * `14:32`, `1:02:33`, `2 d 04:11:09`; never negative.
 * @param {number} milliseconds
 */
export function clock(milliseconds) {
  const whole = Math.max(0, Math.ceil(milliseconds / 1000));
  const days = Math.floor(whole / 86_400);
  const hours = Math.floor(whole / 3600) % 24;
  const rest = `${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
  if (days > 0) return `${days} d ${two(hours)}:${rest}`;
  return hours > 0 ? `${hours}:${rest}` : rest;
}

/**
 * Time that is left until *iso*, counting down while it is shown.
 * @param {string} iso
 */
export function countdown(iso) {
  return h("span", { "data-until": iso, class: "ticking" }, clock(Date.parse(iso) - now()));
}

/**
 * Time that has gone by since *iso*, counting up while it is shown.
 * @param {string} iso
 */
export function elapsed(iso) {
  return h("span", { "data-since": iso, class: "ticking" }, clock(now() - Date.parse(iso)));
}

/** How much of the time from *from* to *until* is left, from 1 to 0.
 * @param {string} from
 * @param {string} until
 */
export function share(from, until) {
  const whole = Date.parse(until) - Date.parse(from);
  return whole <= 0 ? 0 : Math.min(1, Math.max(0, (Date.parse(until) - now()) / whole));
}

/** Bring everything that counts on the page up to date. */
export function tick() {
  for (const element of document.querySelectorAll("[data-until], [data-since]")) {
    const until = element.getAttribute("data-until");
    const from = element.getAttribute("data-since");
    if (element instanceof HTMLProgressElement) {
      if (until && from) element.value = share(from, until);
      continue;
    }
    const text = until ? clock(Date.parse(until) - now()) : clock(now() - Date.parse(from ?? ""));
    if (element.textContent !== text) element.textContent = text;
  }
}
