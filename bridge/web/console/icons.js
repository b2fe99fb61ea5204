/** The icons, as paths on a grid of 24. */
import { s } from "./dom.js";

const PATHS = {
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M6.5 6.5l11 11m0-11l-11 11",
  clock: "M12 7v5l3.2 2M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0z",
  warn: "M12 9v4.5m0 3.2v.1M10.4 4.2L2.6 17.6A1.9 1.9 0 0 0 4.2 20.5h15.6a1.9 1.9 0 0 0 1.6-2.9L13.6 4.2a1.9 1.9 0 0 0-3.2 0z",
  info: "M12 11v5.5m0-8.7v.1M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0z",
  minus: "M7 12h10",
  skip: "M6 6l6 6-6 6M13 6l6 6-6 6",
  hand: "M8 13V5.5a1.5 1.5 0 0 1 3 0V11m0-.5v-6a1.5 1.5 0 0 1 3 0V11m0-4.5a1.5 1.5 0 0 1 3 0V13c0 4.5-2 7.5-5.5 7.5-3 0-4.3-1.5-5.6-4L4.2 13.3a1.5 1.5 0 0 1 2.5-1.6L8 13.5",
  sun: "M12 4V2.5m0 19V20m8-8h1.5m-19 0H4m13.7-5.7l1-1m-13.4 13.4l1-1m11.4 0l1 1M5.3 5.3l1 1M16 12a4 4 0 1 1-8 0 4 4 0 0 1 8 0z",
  moon: "M20.5 14.2A8.5 8.5 0 0 1 9.8 3.5a8.5 8.5 0 1 0 10.7 10.7z",
  calm: "M3 17h18M6 17v-2.5a6 6 0 0 1 12 0V17M12 4v2M4.8 7.2l1.4 1.4M19.2 7.2l-1.4 1.4",
  list: "M8 6.5h12M8 12h12M8 17.5h12M4 6.5h.1M4 12h.1M4 17.5h.1",
  letter: "M4 6.5h16v11H4zM4 7.5l8 6 8-6",
  user: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20.5c.8-3.6 3.8-5.5 7.5-5.5s6.7 1.9 7.5 5.5",
  Freeze: "M12 3v18M4.2 7.5l15.6 9M19.8 7.5l-15.6 9M9.5 4.5L12 7l2.5-2.5M9.5 19.5L12 17l2.5 2.5",
  Reboot: "M20 11.5a8 8 0 1 0-2.3 6M20 4.5v7h-7",
  Redeploy: "M3.5 6.5h9v11h-9zM12.5 12h8m0 0l-3.5-3.5m3.5 3.5L17 15.5",
  Preempt: "M13 2.5L5 13.5h6l-1 8 8-11h-6l1-8z",
  Terminate: "M12 3v8.5M6.6 6.8a8 8 0 1 0 10.8 0",
  other: "M12 8v4.5m0 3v.1M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0z",
};

/** @param {string} name */
export function icon(name) {
  const path = Object.hasOwn(PATHS, name) ? PATHS[/** @type {keyof typeof PATHS} */ (name)] : PATHS.other;
  return s("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, s("path", { d: path }));
}
