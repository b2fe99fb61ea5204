/** The one dialog of the page, and messages that go away by themselves. */
import { byId, h, show } from "./dom.js";
import { button } from "./parts.js";

/** @typedef {import("./dom.js").Child} Child */

/**
 * @typedef {object} Content
 * @property {string} title
 * @property {Child[]} body
 * @property {Node[]} buttons
 * @property {string} [news] a sentence that is read aloud when it changes
 * @property {boolean} [bad] whether the news is an error
 * @property {boolean} [wide]
 */

function element() {
  return /** @type {HTMLDialogElement} */ (byId("dialog"));
}

/** @type {Map<string, () => void | Promise<void>>} */
let deeds = new Map();

export function isOpen() {
  return element().open;
}

/**
 * Show the dialog, or change what it shows. *acts* says what its buttons do; `close` needs nothing.
 * @param {Content} content
 * @param {Record<string, () => void | Promise<void>>} acts
 */
export function open(content, acts) {
  const dialog = element();
  deeds = new Map(Object.entries(acts));
  byId("dialog-title").textContent = content.title;
  show(byId("dialog-body"), ...content.body);
  show(byId("dialog-buttons"), ...content.buttons);
  const news = byId("dialog-news");
  if (news.textContent !== (content.news ?? "")) news.textContent = content.news ?? "";
  news.classList.toggle("bad", content.bad ?? false);
  dialog.classList.toggle("wide", content.wide ?? false);
  if (dialog.open) return;
  dialog.showModal();
  // Not on what cannot be undone: a key that was still down must not confirm it.
  byId("dialog-buttons").querySelector("button")?.focus();
}

export function close() {
  element().close();
}

/** @param {() => void} deed */
export function whenClosed(deed) {
  element().addEventListener("close", deed);
}

/**
 * Buttons of the dialog have `data-deed`.
 * @param {string} deed
 * @param {string} look
 * @param {string} words
 * @param {boolean} [disabled]
 */
export function deedButton(deed, look, words, disabled = false) {
  const made = button("deed", { deed }, look, words);
  if (disabled) made.setAttribute("disabled", "");
  return made;
}

/** @param {string} deed */
export async function perform(deed) {
  if (deed === "close") close();
  else await deeds.get(deed)?.();
}

/** Enter in a field is the first button that is not disabled. */
export function submitByEnter() {
  byId("dialog-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const first = byId("dialog-buttons").querySelector("button.first:not(:disabled), button.danger:not(:disabled)");
    if (first instanceof HTMLButtonElement) first.click();
  });
}

/**
 * Ask before something that cannot be undone.
 * @param {{title: string, body: Child[], words: string, look: string}} question
 * @param {() => Promise<string>} deed what to do; answers with a sentence about it
 */
export function confirm(question, deed) {
  const render = (/** @type {boolean} */ busy, /** @type {string} */ news) =>
    open({ title: question.title, body: question.body, news, buttons: [deedButton("close", "", "Cancel"), deedButton("yes", question.look, question.words, busy)] }, { yes });
  async function yes() {
    render(true, "");
    try {
      const said = await deed();
      close();
      toast(said);
    } catch (error) {
      render(false, error instanceof Error ? error.message : String(error));
    }
  }
  render(false, "");
}

/** @param {string} sentence */
export function toast(sentence) {
  const made = h("div", { class: "toast" }, sentence);
  byId("toasts").append(made);
  setTimeout(() => made.remove(), 6000);
}
