/** The input box for a question. The draft is stored until it has been answered. */

import {icon, iconButton, make} from "./dom.js";
import {say} from "./texts.js";

/** Enter asks, Shift+Enter begins a line, Escape stops the answer. */
export class Composer {
  /**
   * The buttons call `ask(question)` and `stop()`; `store` stores a draft under `name`. With `onPage` there is a button
   * to ask about the open page, which sets `aboutPage`.
   */
  constructor({ask, stop, placeholder, store, name, onPage = false}) {
    this.ask = ask;
    this.stop = stop;
    this.placeholder = placeholder;
    this.store = store;
    this.name = `raydex-draft ${name}`;
    this.box = make("textarea", {
      name: "question",
      rows: "1",
      dir: "auto",
      "aria-label": say("your_question"),
      placeholder,
      enterkeyhint: "send",
      autocomplete: "off",
    });
    this.button = make("button", {class: "send"});
    this.context = make("div", {class: "context", hidden: true});
    this.aboutPage = false;
    const about = onPage && iconButton("page", say("about_page"), () => this.#toggleAbout(about), {"aria-pressed": "false"});
    const onsubmit = event => {
      event.preventDefault();
      this.#submit();
    };
    this.element = make(
      "form",
      {class: "composer", onsubmit},
      this.context,
      make("div", {class: "box"}, about, this.box, this.button),
    );
    this.box.addEventListener("input", () => {
      this.#changed();
      if (!this.busy) this.#keep(this.box.value);
    });
    this.box.addEventListener("keydown", event => this.#pressed(event));
    this.box.value = this.store?.getItem(this.name) ?? "";
    this.setBusy(false);
  }

  get value() {
    return this.box.value;
  }

  set value(text) {
    this.box.value = text;
    this.#changed();
  }

  focus() {
    this.box.focus({preventScroll: true});
  }

  setBusy(busy) {
    this.busy = busy;
    const label = say(busy ? "stop" : "ask");
    this.button.setAttribute("aria-label", label);
    this.button.title = say(busy ? "stop_esc" : "ask_enter");
    this.button.replaceChildren(icon(busy ? "stop" : "send"));
    this.#changed();
  }

  /** Empty the box after sending a question; the draft stays until it is answered. */
  send(question) {
    this.box.value = "";
    this.setBusy(true);
    this.#keep(question);
  }

  /** Delete the sent question's draft; text written since then stays. */
  sent() {
    this.#keep(this.box.value);
  }

  /** Restore a failed question, unless another one has been started. */
  restore(question) {
    if (!this.box.value) this.value = question;
  }

  /** Show above the box what the next question follows; without children the line is hidden. */
  setContext(...children) {
    this.context.replaceChildren(...children);
    this.context.hidden = !children.length;
    this.#invite();
  }

  #toggleAbout(button) {
    this.aboutPage = !this.aboutPage;
    button.setAttribute("aria-pressed", String(this.aboutPage));
    this.#invite();
    this.focus();
  }

  #invite() {
    const usual = this.context.hidden ? this.placeholder : say("ask_followup");
    this.box.placeholder = this.aboutPage ? say("ask_about_page") : usual;
  }

  #submit() {
    const question = this.box.value.trim();
    if (this.busy) this.stop();
    else if (question) this.ask(question);
  }

  #pressed(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      if (!this.busy) this.#submit();
    } else if (event.key === "Escape" && this.busy) {
      event.stopPropagation();
      this.stop();
    }
  }

  #changed() {
    this.button.disabled = !this.busy && !this.box.value.trim();
    this.box.style.height = "auto";
    if (this.box.scrollHeight) this.box.style.height = `${this.box.scrollHeight}px`;
  }

  #keep(draft) {
    try {
      this.store?.setItem(this.name, draft);
    } catch {
      // Full or forbidden: the draft lasts as long as the page.
    }
  }
}
