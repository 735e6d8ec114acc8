// Lists of questions that expand to their details, and lists that can show more.
const FIRST = 10, MORE = 20;

/** Show `items`, rendered by `make`, in the element `id`: the first ones, and a button for more. */
function grow(id, items, make, empty, shown = FIRST) {
  const more = items.length > shown && el("button", { type: "button", class: "more", onclick: () => {
    grow(id, items, make, empty, shown + MORE);
    /** @type {HTMLElement} */ ($(id).children[shown]?.querySelector("summary, a"))?.focus();
  } }, `show ${Math.min(MORE, items.length - shown)} more of ${number(items.length)}`);
  put(id, items.slice(0, shown).map(make), !items.length && el("p", { class: "small" }, empty), more);
}

/** Return a question with its count, tags and a line below it; it expands to the result of `inside`. */
function question(item, count, tags, below, inside) {
  const details = el("details", {}, el("summary", {}, count, el("span", {}, el("span", { class: "what" }, item.question), tags)));
  details.addEventListener("toggle", () => { if (details.open && details.children.length === 1) details.append(el("div", { class: "inside" }, inside())); });
  return el("div", { class: "q" }, details, below && el("p", { class: "where" }, below));
}

/** Return tags that show how the answers to a group of questions turned out. */
function outcome(item) {
  const of = n => item.count > 1 ? `${number(n)} of ${number(item.count)} ` : "";
  return [
    item.unknown > 0 && tag("bad", `${of(item.unknown)}not known`),
    item.low > 0 && tag("", `${of(item.low)}low confidence`),
    item.down > 0 && tag("bad", `${plural(item.down, "answer")} rated down`),
    item.up > 0 && tag("good", `${plural(item.up, "answer")} rated up`),
    item.failed > 0 && tag("", `${of(item.failed)}failed`),
  ];
}

const tag = (kind, words) => el("span", { class: `tag ${kind}` }, words);

/** Return a heading with a list of strings below it; nothing if the list is empty. */
function texts(title, items) { return items.length ? [el("h3", {}, title), el("ul", {}, items.map(text => el("li", {}, text)))] : []; }

/** Return a link to a section, named by its headings, with a note if the index no longer has it. */
function section(place) { return [link(place.source, place.title || place.source), !place.title && tag("", "no longer in the index")]; }

/** Return a table; `columns` are [title, function of a row], the first one being the row's name. */
function table(caption, rows, columns) {
  const cells = row => columns.map(([, value], n) => n ? el("td", {}, value(row)) : el("th", { scope: "row", class: "text" }, value(row)));
  return el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, columns.map(([title], n) => el("th", { scope: "col", class: n ? "" : "text" }, title)))), el("tbody", {}, rows.map(row => el("tr", {}, cells(row)))));
}
