/** Makes elements. Text becomes text nodes, never markup. */

const SVG = "http://www.w3.org/2000/svg";
/** Icons as stroked paths in a 24 × 24 box. */
const ICONS = {
  again: "M3 12a9 9 0 1 0 3-6.7M3 4v5h5",
  check: "M5 12.5l4.5 4.5L19 7.5",
  close: "M6 6l12 12M18 6L6 18",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  down: "M17 3v11l-4.5 7c-1.6 0-2.5-1.2-2.5-2.8V15H4.6c-1.2 0-2-1-1.8-2.2l1.2-8C4.2 3.8 5 3 6 3zM17 3h4v11h-4",
  edit: "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
  key: "M14.5 9.5m-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0M11 13l-8 8M6 18l2 2",
  link: "M10 14a4 4 0 0 0 6 .4l3-3a4.2 4.2 0 0 0-6-6l-1.6 1.6M14 10a4 4 0 0 0-6-.4l-3 3a4.2 4.2 0 0 0 6 6l1.6-1.6",
  menu: "M4 7h16M4 12h16M4 17h16",
  page: "M6 3h8l5 5v13H6zM14 3v5h5M9 13h7M9 17h5",
  plus: "M12 5v14M5 12h14",
  search: "M11 11m-7 0a7 7 0 1 0 14 0a7 7 0 1 0-14 0M16 16l5 5",
  send: "M12 19V5M6 11l6-6 6 6",
  spark: "M12 3c.8 5.2 3.8 8.2 9 9-5.2.8-8.2 3.8-9 9-.8-5.2-3.8-8.2-9-9 5.2-.8 8.2-3.8 9-9z",
  stop: "M8 8h8v8H8z",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13M10 11v6M14 11v6",
  up: "M7 21V10l4.5-7c1.6 0 2.5 1.2 2.5 2.8V9h5.4c1.2 0 2 1 1.8 2.2l-1.2 8c-.2 1-1 1.8-2 1.8zM7 21H3V10h4",
};

/** @typedef {Record<string, string | number | boolean | EventListener>} Attributes */

/**
 * Return a new element. In `attributes`, functions are listeners (`onclick`), booleans are set or left out, and all
 * others are attributes; `children` are nodes and strings, and null and false are skipped.
 *
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes]
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  element.append(...children.flat().filter(child => child != null && child !== false));
  return element;
}

/** Return an icon that is hidden from screen readers. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg"),
    path = document.createElementNS(SVG, "path");
  for (const [key, value] of Object.entries({viewBox: "0 0 24 24", "aria-hidden": "true", class: "icon"}))
    svg.setAttribute(key, value);
  path.setAttribute("d", ICONS[name]);
  svg.append(path);
  return svg;
}

/**
 * Return a button with an icon; `label` is its name, shown as a tooltip unless `text` is shown next to it.
 *
 * @param {keyof typeof ICONS} name
 * @param {string} label
 * @param {EventListener} onclick
 * @param {Attributes} [options]
 */
export function iconButton(name, label, onclick, {text = "", ...more} = {}) {
  const named = text ? {} : {"aria-label": label, title: label};
  return make(
    "button",
    {type: "button", class: text ? "quiet" : "quiet bare", ...named, onclick, ...more},
    icon(name),
    text && make("span", {}, text),
  );
}

/** Return a string with its `commands in backticks` as code. */
export function withCode(text) {
  return text.split(/`([^`]+)`/).map((part, i) => (i % 2 ? make("code", {}, part) : part));
}
