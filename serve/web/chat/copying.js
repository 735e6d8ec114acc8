/** Copies text to the clipboard, and confirms it on a button. */

import {icon, make} from "./dom.js";
import {say} from "./texts.js";

/** Put a text on the clipboard, also where the page was not loaded over https. */
export async function copyText(text) {
  if (navigator.clipboard && window.isSecureContext) {
    try {
      return await navigator.clipboard.writeText(text);
    } catch {
      // Without permission the older API may still work.
    }
  }
  const area = make("textarea", {readonly: true, "aria-hidden": "true"});
  area.value = text;
  area.style.cssText = "position:fixed;opacity:0";
  const before = /** @type {HTMLElement | null} */ (document.activeElement);
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  before?.focus?.({preventScroll: true});
  if (!copied) throw new Error(say("no_copy"));
}

/** Show on `button` for two seconds that its action is done. */
export function confirmOn(button, text) {
  const before = [...button.childNodes];
  if (button.dataset.confirmed) return;
  button.dataset.confirmed = "yes";
  button.replaceChildren(icon("check"), make("span", {}, text));
  setTimeout(() => {
    button.replaceChildren(...before);
    delete button.dataset.confirmed;
  }, 2000);
}
