/** Thumbs for an answer, with reasons and a comment. */

import {iconButton, make} from "./dom.js";
import {say} from "./texts.js";

const REASONS = ["wrong", "incomplete", "outdated", "not_asked"];
const MOST_COMMENT = 2000; // characters: a paragraph or two

/** The buttons of one answer, and the form that opens below it. */
export class Feedback {
  /** `send(rating, {reasons, comment})` sends it to the service; `rating` is the earlier choice. */
  constructor(send, rating = 0) {
    this.send = send;
    this.rating = rating;
    this.told = Promise.resolve(true);
    this.up = iconButton("up", say("good"), () => this.#rate(1));
    this.down = iconButton("down", say("bad"), () => this.#rate(-1));
    this.buttons = make("span", {class: "thumbs", role: "group", "aria-label": say("rate_answer")}, this.up, this.down);
    this.panel = make("div", {class: "feedback", hidden: true});
    this.#mark();
  }

  async #rate(rating) {
    this.rating = rating === this.rating ? 0 : rating;
    this.#mark();
    this.#open();
    await this.#tell({});
  }

  #mark() {
    this.up.setAttribute("aria-pressed", String(this.rating === 1));
    this.down.setAttribute("aria-pressed", String(this.rating === -1));
  }

  #open() {
    this.panel.hidden = this.rating === 0;
    if (this.rating === 0) return;
    const reasons = REASONS.map(name =>
      make("label", {}, make("input", {type: "checkbox", name: "reason", value: name}), make("span", {}, say(name))),
    );
    const what = make("fieldset", {}, make("legend", {}, say("what_wrong")), reasons);
    const comment = make("textarea", {
      name: "comment",
      rows: "2",
      maxlength: MOST_COMMENT,
      "aria-label": say("comment"),
      placeholder: say(this.rating < 0 ? "what_right" : "what_good"),
    });
    const onsubmit = event => {
      event.preventDefault();
      const chosen = new FormData(form).getAll("reason");
      this.#tell({reasons: chosen, comment: comment.value.trim()}).then(told => told && this.#thank());
    };
    const form = make(
      "form",
      {onsubmit},
      this.rating < 0 && what,
      comment,
      make("div", {class: "row"}, make("button", {class: "outlined"}, say("send"))),
    );
    this.panel.replaceChildren(form);
  }

  /** Return whether the service accepted it. Earlier ratings are sent first, because the last one counts. */
  #tell(more) {
    const {rating} = this;
    this.told = this.told.then(() => this.#send(rating, more));
    return this.told;
  }

  async #send(rating, {reasons = [], comment = ""}) {
    try {
      await this.send(rating, {reasons: reasons.length ? reasons : undefined, comment});
      return true;
    } catch (error) {
      this.#say(say("not_sent", {reason: error.message}));
      return false;
    }
  }

  #thank() {
    this.panel.replaceChildren(make("p", {role: "status"}, say("thank_you")));
  }

  #say(text) {
    this.panel.hidden = false;
    this.panel.querySelector("[role=status]")?.remove();
    this.panel.append(make("p", {role: "status", class: "caution"}, text));
  }
}
