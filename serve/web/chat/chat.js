/** A conversation with the documentation: mounts it in an element or a shadow root, and connects its parts. */

import {ServiceError} from "./client.js";
import {Composer} from "./composer.js";
import {copyText} from "./copying.js";
import {iconButton, make} from "./dom.js";
import {showFailure} from "./failure.js";
import {History, MOST, keep} from "./history.js";
import {Places} from "./places.js";
import {PointedCard, shorten} from "./sources.js";
import {language, parts, say} from "./texts.js";
import {Turn} from "./turn.js";

const INDEX = "raydex index https://docs.example.com";

/**
 * Show a chat in `root`, an Element or a ShadowRoot that has chat.css. Returns the Chat.
 *
 * Options: `title` ("": the collection's title), `onTitle(title)` when it is known or has changed, `placeholder`;
 * `store`, the Storage for conversations and the draft (null: nothing is stored); `tab`, the Storage for which of them is
 * open after a reload; `name`, which separates this chat from others that share them; `sidebar`, whether conversations
 * are listed (otherwise only the open one is stored); `place`, the initial `{collection, version, language}`;
 * `onPlace(place)` when the reader chooses another; `heading`, the level of the title. If `keys` is false, the reader is
 * never asked for an API key, otherwise `onKey(key)` is called with an entered key; `sharing`, whether answers have links;
 * `autofocus`.
 */
export function mountChat(root, client, options = {}) {
  return new Chat(root, client, options);
}

/** Show a recorded answer in `root`, with a link to `home` for asking another question; `onKey` as in mountChat. */
export async function mountAnswer(root, client, id, {home, onKey}) {
  const status = make("div", {class: "sr", role: "status"});
  const thread = make("div", {class: "thread single"});
  const top = make(
    "header",
    {class: "top"},
    make("h1", {}, say("shared_answer")),
    make("a", {class: "outlined", href: home}, say("ask_own")),
  );
  const chat = make(
    "div",
    {class: "rdx", lang: language},
    make("section", {class: "main", "aria-label": say("answer")}, top, thread, status),
  );
  root.append(chat);
  new PointedCard(chat);
  const show = async () => {
    try {
      const answer = await client.answer(id);
      const turn = new Turn(
        answer.question,
        {
          say: text => (status.textContent = text),
          link: shown => copyText(client.linkTo(shown)),
          open: (shown, source) => client.opened(shown, source),
        },
        {editable: false},
      );
      turn.show(answer);
      thread.replaceChildren(turn.element);
      document.title = answer.question;
    } catch (error) {
      const gone = error.kind === "not_found" ? new ServiceError("gone", error.message) : error;
      const enterKey = key => {
        client.key = key;
        onKey?.(key);
        show();
      };
      thread.replaceChildren(showFailure(gone, {again: gone === error ? show : null, enterKey}));
    }
  };
  await show();
}

/** One chat. `ask(question)` asks, `compose(text)` puts text into the box, `begin()` opens a new conversation. */
class Chat {
  constructor(root, client, options) {
    this.client = client;
    this.options = {
      title: "",
      placeholder: say("ask_question"),
      store: null,
      tab: null,
      name: new URL(client.base).pathname,
      sidebar: false,
      heading: 1,
      autofocus: true,
      keys: true,
      sharing: true,
      ...options,
    };
    const {store, tab, name, sidebar} = this.options;
    this.history = new History(store, tab, name, sidebar ? MOST : 1);
    this.places = new Places(client, this.options.place, other => this.#moved(other));
    this.composer = new Composer({
      ask: question => this.ask(question),
      stop: () => this.stop(),
      placeholder: this.options.placeholder,
      store,
      name,
      onPage: Boolean(client.page),
    });
    this.#build(root);
    const kept = this.history.open;
    const place = kept && placeToGoOn(this.options.place ?? {}, kept.place);
    if (place) this.#open({...kept, place});
    else this.#start();
    if (this.options.autofocus) this.focus();
    // The page is reloaded, left, or sent to the background by a phone, which may never return to it.
    for (const leaves of ["pagehide", "visibilitychange"])
      window.addEventListener(leaves, () => this.pending && this.#save(), true);
    this.ready = this.load();
  }

  /** Load the service's collections and show the choices. */
  async load() {
    try {
      await this.places.load();
      if (!this.places.rows.length) throw new ServiceError("no_index", say("no_index_why", {command: INDEX}));
      this.trouble = null;
    } catch (error) {
      this.trouble = error;
    }
    this.loaded = true;
    if (!this.turns.length) this.#welcome();
    else if (this.conversation.place) await this.places.choose(this.conversation.place);
    this.#entitle();
  }

  /** Ask a question in this conversation. The turns that it `replaces` stay until its answer is complete. */
  async ask(question, replaces = []) {
    this.stop();
    this.#remove(this.turns.filter(({failed, text}) => failed && !text));
    this.#replace(replaces);
    const turn = this.#add(new Turn(question, this.#handlers()));
    this.#scrollTo(turn);
    this.composer.send(question);
    const pending = (this.pending = new AbortController());
    turn.begin();
    this.#context();
    this.#save();
    try {
      await this.ready;
      const after = this.#kept.flatMap(({answer}) => answer?.id ?? []).slice(-100); // the service's limit
      const {aboutPage} = this.composer;
      const follows = {conversation: this.conversation.server, after, aboutPage, signal: pending.signal};
      for await (const [name, data] of this.client.ask(question, follows)) {
        if (pending.signal.aborted) return;
        turn.take(name, data);
      }
      this.composer.sent();
      this.#remove(replaces);
      this.#answered(turn);
    } catch (error) {
      if (pending.signal.aborted) return;
      turn.fail(error);
      this.composer.restore(question);
      this.#save();
      this.say("");
    } finally {
      if (this.pending === pending) this.#rest();
    }
  }

  /** Stop the answer in progress; its text so far stays. */
  stop() {
    if (!this.pending) return;
    this.pending.abort();
    this.turns.at(-1).stop();
    this.composer.sent();
    this.#save();
    this.#rest();
  }

  /** Open a new conversation. */
  begin() {
    this.#start();
    this.focus();
  }

  compose(text) {
    this.composer.value = text;
    this.composer.focus();
  }

  focus() {
    this.composer.focus();
  }

  /** Announce to screen readers. */
  say(text) {
    this.status.textContent = text;
  }

  #start() {
    this.#open({id: randomId(), turns: []});
    this.#welcome();
  }

  #build(root) {
    this.status = make("div", {class: "sr", role: "status"});
    this.thread = make("div", {class: "thread"});
    const fresh = iconButton("plus", say("new_conversation"), () => this.begin(), {class: "quiet bare fresh"});
    this.menu =
      this.options.sidebar &&
      iconButton("menu", say("conversations"), () => this.#toggleSide(), {
        class: "quiet bare menu",
        "aria-expanded": "false",
      });
    const level = /** @type {"h1" | "h2"} */ (`h${this.options.heading}`);
    this.title = make(level, {class: "name"});
    this.#entitle();
    const top = make("header", {class: "top"}, this.menu, this.places.logo, this.title, this.places.element, fresh);
    this.main = make(
      "section",
      {class: "main", "aria-label": say("conversation")},
      top,
      this.thread,
      this.composer.element,
      this.status,
    );
    this.side = this.options.sidebar && make("nav", {class: "side", "aria-label": say("conversations")});
    this.element = make("div", {class: "rdx", lang: language}, this.side, this.main);
    this.card = new PointedCard(this.element);
    root.append(this.element);
  }

  /** Show a conversation from History; a new one has no `server` and no `place`. */
  #open({id, server = undefined, place = undefined, turns}) {
    this.stop();
    this.conversation = {id, server, place};
    this.history.openId = id;
    this.turns = this.replaced = [];
    this.thread.replaceChildren();
    this.#toggleSide(false);
    for (const {question, answer, rating, ...begun} of turns) {
      const turn = this.#add(new Turn(question, this.#handlers()));
      turn.rating = rating;
      if (answer) turn.show(answer);
      else turn.resume(begun);
    }
    if (turns.length) this.#scrollTo(this.turns.at(-1));
    this.#context();
    this.#list();
  }

  #add(turn) {
    if (!this.turns.length) this.thread.replaceChildren();
    this.element.classList.remove("empty");
    this.turns.push(turn);
    this.thread.append(turn.element);
    return turn;
  }

  /** Scroll a question to the top: its answer is read from there, and nothing moves while it is written. */
  #scrollTo({element}) {
    if (getComputedStyle(this.thread).overflowY === "visible") this.main.scrollTo({top: element.offsetTop}); // little room
    else this.thread.scrollTo({top: element.offsetTop - this.thread.offsetTop});
  }

  #handlers() {
    return {
      say: text => this.say(text),
      edit: (turn, question) => this.#askAnew(turn, question),
      again: turn => this.#askAnew(turn, turn.question),
      enterKey: this.#enterKey,
      open: (id, source) => this.client.opened(id, source),
      link: this.options.sharing && (id => this.#share(id)),
      rate: (turn, rating, more) => {
        this.#save();
        return this.client.feedback(turn.answer.id, rating, more);
      },
    };
  }

  get #kept() {
    return this.turns.filter(turn => !this.replaced.includes(turn));
  }

  get #enterKey() {
    return this.options.keys ? key => this.#useKey(key) : null;
  }

  async #share(id) {
    await this.client.share(id);
    await copyText(this.client.linkTo(id));
  }

  /** Ask in place of a turn; later turns are removed with it. */
  #askAnew(turn, question) {
    this.stop();
    this.ask(question, this.turns.slice(this.turns.indexOf(turn)));
  }

  #remove(turns) {
    this.turns = this.turns.filter(turn => !turns.includes(turn));
    for (const {element} of turns) element.remove();
  }

  /** Mark the turns that the next answer will replace; they are disabled until then. */
  #replace(turns) {
    this.replaced = turns;
    for (const turn of this.turns) turn.element.inert = turns.includes(turn);
  }

  #rest() {
    this.pending = null;
    this.#replace([]);
    this.composer.setBusy(false);
    this.#context();
  }

  #answered(turn) {
    this.conversation.server = turn.answer.conversation;
    this.say(say("complete", {n: turn.citations.size}));
    this.#save();
  }

  /** Store the conversation; for an incomplete answer, the question and the text so far. */
  #save() {
    const turns = this.turns
      .filter(turn => turn.answer || turn.text || turn.cut || !turn.failed)
      .map(turn => ({question: turn.question, rating: turn.rating, ...(turn.answer ? {answer: keep(turn.answer)} : turn.begun)}));
    if (!turns.length) return;
    const {id, server} = this.conversation;
    this.history.save({id, server, title: shorten(turns[0].question), at: Date.now(), place: this.places.place, turns});
    this.#list();
  }

  /** Show what the next question follows. */
  #context() {
    const last = this.#kept.findLast(turn => turn.answer);
    if (!last?.answer.known) return this.composer.setContext();
    const leave = iconButton("close", say("ask_other"), () => this.begin());
    const question = make("q", {dir: "auto", lang: ""}, shorten(last.question));
    this.composer.setContext(make("span", {}, parts("follows_up", {question})), leave);
  }

  /** Show whose documentation is asked, also on a bookmarked, printed or shared page. */
  #entitle() {
    const whose = this.places.about?.title;
    const named = whose ? [whose, make("span", {class: "task"}, ` · ${say("title")}`)] : [say("title")];
    this.title.replaceChildren(...(this.options.title ? [this.options.title] : named));
    this.options.onTitle?.(this.title.textContent);
  }

  #moved(otherCollection) {
    this.#entitle();
    if (otherCollection) this.begin();
    else if (!this.turns.length) this.#welcome();
    this.options.onPlace?.(this.places.place);
  }

  async #useKey(key) {
    this.client.key = key;
    this.options.onKey?.(key);
    this.ready = this.load();
    await this.ready;
    const failed = this.turns.at(-1);
    if (failed && !failed.answer && !this.trouble) this.#askAnew(failed, failed.question);
  }

  #welcome() {
    this.element.classList.add("empty");
    const {about} = this.places;
    /** @type {HTMLElement[]} */
    const parts = [
      make(
        "p",
        {class: "lead"},
        about?.title ? say("welcome_to", {title: about.title}) : say("welcome"),
      ),
    ];
    if (this.trouble) parts.push(showFailure(this.trouble, {again: () => this.load(), enterKey: this.#enterKey}));
    else if (about?.pages)
      parts.push(
        make(
          "p",
          {class: "place"},
          say("from_pages", {n: about.pages}),
        ),
      );
    const examples = (about?.examples ?? []).map(text =>
      make("li", {}, make("button", {type: "button", dir: "auto", onclick: () => this.ask(text)}, text)),
    );
    if (examples.length) parts.push(make("ul", {class: "examples", "aria-label": say("examples"), lang: ""}, examples));
    this.thread.replaceChildren(make("div", {class: this.loaded ? "welcome" : "welcome waiting"}, parts));
  }

  #toggleSide(open = !this.element.classList.contains("listing")) {
    if (!this.side) return;
    this.element.classList.toggle("listing", open);
    this.menu.setAttribute("aria-expanded", String(open));
    if (open) this.side.querySelector("button").focus();
  }

  #list() {
    if (!this.side) return;
    const fresh = iconButton("plus", "", () => this.begin(), {text: say("new_conversation"), class: "outlined"});
    const rows = this.history.all().map(kept => this.#row(kept));
    this.side.replaceChildren(fresh, make("ul", {}, rows));
  }

  #row(kept) {
    const show = async () => {
      this.#open(kept);
      await this.places.choose(kept.place);
      this.#entitle();
      this.options.onPlace?.(this.places.place);
    };
    const open = make(
      "button",
      {type: "button", class: "open", dir: "auto", lang: "", "aria-current": kept.id === this.conversation.id && "true", onclick: show},
      kept.title,
    );
    const remove = iconButton("trash", say("delete", {title: kept.title}), () => {
      this.history.remove(kept.id);
      if (kept.id === this.conversation.id) this.begin();
      else this.#list();
    });
    return make("li", {}, open, remove);
  }
}

/** Return where a stored conversation continues: at the `wanted` place, else where it was; null if it can't continue. */
function placeToGoOn(wanted, kept) {
  if (!wanted.collection && !wanted.version && !wanted.language) return kept;
  const collection = wanted.collection || kept.collection;
  return collection === kept.collection ? {version: "", language: "", ...wanted, collection} : null;
}

function randomId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(9)), byte => byte.toString(36)).join("");
}
