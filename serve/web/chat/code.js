/** Shows code: highlighted if its language is known, with a button to copy it. */

import hljs from "../vendor/highlight.js";
import {confirmOn, copyText} from "./copying.js";
import {icon, make} from "./dom.js";
import {say} from "./texts.js";

/**
 * Line beginnings that identify a language if the documentation names none.
 *
 * @type {[string, RegExp][]}
 */
const TELLING = [
  ["python-repl", /^>>> /],
  ["shell", /^\$ \w/],
  [
    "python",
    /^(?:import [\w.]+(?: as \w+)?|from [\w.]+ import .*|@[\w.]+(?:\(.*\))?|(?:async )?def \w+\(.*|class \w+.*:)$/m,
  ],
  ["c", /^#include [<"]/m],
  ["java", /^\s*(?:public|private|protected) (?:static |final )*[\w<>[\]]+ \w+/m],
  ["rust", /^(?:pub )?fn \w+|^use \w+::/m],
  ["go", /^(?:package \w+$|func )/m],
  ["javascript", /^(?:const|let) .+ = |^import .+ from ["']/m],
  ["sql", /^(?:SELECT|INSERT INTO|UPDATE|DELETE FROM|CREATE|ALTER|DROP|GRANT|WITH|EXPLAIN)\s/m],
  ["bash", /^(?:pip|npm|apt|apt-get|brew|curl|docker|git|kubectl|export|sudo|cd|ray|python3?) \S/m],
  ["json", /^\s*[[{]\s*["{[]/],
  ["xml", /^\s*<[a-z!?][^>]*>/],
];

/** Return code as markup for a sanitizer; `named` is the info string of its fence. */
export function makeCode(text, named = "") {
  const name = /^[\w+#-]*/.exec(named)[0];
  const language = name || TELLING.find(([, pattern]) => pattern.test(text))?.[0];
  const code = hljs.getLanguage(language) ? hljs.highlight(text, {language, ignoreIllegals: true}).value : escape(text);
  return `<pre class="${name}"><code>${code}\n</code></pre>`;
}

/** Put a frame around code, with the name of its language and a button to copy it. */
export function frameCode(pre) {
  const language = pre.className;
  pre.removeAttribute("class");
  pre.tabIndex = 0;
  pre.setAttribute("role", "group");
  pre.setAttribute("aria-label", language ? say("code_in", {language}) : say("code"));
  const copy = async () => {
    await copyText(pre.textContent.replace(/\n$/, ""));
    confirmOn(button, say("copied"));
  };
  const button = make(
    "button",
    {type: "button", class: "quiet", onclick: copy},
    icon("copy"),
    make("span", {}, say("copy")),
  );
  const frame = make("div", {class: "code"}, make("div", {class: "bar"}, make("span", {}, language), button));
  pre.replaceWith(frame);
  frame.append(pre);
}

/** Return a string as markup that shows it. */
export function escape(text) {
  return text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`);
}
