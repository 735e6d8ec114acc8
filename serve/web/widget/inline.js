/** A chat in the page itself. */

import {keepInPage, makeShell} from "./shell.js";

const NEAR = "300px"; // below what is seen: the chat is loaded before it is scrolled to

/** Put a chat into the element that `data-target` selects; without one, behind the script tag. */
export function addInline(parts, tag) {
  const {target} = parts.settings;
  const shell = makeShell("raydex-chat", parts.settings, parts.sheets);
  shell.className = "inline";
  const place = () => {
    const into = target && document.querySelector(target);
    if (into) into.append(shell);
    else if (!target && document.body.contains(tag)) tag.after(shell);
  };
  keepInPage(shell, place);
  if (!shell.isConnected) console.warn(`Raydex: nothing in this page yet is data-target="${target}", where the chat goes`);
  const seen = new IntersectionObserver(async ([entry]) => {
    if (!entry.isIntersecting) return;
    seen.disconnect();
    (await parts.assistant).mountChat(shell.shadowRoot);
  }, {rootMargin: NEAR});
  seen.observe(shell);
}
