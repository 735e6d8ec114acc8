/** Marks in a rendered answer the claims that no source supports. */

import {make} from "./dom.js";
import {say} from "./texts.js";

const MEANINGFUL = /[\p{L}\p{N}]/u;
/** Elements in an answer that are not part of its text. */
const NOT_TEXT = ".number, .bar";

/**
 * Underline each of `claims`, Markdown strings, below `root`. Only their letters and digits are compared, ignoring
 * white space and markup. For code, the frame is marked. The tooltip of each has its reason from `reasons`.
 */
export function markClaims(root, claims, reasons) {
  let after = 0; // the claims are in order
  for (const [n, claim] of claims.entries()) {
    const letters = lettersBelow(root); // again, because a mark splits text nodes
    const wanted = [...claim.replace(/^\s*(`{3,}|~{3,}).*\n/, "")].filter(letter => MEANINGFUL.test(letter)).join("");
    const at = letters
      .map(({letter}) => letter)
      .join("")
      .indexOf(wanted, after);
    if (!wanted || at < 0) continue;
    after = at + wanted.length;
    markLetters(letters.slice(at, after), reasonOf(reasons[n]));
  }
}

/** Return each letter below `root` with its place, `{letter, node, at}`; a letter of two code units counts as two. */
function lettersBelow(root) {
  const texts = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const letters = [];
  while (texts.nextNode()) {
    const node = /** @type {Text} */ (texts.currentNode);
    if (node.parentElement.closest(NOT_TEXT)) continue;
    let at = 0;
    for (const letter of node.data) {
      if (MEANINGFUL.test(letter))
        for (let unit = 0; unit < letter.length; unit++) letters.push({letter: letter[unit], node, at: at + unit});
      at += letter.length;
    }
  }
  return letters;
}

/** Return why a claim is not supported, null where its words alone say so; `{kind, text}` is of the API. */
function reasonOf({kind, text} = {kind: "words", text: ""}) {
  if (kind === "nowhere") return say("claim_nowhere", {text});
  return kind === "denied" ? say("claim_denied", {text}) : null;
}

function markLetters(letters, reason) {
  const code = letters[0].node.parentElement.closest(".code");
  if (code) {
    code.classList.add("unsupported");
    if (reason) code.title = reason;
    return;
  }
  const nodes = [...new Set(letters.map(({node}) => node))],
    last = letters.at(-1);
  for (const node of nodes) {
    const range = document.createRange();
    range.setStart(node, node === letters[0].node ? letters[0].at : 0);
    range.setEnd(
      node,
      node === last.node
        ? last.at + 1 + /^[^\s\p{L}\p{N}]*/u.exec(node.data.slice(last.at + 1))[0].length
        : node.length,
    );
    range.surroundContents(make("mark", {class: "unsupported", title: reason}));
  }
}
