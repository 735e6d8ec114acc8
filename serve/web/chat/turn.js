/** One question and its answer: sources first, then the text as it arrives, then the actions on it. */

import {markClaims} from "./claims.js";
import {ServiceError} from "./client.js";
import {confirmOn, copyText} from "./copying.js";
import {iconButton, make, withCode} from "./dom.js";
import {showFailure} from "./failure.js";
import {Feedback} from "./feedback.js";
import {LiveMarkdown} from "./markdown.js";
import {alsoFound, asCitation, linkTitles, makeCard, onOpened, shorten, titleOf} from "./sources.js";
import {language, say} from "./texts.js";

const LOST = ["bm25", "conversation", "research", "rewrite", "vector"];
const LONG = 300; // characters of a question: more than four lines as a heading

let labels = 0;

/** A turn of a conversation, in `element`. */
export class Turn {
  /**
   * `on` has the callbacks to the chat: `edit(turn, question)`, `again(turn)`, `rate(turn, rating, more)`,
   * `link(id)`, `enterKey(key)`, `say(text)`, `open(id, source)`.
   */
  constructor(question, on, {editable = true} = {}) {
    this.question = question;
    this.on = on;
    this.answer = null;
    this.failed = false;
    this.stopped = false;
    this.rating = 0;
    this.text = "";
    this.citations = new Map();
    this.hits = [];
    const long = question.length > LONG;
    this.heading = make("h2", {class: long ? "question long" : "question", dir: "auto", lang: "", tabindex: long && "0"}, question);
    this.edit =
      editable && iconButton("edit", say("edit"), () => this.#openEditor(), {class: "quiet bare edit"});
    this.top = make("div", {class: "asked"}, this.heading, this.edit);
    this.label = make("p", {class: "label", id: `sources-${++labels}`});
    this.sources = make("ol", {class: "sources", "aria-labelledby": this.label.id});
    this.shelf = make("div", {class: "shelf", hidden: true}, this.label, this.sources);
    this.notice = make("p", {class: "notice", hidden: true});
    this.body = make("div", {class: "answer", lang: ""});
    this.foot = make("div", {class: "foot"});
    this.element = make(
      "article",
      {class: "turn", "aria-label": shorten(question)},
      this.top,
      this.shelf,
      this.notice,
      this.body,
      this.foot,
    );
    this.markdown = new LiveMarkdown(this.body);
    onOpened(this.element, ({source}) => this.on.open?.(this.answer?.id, source));
  }

  /** Show the events of a stream: `hits`, `status`, `delta`, `citation`, `answer`. */
  take(name, data) {
    const take = {hits: this.#takeHits, status: this.#takeStatus, delta: this.#takeDelta, answer: this.show}[name];
    take?.call(this, data);
  }

  begin() {
    this.body.setAttribute("aria-busy", "true");
    this.body.classList.add("busy");
    this.#notify(say("searching"));
  }

  /** Show a complete answer. */
  show(answer) {
    this.answer = answer;
    this.text = answer.answer;
    const quoted = answer.agent === "extractive"; // its text is quoted from the sources
    this.citations = new Map(
      answer.citations.map(one => [one.n, {...one, quoted, supported: answer.known ? one.supported : undefined}]),
    );
    this.#settle();
    if (!answer.known) this.body.after(this.shelf);
    this.shelf.classList.toggle("closest", !answer.known);
    this.#showSources(say(answer.known ? "sources" : "closest"));
    if (answer.form === "results") this.#showResults();
    this.#soften(answer.notes ?? []);
    if (answer.known) markClaims(this.body, answer.claims?.unsupported ?? [], answer.claims?.reasons ?? []);
    const found = alsoFound(answer.also_found ?? []);
    this.foot.replaceChildren(...this.#marks(), this.#actions(), this.feedback.panel, ...found);
  }

  /** Show that the answer was stopped; its text so far stays. */
  stop() {
    this.stopped = true;
    this.#settle();
    this.foot.replaceChildren(
      make("p", {class: "mark"}, say(this.text ? "stopped_answer" : "stopped")),
      make("div", {class: "actions"}, this.#againButton()),
    );
  }

  /** The received part of an incomplete answer, for storage. */
  get begun() {
    return {text: this.text, sources: [...this.citations], stopped: this.stopped};
  }

  /** Show the part of an answer that arrived before the page was reloaded. */
  resume({text, sources, stopped}) {
    this.text = text;
    this.citations = new Map(sources);
    this.#showSources(say("found"));
    if (stopped) this.stop();
    else this.fail(new ServiceError("reloaded", ""));
  }

  fail(error) {
    this.failed = true;
    this.cut = ["cut", "reloaded"].includes(error.kind); // also when the page is being left
    this.#settle();
    this.foot.replaceChildren(showFailure(error, {again: () => this.on.again(this), enterKey: this.on.enterKey}));
  }

  /** Return the answer as Markdown, its sources below. */
  toMarkdown() {
    const sources = [...this.citations].map(([n, source]) => `[${n}] [${titleOf(source)}](${source.source})`);
    return [this.text, ...(sources.length ? [`**${say("sources")}**\n\n${sources.join("  \n")}`] : [])].join("\n\n");
  }

  #takeHits({hits}) {
    this.hits = hits;
    this.citations = new Map(hits.map((hit, i) => [i + 1, asCitation(hit)]));
    this.#showSources(say("found"));
  }

  #takeStatus({stage, passages, seconds, about}) {
    const pages = new Set(this.hits.slice(0, passages || undefined).map(hit => hit.source.split("#")[0])).size;
    if (stage === "loading") return this.#notify(say("loading_index"));
    if (stage === "thinking") return this.#notify(say("thinking"));
    if (stage === "searching") return this.#notify(say("searching_for", {about}));
    if (stage === "opening") return this.#notify(say("opening", {about}));
    this.#notify(say(seconds >= 2 ? "reading_for" : "reading", {n: pages, seconds: Math.round(seconds)}));
  }

  #takeDelta({text, reset}) {
    this.#notify("");
    this.text = (reset ? "" : this.text) + text;
    this.drawing ??= requestAnimationFrame(() => {
      this.drawing = null;
      if (this.body.classList.contains("busy")) this.markdown.show(this.text, this.citations, {open: true});
    });
  }

  #settle() {
    this.#notify("");
    this.body.classList.remove("busy");
    this.body.removeAttribute("aria-busy");
    this.markdown.show(this.text, this.citations);
  }

  #notify(text) {
    this.notice.textContent = text;
    this.notice.hidden = !text;
    if (text) this.on.say(text);
  }

  #showSources(label) {
    this.label.textContent = label;
    this.sources.replaceChildren(...[...this.citations].map(([n, source]) => makeCard(n, source)));
    this.shelf.hidden = !this.citations.size;
  }

  /** Link the titles of results to their sections, without cards that would repeat them. */
  #showResults() {
    this.shelf.hidden = true;
    linkTitles(this.body, this.citations);
  }

  /** De-emphasize the service's notes before its answer, such as the search terms. */
  #soften(notes) {
    for (const block of [...this.body.children].slice(0, notes.length)) block.classList.add("note");
  }

  /** Notes for a reader before relying on the answer, one inconspicuous line each. */
  #marks() {
    const {known, form, claims, confidence, finish_reason, degraded, written_by, asked_at, collection} = this.answer;
    const marks = [];
    if (asked_at) {
      const date = new Date(asked_at).toLocaleDateString(language, {dateStyle: "long"});
      marks.push(make("p", {class: "mark"}, say("answered_on", {date, collection})));
    }
    if (finish_reason !== "stop")
      marks.push(make("p", {class: "mark caution"}, say("cut_off")));
    if (written_by === "person") marks.push(make("p", {class: "mark good"}, say("by_person")));
    else if (known && claims?.total) marks.push(this.#rely(claims, confidence));
    else if (known && form === "results") marks.push(make("p", {class: "mark"}, say("search_results")));
    for (const part of (degraded ?? []).filter(part => part !== "truncated"))
      marks.push(make("p", {class: "mark"}, this.#lost(part)));
    return marks;
  }

  #lost(part) {
    if (!part.startsWith("llm:")) return LOST.includes(part) ? say(`lost_${part}`) : say("lost", {part});
    return say(this.answer.agent === "extractive" ? "model_quoted" : "model_replaced");
  }

  #rely({supported, total, unsupported}, confidence) {
    const claimed = say("supported", {supported, n: total});
    const underlined = unsupported?.length && this.body.querySelector(".unsupported");
    const checked = underlined ? say("underlined", {supported: claimed}) : claimed;
    const backed = this.answer.agent === "extractive" ? say("quoted") : checked;
    const shade = {high: "good", low: "caution"}[confidence]; // "some" tells nothing
    return make("p", {class: `mark ${shade ?? ""}`}, shade ? `${say(confidence)} · ${backed}` : backed);
  }

  #actions() {
    this.feedback = new Feedback((rating, more) => {
      this.rating = rating;
      return this.on.rate(this, rating, more);
    }, this.rating);
    const copy = iconButton("copy", say("copy_answer"), () => this.#done(copy, copyText(this.toMarkdown()), say("copied")));
    const link = iconButton("link", say("copy_link"), () =>
      this.#done(link, this.on.link(this.answer.id), say("link_copied")),
    );
    return make(
      "div",
      {class: "actions"},
      copy,
      this.on.link && link,
      this.on.again && this.#againButton(),
      this.on.rate && this.feedback.buttons,
    );
  }

  #againButton() {
    return iconButton("again", say("ask_again"), () => this.on.again(this));
  }

  async #done(button, work, text) {
    try {
      await work;
      confirmOn(button, text);
      this.on.say(text);
    } catch (error) {
      this.foot
        .querySelector(".actions")
        .after(make("p", {class: "mark caution", role: "alert"}, withCode(error.message)));
    }
  }

  #openEditor() {
    const box = make("textarea", {"aria-label": say("edit_question"), rows: "2", dir: "auto"}, this.question);
    const close = () => {
      form.remove();
      this.top.classList.remove("sr");
      this.edit.focus();
    };
    const onsubmit = event => {
      event.preventDefault();
      const question = box.value.trim();
      if (question) this.on.edit(this, question);
    };
    const onkeydown = event => {
      if (event.key === "Escape") close();
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) onsubmit(event);
    };
    const cancel = make("button", {type: "button", class: "quiet", onclick: close}, say("cancel"));
    const form = make(
      "form",
      {class: "editor", onsubmit, onkeydown},
      box,
      make("div", {class: "row"}, cancel, make("button", {class: "primary"}, say("ask_again"))),
    );
    this.top.classList.add("sr");
    this.top.after(form);
    box.focus();
    box.select();
  }
}
