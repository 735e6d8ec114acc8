// Makes elements. Text only becomes text nodes; a URL becomes a link only if it is http or https.
/** Return the element `id` of the page, typed as a field because only fields have a value. */
const $ = id => /** @type {HTMLInputElement} */ (document.getElementById(id));
const SVG = "http://www.w3.org/2000/svg";

/** Return an element with attributes (on…: listeners) and children; null and false are skipped. */
function el(tag, attributes = {}, ...children) { return fill(document.createElement(tag), attributes, children); }

/** Return an SVG element, like `el`. */
function svg(tag, attributes = {}, ...children) { return fill(document.createElementNS(SVG, tag), attributes, children); }

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter(child => child !== null && child !== undefined && child !== false));
  return node;
}

/** Replace the contents of the element `id`. */
function put(id, ...children) { $(id).replaceChildren(...children.flat().filter(Boolean)); }

/** Return a link that shows `text`, or only the text if `url` is not a web URL. */
function link(url, text = url) {
  const shown = text || url || "";
  return /^https?:\/\//i.test(url || "") ? el("a", { href: url, rel: "noopener noreferrer nofollow", target: "_blank" }, shown) : document.createTextNode(shown);
}

/** Return a thin bar, filled to `share` (0 to 1) of its width. */
function bar(share) {
  const filled = el("i");
  filled.style.width = `${Math.max(1, Math.min(100, 100 * share)).toFixed(1)}%`;
  return el("span", { class: "bar", "aria-hidden": "true" }, filled);
}

const number = value => Number(value).toLocaleString("en");
const percent = (part, all) => all ? `${Math.round(100 * part / all)}%` : "–";
const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;
const seconds = value => value === null || value === undefined ? "–" : value >= 10 ? `${value.toFixed(0)} s` : value >= 1 ? `${value.toFixed(1)} s` : `${Math.round(value * 1000)} ms`;
const dollars = value => value === 0 ? "$0" : value < 0.01 ? `$${value.toFixed(4)}` : `$${value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
