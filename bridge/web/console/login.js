/** The page for somebody who has to log in before there is anything to see. */
import * as api from "./api.js";
import { deedButton, open } from "./dialog.js";
import { h } from "./dom.js";
import { button } from "./parts.js";

/** Exchange the one-time code in the address, and remove it from there. */
export async function useCode() {
  const found = /^#code=([^&]+)$/.exec(location.hash);
  if (found === null) return "";
  history.replaceState(null, "", "#/");
  try {
    await api.logIn({ code: decodeURIComponent(found[1] ?? "") });
    return "";
  } catch {
    return "The link has been used or is too old. Log in with a token.";
  }
}

/** @param {() => Promise<void>} done */
export function askForToken(done) {
  let news = "";
  let busy = false;
  function draw() {
    open(
      {
        title: "Log in",
        body: [
          h("p", { class: "muted" }, "Use a token from ", h("code", {}, "http.tokens"), " in the configuration. Its scopes decide what you can do here."),
          h("div", {}, h("label", { for: "token" }, "Token"), h("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false" })),
        ],
        news,
        buttons: [deedButton("close", "", "Cancel"), deedButton("enter", "first", "Log in", busy)],
      },
      { enter },
    );
    document.getElementById("token")?.focus();
  }
  async function enter() {
    const field = document.getElementById("token");
    const token = field instanceof HTMLInputElement ? field.value.trim() : "";
    busy = true;
    draw();
    try {
      await api.logIn({ token });
      if (field instanceof HTMLInputElement) field.value = "";
      await done();
    } catch (error) {
      busy = false;
      news = error instanceof Error ? error.message : String(error);
      draw();
    }
  }
  draw();
}

export function loginPage() {
  return h(
    "div",
    { class: "login", "data-key": "login" },
    h("div", { class: "panel" }, h("h1", {}, "Log in to see this bridge"), h("p", { class: "muted" }, "This bridge shows its events, votes and sinks only to those who have a token."), h("div", {}, button("log-in", {}, "first", "Log in with a token"))),
  );
}
