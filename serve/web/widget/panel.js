/** The chat in a dialog over the page. */

import {iconButton} from "../chat/dom.js";
import {say} from "../chat/texts.js";
import {Dialog} from "./dialog.js";
import {makeShell} from "./shell.js";

/** A chat over the page. It is loaded when first opened, and its conversation lasts as long as the tab. */
export class Panel {
  #chat = null;

  constructor(assistant, settings, sheets) {
    this.assistant = assistant;
    this.shell = makeShell("raydex-chat", settings, sheets);
    const close = iconButton("close", say("close"), () => this.dialog.close(), {class: "bare close"});
    this.dialog = new Dialog(settings.title || say("title"), "panel", this.shell, close);
    this.element = this.dialog.element;
  }

  preload() {
    this.assistant.preload();
  }

  async open() {
    this.dialog.open();
    const chat = await this.#load();
    if (this.dialog.isOpen) chat?.focus();
    return chat;
  }

  /** Open and ask a question. */
  async ask(question) {
    (await this.open())?.ask(question);
  }

  /** Open with text in the box for the reader to complete. */
  async compose(text) {
    (await this.open())?.compose(text);
  }

  async #load() {
    this.#chat ??= this.assistant.mountChat(this.shell.shadowRoot, "panel");
    const chat = await this.#chat;
    if (!chat) this.#chat = null;
    return chat;
  }
}
