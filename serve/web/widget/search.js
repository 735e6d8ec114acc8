/** Searches the documentation while typing. The last entry asks the assistant the typed question. */

import {icon, iconButton, make, withCode} from "../chat/dom.js";
import {say} from "../chat/texts.js";
import {Dialog} from "./dialog.js";

const REST_MS = 160; // a pause between two words; keys within a word come faster
const LEAST = 2; // characters
const MOST = 8; // results: what fits on a screen
const SNIPPET = 160; // characters: two lines

export class Search {
  #entries = [];
  #at = 0;
  #timer;
  #pending;
  #found = new Map();
  #shown = new WeakMap(); // for each link: the id of its search, and its source

  /** `ask(question)` opens the assistant. */
  constructor(assistant, settings, ask) {
    this.assistant = assistant;
    this.refusal = settings.refusal;
    this.ask = ask;
    this.box = make("input", {
      type: "text", role: "combobox", "aria-label": say("search_docs"), "aria-expanded": "false", "aria-controls": "results",
      "aria-autocomplete": "list", placeholder: say("search_docs"), autocomplete: "off", spellcheck: "false", enterkeyhint: "go", maxlength: "500",
      oninput: () => this.#typed(), onkeydown: event => this.#pressed(event),
    });
    this.list = make("div", {id: "results", role: "listbox", "aria-label": say("results"), hidden: true, onclick: event => this.#open(event), onauxclick: event => this.#open(event)});
    this.note = make("p", {class: "note", role: "status"});
    const close = iconButton("close", say("close"), () => this.dialog.close(), {class: "bare"});
    const keys = make("p", {class: "keys", "aria-hidden": "true"}, ...[["↑↓", "key_choose"], ["↵", "key_open"], ["esc", "key_close"]].flatMap(([key, does]) => [make("kbd", {}, key), say(does)]));
    this.dialog = new Dialog(say("search"), "search", make("div", {class: "field"}, icon("search"), this.box, close), this.list, this.note, keys);
    this.element = this.dialog.element;
  }

  open(text = "") {
    this.dialog.open();
    this.box.focus();
    if (text) this.box.value = text;
    else this.box.select();
    if (this.refusal) this.#say(this.refusal, "alert");
    else this.#typed();
  }

  toggle(text) {
    if (this.dialog.isOpen) this.dialog.close();
    else this.open(text);
  }

  get #text() {
    return this.box.value.trim();
  }

  /** Search a moment after the last key press; an outdated search is cancelled. */
  #typed() {
    clearTimeout(this.#timer);
    this.#pending?.abort();
    if (this.refusal) return;
    if (this.#found.has(this.#text)) return this.#show(this.#found.get(this.#text));
    if (this.#text.length < LEAST) return this.#show([]);
    this.#timer = setTimeout(() => this.#search(this.#text), REST_MS);
    this.#drawAsk();
  }

  async #search(text) {
    const {signal} = (this.#pending = new AbortController());
    try {
      const {id, hits} = await (await this.assistant.client).search(text, {signal});
      if (signal.aborted) return;
      this.#found.set(text, onePerSource(hits).slice(0, MOST).map(hit => ({...hit, search: id})));
      this.#show(this.#found.get(text));
    } catch (error) {
      if (!signal.aborted) this.#fail(error);
    }
  }

  #show(hits) {
    const words = wordsOf(this.#text);
    this.#draw([...hits.map(hit => this.#result(hit, words)), ...this.#askEntry()]);
    const long = this.#text.length >= LEAST;
    this.#say(long ? say(hits.length ? "sections_found" : "nothing_found", {n: hits.length}) : "");
  }

  #result(hit, words) {
    const entry = makeResult(hit, words);
    this.#shown.set(entry, hit);
    return entry;
  }

  /** Close the dialog when a link is followed, and report the opened source. */
  #open(event) {
    const link = event.target instanceof Element && event.target.closest("a");
    if (!link || event.button > 1) return;
    const {search, source} = this.#shown.get(link);
    this.assistant.client.then(client => client.opened(search, source));
    if (event.type === "click") this.dialog.close();
  }

  #fail(error) {
    this.#draw(this.#askEntry());
    this.#say(error.kind === "rate" ? say("searched_too_often", {n: error.seconds || 60}) : error.message, "alert");
  }

  #draw(entries) {
    entries.forEach((entry, i) => {
      entry.id = `result-${i}`;
      entry.addEventListener("pointermove", () => this.#go(i));
    });
    this.#entries = entries;
    this.list.replaceChildren(...entries);
    this.list.hidden = !entries.length;
    this.box.setAttribute("aria-expanded", String(entries.length > 0));
    this.#go(0);
  }

  /** Update the last entry to the current text, while the results are still the previous ones. */
  #drawAsk() {
    this.#draw([...this.#entries.filter(entry => !entry.classList.contains("ask")), ...this.#askEntry()]);
  }

  #askEntry() {
    const text = this.#text;
    if (!text) return [];
    const onclick = () => {
      this.dialog.close();
      this.ask(text);
    };
    return [make("div", {role: "option", class: "result ask", onclick}, icon("spark"), make("span", {class: "title"}, say("ask_assistant")), make("span", {class: "place"}, `“${text}”`))];
  }

  #go(to) {
    const from = this.#entries[this.#at];
    from?.setAttribute("aria-selected", "false");
    this.#at = this.#entries.length ? (to + this.#entries.length) % this.#entries.length : 0;
    for (const [i, entry] of this.#entries.entries()) entry.setAttribute("aria-selected", String(i === this.#at));
    const chosen = this.#entries[this.#at];
    if (!chosen) return this.box.removeAttribute("aria-activedescendant");
    this.box.setAttribute("aria-activedescendant", chosen.id);
    chosen.scrollIntoView({block: "nearest"});
  }

  #pressed(event) {
    if (event.isComposing) return;
    const to = {ArrowDown: this.#at + 1, ArrowUp: this.#at - 1}[event.key];
    if (to !== undefined) {
      event.preventDefault();
      this.#go(to);
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.#entries[this.#at]?.dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true, ctrlKey: event.ctrlKey, metaKey: event.metaKey}));
    }
  }

  #say(text, role = "status") {
    this.note.setAttribute("role", role);
    this.note.replaceChildren(...withCode(text));
  }
}

function onePerSource(hits) {
  return [...new Map(hits.map(hit => [hit.source, hit]).reverse()).values()].reverse();
}

/** Return one hit as an entry of the list; only an http(s) address becomes a link. */
function makeResult(hit, words) {
  const headings = hit.headings ?? [];
  const title = headings.at(-1) || hit.title || hit.source;
  const above = [hit.title, ...headings.slice(0, -1)].filter((name, i, all) => name && name !== title && all.indexOf(name) === i);
  const leads = /^https?:\/\//i.test(hit.source);
  return make(
    leads ? "a" : "div",
    {role: "option", class: "result", tabindex: "-1", ...(leads && {href: hit.source, rel: "noopener nofollow"})},
    icon("page"),
    make("span", {class: "title"}, mark(title, words)),
    make("span", {class: "place"}, above.join(" › ") || hit.source.replace(/^https?:\/\//, "")),
    make("span", {class: "snippet"}, mark(snippetOf(hit.text ?? "", words), words)),
  );
}

function wordsOf(text) {
  const words = text.match(/[\p{L}\p{N}_]{2,}/gu) ?? [];
  return words.length ? new RegExp(`(${words.map(word => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "giu") : null;
}

/** Return a string with the search terms marked, as nodes and strings. */
function mark(text, words) {
  return words ? text.split(words).map((part, i) => (i % 2 ? make("mark", {}, part) : part)) : [text];
}

/** Return the part of a string around the first search term. */
function snippetOf(text, words) {
  const flat = text.replace(/\s+/g, " ").trim();
  const first = Math.max(0, words ? flat.search(words) : 0);
  const from = first < SNIPPET / 2 ? 0 : flat.lastIndexOf(" ", first - 30) + 1;
  return `${from ? "… " : ""}${flat.slice(from, from + SNIPPET)}${flat.length > from + SNIPPET ? " …" : ""}`;
}
