/** Shows sources: the numbers in a text, the cards above it, and the card of a number under the pointer. */

import {make} from "./dom.js";
import {ago, say} from "./texts.js";

/** The sources of numbers and cards, which the hover card shows. */
const sourceOf = new WeakMap();

/** Return the number of a source in a text; a number without a source stays text. */
export function makeNumber(n, citations) {
  const source = citations.get(n);
  if (!source) return document.createTextNode(`[${n}]`);
  const weak = source.supported === false;
  const link = makeLink(source, {class: weak ? "number weak" : "number", "aria-label": label(n, source)}, String(n));
  return make("sup", {}, link);
}

/** Update the numbers below `root` to their current sources. */
export function renewNumbers(root, citations) {
  for (const link of root.querySelectorAll(".number")) sourceOf.set(link, citations.get(Number(link.textContent)));
}

/** Link the titles of results, each before its number, to the number's target. */
export function linkTitles(root, citations) {
  for (const number of root.querySelectorAll(":scope > p > strong:first-child + sup:last-child > .number")) {
    const title = number.parentElement.previousElementSibling;
    const source = citations.get(Number(number.textContent));
    if (!source || title.querySelector("[data-source]")) continue;
    title.replaceChildren(makeLink(source, {}, ...title.childNodes));
    title.parentElement.classList.add("result");
  }
}

/** Return the card of a source in the row above an answer. */
export function makeCard(n, source) {
  const parts = {
    badge: String(n),
    title: titleOf(source),
    place: placeOf(source),
    snippet: shorten(source.snippet ?? ""),
  };
  return make(
    "li",
    {},
    makeLink(
      source,
      {class: "card"},
      Object.entries(parts).map(([name, text]) => make("span", {class: name, dir: "auto", lang: ""}, text)),
    ),
  );
}

function makeLink(source, attributes, ...children) {
  const leads = /^https?:\/\//i.test(source.source);
  const way = leads ? {href: source.source, target: "_blank", rel: "noopener nofollow"} : {tabindex: "0"};
  const link = make(leads ? "a" : "span", {...attributes, ...way, "data-source": ""}, ...children);
  if (!leads && attributes["aria-label"]) link.setAttribute("role", "img");
  sourceOf.set(link, source);
  return link;
}

/** Call `opened(source)` when a link to a source below `root` is followed; a first tap only shows its card. */
export function onOpened(root, opened) {
  const follow = event => {
    const link = event.button < 2 && event.target.closest?.("a[data-source]");
    if (link) setTimeout(() => event.defaultPrevented || opened(sourceOf.get(link)));
  };
  root.addEventListener("click", follow);
  root.addEventListener("auxclick", follow);
}

function label(n, source) {
  const named = say("source_n", {n, title: titleOf(source)});
  return source.supported === false ? `${named}, ${say("weakly")}` : named;
}

/** Return a source's title: its section, or its page. */
export function titleOf(source) {
  return source.headings?.at(-1) || source.title || source.source;
}

/** Return a source's place: the headings above it, or its URL. */
export function placeOf(source) {
  const above = (source.headings ?? []).slice(0, -1).join(" › ");
  return above || addressOf(source).replace(/#.*$/, "");
}

function addressOf(source) {
  return source.source.replace(/^https?:\/\//, "");
}

/** Return a list of links to sections that were found in addition to the sources: none, or one element. */
export function alsoFound(sections) {
  if (!sections.length) return [];
  const items = sections.slice(0, MOST_FOUND).map(one =>
    make("li", {},
      make("p", {}, makeLink(asCitation(one), {}, titleOf(one)), " ", make("span", {class: "place"}, placeOf(one))),
      make("p", {class: "says"}, one.snippet),
    ),
  );
  return [make("section", {class: "found"}, make("p", {class: "label"}, say("also_found")), make("ul", {}, items))];
}

/** Return the citation that a hit would become, for use until it arrives. */
export function asCitation(hit) {
  return {source: hit.source, title: hit.title, headings: hit.headings, snippet: hit.text, provisional: true};
}

const MOST_FOUND = 4; // sections below an answer: more would be a list of search results

const EDGE = 8; // pixels between the card and the edge of the window
const GAP = 4; // pixels between the card and its number: close enough to look connected
const CLOSE_MS = 150; // long enough to move the pointer from the number to its card

/**
 * The card that appears next to a hovered or focused number. Escape, a press elsewhere and scrolling the number out of
 * view close it; the pointer may move onto it.
 */
export class PointedCard {
  #timer;

  constructor(root) {
    this.card = make("div", {class: "pointed", role: "tooltip", id: "pointed-source", popover: "manual"});
    root.append(this.card);
    for (const begins of ["pointerover", "focusin"]) root.addEventListener(begins, event => this.#begin(event));
    root.addEventListener("pointerdown", event => this.#press(event));
    root.addEventListener("click", event => this.#tap(event));
    for (const ends of ["pointerout", "focusout"])
      root.addEventListener(ends, event => event.pointerType !== "touch" && this.#end());
    root.addEventListener("keydown", event => event.key === "Escape" && this.close());
    for (const moves of ["scroll", "resize"])
      root.ownerDocument.defaultView.addEventListener(moves, () => this.#follow(), true);
  }

  close() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.at?.removeAttribute("aria-describedby");
    this.at = null;
    if (this.card.matches(":popover-open")) this.card.hidePopover();
  }

  #press({target, pointerType}) {
    this.tapped = pointerType === "touch" && !this.#isOpenFor(target);
    if (!this.#isOpenFor(target) && !this.card.contains(target)) this.close();
  }

  /** On touch screens, show a number's card at the first tap; the second tap follows the link. */
  #tap(event) {
    const at = event.target.closest?.(".number");
    if (!at || !this.tapped) return;
    event.preventDefault();
    if (!this.#isOpenFor(at)) this.#open(at, sourceOf.get(at));
  }

  #isOpenFor(target) {
    return !!this.at && this.at === target.closest?.("[data-source]");
  }

  #begin(event) {
    const at = event.target.closest?.("[data-source]");
    if (!at) return this.#end();
    if (at !== this.at && event.pointerType !== "touch") this.#open(at, sourceOf.get(at));
  }

  /** Close the card after a moment, unless the pointer or the focus is on it or its number by then. */
  #end() {
    if (!this.at) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      if (!this.at?.matches(":hover, :focus-visible") && !this.card.matches(":hover")) this.close();
    }, CLOSE_MS);
  }

  #open(at, source) {
    this.close();
    this.at = at;
    const card = at.classList.contains("card");
    const parts = card ? [] : [make("strong", {}, titleOf(source))]; // do not repeat what the card beside it shows
    const read = source.quoted || at.closest(".closest") || !source.snippet;
    parts.push(read ? make("span", {class: "place"}, addressOf(source)) : make("p", {}, shorten(source.snippet)));
    if (source.supported === false)
      parts.push(make("p", {class: "caution"}, say("weak")));
    else if (source.by === "attributed" && !source.quoted) parts.push(make("p", {class: "place"}, say("found_by")));
    if (source.checked) parts.push(make("p", {class: "place"}, say("checked", {when: ago(source.checked)})));
    this.card.replaceChildren(...parts);
    this.card.showPopover?.();
    at.setAttribute("aria-describedby", this.card.id);
    this.#follow();
  }

  /** Place the card above its number, or below it if there is no room; close it when the number is out of sight. */
  #follow() {
    if (!this.at) return;
    if (!isInSight(this.at) && !this.at.matches(":focus-visible")) return this.close(); // a focused number will scroll into view
    const at = this.at.getBoundingClientRect(),
      card = this.card.getBoundingClientRect();
    const left = at.left + (at.width - card.width) / 2;
    const above = at.top - card.height - GAP;
    this.card.style.left = `${Math.max(EDGE, Math.min(left, innerWidth - card.width - EDGE))}px`;
    this.card.style.top = `${above > EDGE ? above : at.bottom + GAP}px`;
  }
}

/** Return whether part of an element is visible in all its scrolling ancestors. */
function isInSight(element) {
  const {top, bottom, left, right} = element.getBoundingClientRect();
  const frames = [element.closest(".sources"), element.closest(".thread")].filter(Boolean).map(frame => frame.getBoundingClientRect());
  const sees = frame => bottom > frame.top && top < frame.bottom && right > frame.left && left < frame.right;
  return element.isConnected && frames.every(sees);
}

/** Return a string, or its first words if it has more than `most` characters. */
export function shorten(text, most = 280) {
  return text.length <= most ? text : `${text.slice(0, most).replace(/\s+\S*$/, "")} …`;
}
