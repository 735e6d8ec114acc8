/** Offers to ask about the text that the reader has selected. */

import {icon, make} from "../chat/dom.js";
import {say} from "../chat/texts.js";

const LEAST = 3, MOST = 600; // characters: shorter selections are meaningless, longer ones are not a question
const REST_MS = 250; // wait until the selection stops growing

/** A button next to the selection; `ask(text)` is called with it. */
export class SelectionOffer {
  #timer;

  constructor(ask) {
    this.ask = ask;
    const onclick = () => this.#take();
    const onpointerdown = event => event.preventDefault(); // otherwise it would clear the selection
    this.element = make("button", {type: "button", class: "offer", hidden: true, onclick, onpointerdown}, icon("spark"), say("ask_selection"));
    document.addEventListener("selectionchange", () => this.#wait());
    this.#wait(); // handle a selection made while this was loading
    for (const moved of ["scroll", "resize"]) addEventListener(moved, () => this.#place(), {passive: true, capture: true});
  }

  #wait() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#place(), REST_MS);
  }

  #place() {
    this.text = selectedText();
    this.element.hidden = !this.text;
    if (!this.text) return;
    const {left, right, top, bottom} = getSelection().getRangeAt(0).getBoundingClientRect();
    const {width, height} = this.element.getBoundingClientRect();
    const below = top < height + 16;
    this.element.style.left = `${Math.max(8, Math.min((left + right - width) / 2, innerWidth - width - 8))}px`;
    this.element.style.top = `${below ? Math.min(bottom + 8, innerHeight - height - 8) : top - height - 8}px`;
  }

  #take() {
    this.element.hidden = true;
    this.ask(this.text);
  }
}

/** Return the selection in the page's own text, "" if unusable: in a field, in the widget, or too short. */
function selectedText() {
  const selection = getSelection();
  if (!selection?.rangeCount || selection.isCollapsed) return "";
  const {commonAncestorContainer: node} = selection.getRangeAt(0);
  const within = node instanceof Element ? node : node.parentElement;
  if (!within || within.closest("input, textarea, [contenteditable=''], [contenteditable=true], raydex-widget, raydex-chat, raydex-search")) return "";
  const text = selection.toString().replace(/\s+/g, " ").trim();
  return text.length < LEAST ? "" : text.slice(0, MOST);
}
