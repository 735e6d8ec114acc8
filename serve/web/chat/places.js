/** Lets a reader choose the collection, and its version and language if there are several. */

import {make} from "./dom.js";
import {say} from "./texts.js";

const ANY = {version: "all_versions", language: "all_languages"};

/** The pickers, and the logo of the collection; `place` is `{collection, version, language}`, "" for any. */
export class Places {
  /**
   * `changed()` is called when another place is chosen; `wanted` is the initial place; with `fixed`, its collection is
   * the only choice.
   */
  constructor(client, wanted, changed) {
    this.client = client;
    this.wanted = wanted;
    this.changed = changed;
    this.place = {collection: "", version: "", language: "", ...wanted};
    this.about = null;
    this.rows = [];
    this.element = make("div", {class: "places"});
    this.logo = make("span", {class: "logo"});
  }

  /** Load the choices from the service. Throws ServiceError. */
  async load() {
    const rows = await this.client.collections();
    this.rows = this.wanted?.fixed ? rows.filter(({name}) => name === this.wanted.collection) : rows;
    if (rows.length && !this.rows.length) await this.client.collection(this.wanted.collection); // its error says why
    const has = name => this.rows.find(row => row.name === name);
    const row = has(this.place.collection) ?? this.rows.find(one => one.default) ?? this.rows[0];
    await this.#go({...this.place, collection: row?.name ?? this.place.collection});
  }

  /** Switch to the place of an earlier conversation, if it still exists. */
  async choose(place) {
    if (this.rows.some(row => row.name === place.collection)) await this.#go(place);
  }

  async #go(place) {
    this.about = place.collection ? await this.client.collection(place.collection).catch(() => null) : null;
    const among = (name, values) => (values?.length > 1 && values.includes(place[name]) ? place[name] : "");
    this.place = {
      collection: place.collection,
      version: among("version", this.about?.versions),
      language: among("language", this.about?.languages),
    };
    Object.assign(this.client.place, this.place);
    this.#draw();
  }

  #draw() {
    const src = this.about?.logo ?? ""; // a data URL, so nothing is loaded from elsewhere
    const onerror = () => this.logo.replaceChildren();
    this.logo.replaceChildren(...(src.startsWith("data:image/") ? [make("img", {src, alt: "", onerror})] : []));
    const choices = {
      collection: this.rows.map(row => [row.name, this.#nameOf(row)]),
      version: offer("version", this.about?.versions),
      language: offer("language", this.about?.languages),
    };
    const several = Object.entries(choices).filter(([name, values]) => values.length > (name in ANY ? 2 : 1));
    this.element.replaceChildren(...several.map(([name, values]) => this.#picker(name, values)));
  }

  /** Return a collection's title, with its name if another one has the same title. */
  #nameOf({name, title}) {
    return this.rows.some(row => row.title === title && row.name !== name) ? `${title} (${name})` : title || name;
  }

  #picker(name, values) {
    const onchange = async () => {
      for (const one of this.element.querySelectorAll("select")) one.disabled = true; // one choice at a time
      const {collection} = this.place;
      const place = name === "collection" ? {collection: select.value} : {...this.place, [name]: select.value};
      await this.#go(place);
      this.changed(collection !== this.place.collection);
      [...this.element.querySelectorAll("select")].find(one => one.name === name)?.focus();
    };
    const options = values.map(([value, text]) => make("option", {value, selected: value === this.place[name]}, text));
    const select = make("select", {name, "aria-label": say(name), onchange}, options);
    return select;
  }
}

function offer(name, values = []) {
  return [["", say(ANY[name])], ...values.map(value => [value, name === "language" ? nameOf(value) : value])];
}

/** Return a language's name in itself: `Deutsch` for de. */
function nameOf(language) {
  try {
    return new Intl.DisplayNames([language], {type: "language"}).of(language);
  } catch {
    return language;
  }
}
