/** Elements with a shadow root of their own: no style of the page reaches in, and none of ours reaches out. */

import {language} from "../chat/texts.js";
import {schemeOfPage, watchScheme} from "./scheme.js";

/**
 * Return a style sheet of the service, by its path from here. It is fetched and constructed, never an inline style: a
 * page may forbid those.
 *
 * A rem is the size that the page gave its root, and many give it 10 px: here it is the text size that the reader chose.
 */
export async function loadStyles(path) {
  const size = readersTextSize();
  return makeSheet((await fetchText(path)).replace(/([\d.]+)rem\b/g, (_, number) => `${number * size}px`));
}

/** Return a module. It is fetched first: a browser never asks again for a module that it could not load. */
export async function load(path) {
  await fetchText(path);
  return import(new URL(path, import.meta.url).href);
}

async function fetchText(path) {
  const reply = await fetch(new URL(path, import.meta.url), {credentials: "omit"});
  if (!reply.ok) throw new Error(`${path}: ${reply.status}`);
  return reply.text();
}

/** Return a style sheet from its text. */
export function makeSheet(text) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(text);
  return sheet;
}

function readersTextSize() {
  const probe = document.createElement("raydex-probe");
  probe.style.font = "medium serif";
  document.documentElement.append(probe);
  const size = parseFloat(getComputedStyle(probe).fontSize);
  probe.remove();
  return size || 16;
}

/** Return an element whose open shadow root has `sheets`, in the colours of the settings and of the page. */
export function makeShell(name, settings, sheets) {
  const element = document.createElement(name);
  element.attachShadow({mode: "open"}).adoptedStyleSheets = sheets;
  element.dataset.position = settings.position;
  element.lang = language;
  if (settings.accent) element.style.setProperty("--raydex-accent", settings.accent);
  const colour = () => {
    element.dataset.scheme = settings.scheme === "auto" ? schemeOfPage() : settings.scheme;
  };
  colour();
  watchScheme(colour);
  for (const pressed of ["keydown", "keypress", "keyup"]) element.shadowRoot.addEventListener(pressed, keepKeys);
  return element;
}

/** Keep what is typed here from the shortcuts of the page: `/`, `s`, arrows. */
function keepKeys(event) {
  const outermost = event.currentTarget.host.getRootNode() === document;
  if (outermost && !isHotkey(event)) event.stopPropagation();
}

export function isMac() {
  return /^Mac|^iP/.test(navigator.platform);
}

/** Return whether a key opens the search box: Ctrl-K, on a Mac Cmd-K (there Ctrl-K cuts a line in a field). */
export function isHotkey(event) {
  const control = event.ctrlKey && !isMac();
  return event.key?.toLowerCase() === "k" && (event.metaKey || control) && !event.altKey && !event.shiftKey;
}

/**
 * Keep `element` in the page: `place()` puts it there and says whether it could. Pages of one application replace their
 * body, or the element that the widget stands in, and would take it away with them.
 */
export function keepInPage(element, place) {
  const check = () => element.isConnected || place(element);
  check();
  new MutationObserver(check).observe(document.documentElement, {childList: true, subtree: true});
}
