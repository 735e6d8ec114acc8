/**
 * Renders the Markdown of an answer, sanitized: raw HTML is shown as text, images as their alt text, and links lead only
 * to http(s).
 *
 * `[n]` becomes a number that links to the n-th source.
 */

import DOMPurify from "../vendor/dompurify.js";
import {Marked} from "../vendor/marked.js";
import {escape, frameCode, makeCode} from "./code.js";
import {make} from "./dom.js";
import {makeNumber, renewNumbers} from "./sources.js";
import {say} from "./texts.js";

const TAGS =
  "a blockquote br code del em h3 h4 h5 h6 hr li ol p pre span strong sup table tbody td th thead tr ul".split(" ");
/** A page has one h1, and each question is an h2. */
const QUESTION_LEVEL = 2;
/** Endings of a stream that the next word may change: a dash under a line may start a list or underline a heading. */
const UNDECIDED = /\n[ \t]*(?:[-=*+#>|`~]{1,3}|\d{1,2}\.?)[ \t]*$/;

const marked = new Marked({
  gfm: true,
  extensions: [
    {
      name: "number",
      level: "inline",
      start: text => text.match(/\[\d/)?.index,
      tokenizer(text) {
        const found = /^\[(\d{1,4})\]/.exec(text);
        return found ? {type: "number", raw: found[0], n: found[1]} : undefined;
      },
      renderer: ({n}) => `<sup data-n="${n}">${n}</sup>`,
    },
  ],
  renderer: {
    html: ({text, block}) => (block ? `<p>${escape(text.trim())}</p>` : escape(text)),
    image: ({text, raw}) => escape(text || raw),
    checkbox: ({checked}) => (checked ? "☑ " : "☐ "),
    heading({tokens}) {
      return `<p><strong>${this.parser.parseInline(tokens)}</strong></p>`; // inside a quote or a list
    },
    code: ({text, lang}) => makeCode(text, lang),
  },
});

/** Growing Markdown in `root`: only changed blocks are rendered again. */
export class LiveMarkdown {
  #blocks = [];

  constructor(root) {
    this.root = root;
  }

  /** Show a possibly incomplete text; `citations` maps a number to its source; other numbers stay text. */
  show(text, citations, {open = false} = {}) {
    const lexed = marked.lexer(open ? text.replace(UNDECIDED, "") : text);
    const tokens = lexed.filter(token => token.type !== "space" && token.type !== "def");
    const links = JSON.stringify(lexed.links); // a definition may come after the link that uses it
    let level = QUESTION_LEVEL;
    tokens.forEach((token, i) => {
      if (token.type === "heading") level = Math.min(token.depth + QUESTION_LEVEL, level + 1, 6);
      const key = `${level} ${token.raw} ${placesIn(token.raw, citations)} ${links}`;
      if (this.#blocks[i]?.key !== key) this.#put(i, {key, nodes: renderBlock(token, level, citations)});
    });
    for (const gone of this.#blocks.splice(tokens.length)) gone.nodes.forEach(node => node.remove());
    renewNumbers(this.root, citations);
  }

  #put(i, block) {
    const old = this.#blocks[i]?.nodes ?? [];
    if (old.length) old[0].before(...block.nodes);
    else this.root.append(...block.nodes);
    old.forEach(node => node.remove());
    this.#blocks[i] = block;
  }
}

/** Return the targets of a block's numbers, and their styles. */
function placesIn(raw, citations) {
  const numbers = [...raw.matchAll(/\[(\d{1,4})\]/g)].map(found => citations.get(Number(found[1])));
  return numbers.map(source => source && `${source.source} ${source.supported === false}`).join();
}

function renderBlock(token, level, citations) {
  const heading =
    token.type === "heading"
      ? `<h${level}>${marked.Parser.parseInline(token.tokens, marked.defaults)}</h${level}>`
      : "";
  const clean = DOMPurify.sanitize(heading || marked.parser([token]), {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ["align", "class", "data-n", "href", "start"],
    ALLOW_ARIA_ATTR: false,
    ALLOW_DATA_ATTR: false,
    RETURN_DOM_FRAGMENT: true,
  });
  clean.querySelectorAll("a").forEach(guardLink);
  clean.querySelectorAll("sup").forEach(sup => {
    const before = sup.previousSibling,
      n = Number(sup.dataset.n);
    // Keep a number from starting a line.
    if (citations.has(n) && before instanceof Text) before.data = before.data.replace(/ $/, "\u00a0");
    sup.replaceWith(makeNumber(n, citations));
  });
  clean.querySelectorAll("pre").forEach(frameCode);
  clean.querySelectorAll("table").forEach(table => {
    const frame = make("div", {class: "table", tabindex: "0", role: "group", "aria-label": say("table")});
    table.replaceWith(frame);
    frame.append(table);
  });
  for (const block of clean.children) block.setAttribute("dir", "auto"); // Arabic and Hebrew start at the right
  clean.querySelectorAll("code").forEach(code => code.setAttribute("dir", "ltr"));
  return [...clean.childNodes];
}

/** Let a link lead to http(s), and to nothing else; what it says stays. */
function guardLink(link) {
  const href = link.getAttribute("href") ?? "";
  if (!/^https?:\/\//i.test(href)) return link.replaceWith(...link.childNodes);
  for (const {name} of [...link.attributes]) link.removeAttribute(name);
  for (const [name, value] of Object.entries({href, rel: "noopener nofollow", target: "_blank"}))
    link.setAttribute(name, value);
}
