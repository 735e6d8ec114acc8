/** Shared by the launcher, the search box and an inline chat: a client of the service, and the chat, loaded on first use. */

import {make, withCode} from "../chat/dom.js";
import {openStorage} from "../chat/history.js";
import {say} from "../chat/texts.js";
import {load, loadStyles, makeSheet} from "./shell.js";

/** The chat in the colors of the surrounding page, with room in its header for the panel's close button. */
const LOOK = `
:host .rdx { color-scheme: inherit; --paper: light-dark(#fff, #1a1d22); --mark: var(--ink-of-accent); --on-mark: var(--on-accent); --tint: var(--accent-tint); }
:host(:not(.inline)) .top { padding-inline-end: 3.25em; }`;

export class Assistant {
  #client;

  constructor(settings) {
    this.settings = settings;
    this.tab = openStorage("sessionStorage");
  }

  /** Return the client of the service; its session and its questions last as long as the tab. */
  get client() {
    this.#client ??= this.#makeClient();
    this.#client.catch(() => (this.#client = undefined));
    return this.#client;
  }

  /** Load the chat, because it will soon be opened. */
  preload() {
    if (!this.settings.refusal) load("../chat/chat.js").catch(() => {});
  }

  /**
   * Show a chat in `root`, a ShadowRoot; `name` separates it from others on the page. Returns it, or null if it can't be
   * shown; `root` then shows the reason.
   */
  async mountChat(root, name) {
    const {refusal, title, placeholder} = this.settings;
    if (refusal) return explain(root, say("not_set_up"), refusal);
    root.replaceChildren(make("p", {class: "wait", role: "status"}, say("loading")));
    try {
      const [{mountChat}, client, styles] = await Promise.all([load("../chat/chat.js"), this.client, loadStyles("../chat/chat.css")]);
      root.adoptedStyleSheets = [root.adoptedStyleSheets[0], styles, makeSheet(LOOK)];
      root.replaceChildren();
      const kept = {store: this.tab, tab: this.tab, name: [this.settings.base, this.settings.collection, name].join(" ")};
      return mountChat(root, client, {...kept, title, placeholder, heading: 2, autofocus: false, keys: false, sharing: false, place: placeOf(this.settings)});
    } catch (error) {
      console.error("Raydex:", error);
      const again = make("button", {type: "button", onclick: () => this.mountChat(root, name)}, say("try_again"));
      return explain(root, say("no_assistant"), say("no_assistant_why"), again);
    }
  }

  async #makeClient() {
    const {base, key, collection, version, language} = this.settings;
    const {Client} = await load("../chat/client.js");
    const client = new Client({base, key, collection, version, language, channel: "widget", store: this.tab});
    Object.defineProperty(client, "page", {get: () => location.href}); // an application may change it without reloading
    return client;
  }
}

/** Show in `root` why there is no chat; `again` is a button. */
function explain(root, title, reason, again) {
  root.replaceChildren(make("div", {class: "failure", role: "alert"}, make("strong", {}, title), make("p", {}, withCode(reason)), again));
  return null;
}

/** Return the place to ask. The page's language is only a preference, used if there are several languages. */
function placeOf({collection, version, language}) {
  return {collection, fixed: Boolean(collection), version, language: language || document.documentElement.lang.split("-")[0].toLowerCase()};
}
