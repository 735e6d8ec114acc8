/** Elements in the page itself: a chat, or a search field. */

import {icon, make} from "../chat/dom.js";
import {say} from "../chat/texts.js";
import {isMac, keepInPage, makeSheet, makeShell} from "./shell.js";

const NEAR = "300px"; // below the viewport: the chat is loaded before it scrolls into view
const FIELD = `
:host { display: inline-block !important }
.field { display: flex; align-items: center; gap: .6em; min-width: 14em; padding: .35em .5em .35em .8em; color: var(--soft); background: var(--paper); border: 1px solid var(--line); border-radius: 9px }
.field:hover { border-color: var(--soft) }
.field span { flex: 1; text-align: start }
kbd { padding: 0 .4em; border: 1px solid var(--line); border-radius: 5px; background: var(--lift) }`;

/** Put a chat into the element selected by `data-target`, or after the script tag. */
export function addChat(parts, tag) {
  const shell = makeShell("raydex-chat", parts.settings, parts.sheets);
  shell.className = "inline";
  put(shell, parts.settings.target, tag);
  const seen = new IntersectionObserver(async ([entry]) => {
    if (!entry.isIntersecting) return;
    seen.disconnect();
    (await parts.assistant).mountChat(shell.shadowRoot, parts.settings.target);
  }, {rootMargin: NEAR});
  seen.observe(shell);
}

/** Put a field that opens the search box into the element selected by `data-target`. */
export function addSearchField(parts, tag) {
  const shell = makeShell("raydex-search", parts.settings, [...parts.sheets, makeSheet(FIELD)]);
  const hint = parts.settings.hotkey && make("kbd", {"aria-hidden": "true"}, isMac() ? "⌘ K" : "Ctrl K");
  const onclick = () => parts.search();
  shell.shadowRoot.append(make("button", {type: "button", class: "field", "aria-haspopup": "dialog", onclick}, icon("search"), make("span", {}, say("search")), hint));
  put(shell, parts.settings.target, tag);
}

function put(shell, target, tag) {
  keepInPage(shell, () => {
    const into = target && document.querySelector(target);
    if (into) into.append(shell);
    else if (!target && tag.isConnected && !document.head.contains(tag)) tag.after(shell);
  });
  if (!shell.isConnected) console.warn(`Raydex: nothing in this page yet is data-target="${target}"`);
}
