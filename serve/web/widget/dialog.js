/** A modal dialog: it keeps the focus, Escape and a click outside close it, and the focus returns. */

import {make} from "../chat/dom.js";

const FOCUSABLE = "a[href], button:not([disabled]), input:not([disabled]), select:not([disabled]), textarea:not([disabled]), [tabindex='0']";

export class Dialog {
  #escaped = false;
  #before = null;

  /** `label` is its name for a screen reader. */
  constructor(label, className, ...children) {
    this.element = make("dialog", {"aria-label": label, class: className}, ...children);
    this.element.addEventListener("keydown", ({key}) => (this.#escaped = key === "Escape"), true);
    this.element.addEventListener("keydown", event => this.#pressed(event));
    this.element.addEventListener("cancel", event => this.#cancelled(event));
    this.element.addEventListener("click", event => event.target === this.element && this.close());
    this.element.addEventListener("close", () => this.#closed());
  }

  get isOpen() {
    return this.element.open;
  }

  open() {
    if (this.isOpen) return;
    this.#before = deepFocus(document);
    this.element.showModal();
  }

  close() {
    this.element.close();
  }

  #pressed(event) {
    if (event.key === "Tab") this.#turnAround(event);
    if (event.key !== "Escape" || event.defaultPrevented || event.isComposing) return;
    event.preventDefault();
    this.close();
  }

  /** The effect of Escape was decided on keydown; a phone's back gesture only cancels. */
  #cancelled(event) {
    event.preventDefault();
    if (!this.#escaped) this.close();
    this.#escaped = false;
  }

  #turnAround(event) {
    const stops = focusable(this.element);
    const at = stops.indexOf(deepFocus(document));
    const leaves = event.shiftKey ? at <= 0 : at === stops.length - 1 || at < 0;
    if (!leaves || !stops.length) return;
    event.preventDefault();
    stops.at(event.shiftKey ? -1 : 0).focus();
  }

  #closed() {
    if (this.#before?.isConnected) this.#before.focus({preventScroll: true});
    this.#before = null;
  }
}

/** Return the focused element, also inside shadow roots. */
export function deepFocus(root) {
  let active = root.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  return active;
}

function focusable(root) {
  const inside = [...root.querySelectorAll("*")].flatMap(element => (element.shadowRoot ? focusable(element.shadowRoot) : element));
  return inside.filter(element => element.matches(FOCUSABLE) && element.tabIndex >= 0 && element.checkVisibility());
}
