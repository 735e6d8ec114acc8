/** Elements with their own shadow root: the page's styles don't reach in, and ours don't reach out. */

import {language} from "../chat/texts.js";
import {schemeOfPage, watchScheme} from "./scheme.js";

/**
 * Return a style sheet of the service, by its relative path. It is fetched and constructed, never inlined, because a
 * page may forbid inline styles.
 *
 * In a page, rem follows the root's font size, which many pages set to 10 px. Here it is the reader's own text size.
 */
export async function loadStyles(path) {
  const size = readersTextSize();
  return makeSheet((await fetchText(path)).replace(/([\d.]+)rem\b/g, (_, number) => `${number * size}px`));
}

/** Return a module. It is fetched first, because a browser never retries a module that failed to load. */
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

/** Return an element whose open shadow root has `sheets`, in the colors of the settings and the page. */
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

/** Keep typed keys from triggering the page's shortcuts: `/`, `s`, arrows. */
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
 * Keep `element` in the page: `place()` puts it there and returns whether it could. Single-page applications replace
 * their body, or the element that contains the widget, and would remove it.
 */
export function keepInPage(element, place) {
  const check = () => element.isConnected || place(element);
  check();
  new MutationObserver(check).observe(document.documentElement, {childList: true, subtree: true});
}
