/** Sets up the parts that a script tag requests: a launcher, a search box, a chat in the page. */

import {icon, make} from "../chat/dom.js";
import {learn, say} from "../chat/texts.js";
import {readSettings} from "./settings.js";
import {isHotkey, keepInPage, load, loadStyles, makeShell} from "./shell.js";

/** Parts that other tags of this page have already set up, even with another copy of this module. */
const TAKEN = Symbol.for("raydex.widget");
const SHOWN_MS = 6000; // long enough to read one sentence twice

/** Start the widget requested by `tag`; `told` are its settings as strings. */
export async function start(base, told, tag) {
  const settings = await readSettings(base, told);
  const modes = takeModes(settings);
  if (!modes.size) return;
  const [sheet] = await Promise.all([loadStyles("./widget.css"), documentRead()]);
  const parts = new Parts(settings, [sheet]);
  if (modes.has("inline")) (await import("./inline.js")).addChat(parts, tag);
  else if (modes.has("search") && settings.target) (await import("./inline.js")).addSearchField(parts, tag);
  if (modes.has("launcher") || modes.has("search")) parts.addOverlay(modes);
}

/** Return the modes that no other tag has taken, so that two tags show only one launcher. */
function takeModes({modes, target}) {
  const taken = (window[TAKEN] ??= new Set());
  const names = [...modes].map(mode => [mode, mode === "inline" ? target && `inline ${target}` : mode]);
  const free = names.filter(([, name]) => !taken.has(name));
  for (const [, name] of free) if (name) taken.add(name);
  return new Set(free.map(([mode]) => mode));
}

function documentRead() {
  if (document.readyState !== "loading") return null;
  return new Promise(read => document.addEventListener("DOMContentLoaded", read, {once: true}));
}

/** The parts of one tag. Everything except the launcher is loaded on first use. */
class Parts {
  #loaded = new Map();
  /** @type {HTMLElement} */
  #failure;
  /** @type {CSSStyleSheet} */
  #laterSheet;

  constructor(settings, sheets) {
    this.settings = settings;
    this.sheets = sheets;
  }

  /** Set up the overlays: a launcher, its panel and search box, the offer to ask about a selection. */
  addOverlay(modes) {
    const {settings} = this;
    const shell = (this.shell = makeShell("raydex-widget", settings, this.sheets));
    const launcher = modes.has("launcher")
      ? makeLauncher("spark", settings.label, settings.title || say("title"), () => this.open())
      : makeLauncher("search", say("search"), say("search_docs"), () => this.search());
    const alone = modes.has("launcher") || !(settings.target || window[TAKEN].has("launcher")); // one button is enough
    this.overlay = make("div", {class: "overlay"}, alone && launcher);
    shell.shadowRoot.append(this.overlay);
    keepInPage(shell, () => document.body.append(shell));
    launcher.addEventListener("pointerenter", async () => (await this.panel).preload(), {once: true});
    if (modes.has("search") && settings.hotkey) this.#listenForHotkey();
    if (modes.has("launcher") && settings.selection) document.addEventListener("selectionchange", () => this.selection, {once: true});
    /** @type {Window & {Raydex?: object}} */ (window).Raydex = {open: () => this.open(), ask: question => this.ask(question), search: text => this.search(text)};
  }

  async open() {
    const stop = keepTyped();
    const chat = await this.panel.then(panel => panel.open()).finally(stop);
    if (stop()) chat?.compose(stop());
  }

  async ask(question) {
    (await this.panel).ask(question);
  }

  async search(text = "", how = "open") {
    const stop = keepTyped();
    const box = await this.searchBox.finally(stop);
    box[how](text + stop());
  }

  get assistant() {
    return this.#load("assistant", ({Assistant}) => new Assistant(this.settings));
  }

  get panel() {
    return this.#load("panel", async ({Panel}) => this.#show(new Panel(await this.assistant, this.settings, this.sheets)));
  }

  get searchBox() {
    return this.#load("search", async ({Search}) => this.#show(new Search(await this.assistant, this.settings, question => this.ask(question))));
  }

  get selection() {
    return this.#load("selection", ({SelectionOffer}) => this.#show(new SelectionOffer(async text => (await this.panel).compose(`“${text}”\n\n`))));
  }

  /** Load a module once and create its part; after a failure the next call retries. */
  #load(name, makePart) {
    if (!this.#loaded.has(name)) {
      const part = Promise.all([load(`./${name}.js`), learn("page")]).then(([module]) => makePart(module));
      this.#loaded.set(name, part);
      part.catch(() => this.#fail(name));
    }
    return this.#loaded.get(name);
  }

  #fail(name) {
    this.#loaded.delete(name);
    this.#failure ??= make("p", {class: "failed", role: "alert"});
    this.#failure.textContent = say("no_assistant");
    this.overlay?.append(this.#failure);
    setTimeout(() => this.#failure.remove(), SHOWN_MS);
  }

  async #show(part) {
    this.#laterSheet ??= await loadStyles("./dialogs.css");
    this.shell.shadowRoot.adoptedStyleSheets = [...this.sheets, this.#laterSheet];
    this.overlay.append(part.element);
    return part;
  }

  /** Open the search box with Ctrl-K or Cmd-K, unless the page uses that shortcut itself. */
  #listenForHotkey() {
    addEventListener("keydown", event => {
      if (!isHotkey(event) || event.defaultPrevented) return;
      event.preventDefault();
      this.search("", "toggle");
    });
  }
}

/** Capture typed text while a part is loading; returns a function that stops this and returns the text. */
function keepTyped() {
  let typed = "";
  const take = event => {
    if (event.key?.length !== 1 || event.ctrlKey || event.metaKey) return;
    typed += event.key;
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  addEventListener("keydown", take, true);
  return () => {
    removeEventListener("keydown", take, true);
    return typed;
  };
}

/** Return the button in the corner of the page. */
function makeLauncher(name, label, hint, onclick) {
  return make("button", {type: "button", class: "launcher", "aria-haspopup": "dialog", title: hint, onclick}, icon(name), make("span", {}, label));
}
