// Shows the sections of a view.
const REASONS = { wrong: "wrong", incomplete: "incomplete", outdated: "outdated", not_asked: "not what was asked" };
const CHANNELS = { page: "chat page", widget: "widget", slack: "Slack", mcp: "MCP", api: "HTTP API", openai: "OpenAI API", "": "not recorded" };
const AGENTS = { verified: "a person (verified answer)", extractive: "quotations (no model)", smalltalk: "small talk", "": "none: it failed" };

/** Show a view. */
function show(view) {
  const days = Object.keys(view.days), weekly = days.length > 1 && (Date.parse(days[1]) - Date.parse(days[0])) > 864e5;
  put("notes", view.notes.map(note => el("li", {}, note)));
  cards(view, days);
  gaps(view);
  byDay(view, days, weekly);
  grow("top", view.top, asked, "No question was asked in this time.");
  pages(view.pages);
  opened(view.opened);
  ratings(view);
  spent(view, days, weekly);
}

function cards({ totals, pages, smalltalk }, days) {
  const card = (title, big, under, kind = "") => el("div", { class: "card" }, el("span", {}, title), el("b", { class: kind }, big), el("span", {}, under));
  put("cards",
    card("Questions", number(totals.questions), smalltalk ? `${number(smalltalk)} of them small talk` : days.length ? `${days[0]} to ${days.at(-1)}` : "in this time"),
    card("Not known", number(totals.unknown), `${percent(totals.unknown, totals.questions)} of the questions`, totals.unknown ? "down" : ""),
    card("Low confidence", number(totals.low), `${percent(totals.low, totals.questions)} of the questions`),
    card("Rated", `${number(totals.up)} ↑ ${number(totals.down)} ↓`, `${percent(totals.up + totals.down, totals.questions)} were rated`),
    card("Seconds to answer", seconds(totals.seconds.p50), `95% within ${seconds(totals.seconds.p95)}`),
    pages.indexed ? card("Pages cited", number(pages.cited), `of ${number(pages.indexed)} that are indexed`) : card("Cost", dollars(totals.cost), "of all answers"));
}

const ADVICE = {
  missing: near => near ? "The nearest section: " : "Nothing that is indexed is near.",
  thin: () => "The answer stands on little. Does this section say it? ",
  disliked: () => "Readers were not helped. They were sent to: ",
};

function gaps(view) {
  const heaviest = Math.max(...view.gaps.map(gap => gap.weight), 1);
  $("gaps-note").textContent = "Questions that got no answer, one of low confidence, or a thumbs down; the heaviest first. "
    + "An “I do not know” weighs 1, an answer that a reader calls incomplete or outdated 2, one rated down for other reasons 1, low confidence 0.4.";
  grow("gaps", view.gaps, gap => lacking(gap, heaviest), "Nothing: every question of this time was answered well.");
  $("others").hidden = !view.others.length;
  put("others", el("summary", {}, `${plural(view.others.length, "question")} probably about other things`), el("div", {}, view.others.map(gap => lacking(gap, heaviest))));
}

function lacking(gap, heaviest) {
  const weight = el("span", { class: "count down", title: "weight" }, gap.weight.toLocaleString("en"), bar(gap.weight / heaviest));
  const below = [ADVICE[gap.kind](gap.nearest), gap.nearest && section(gap.nearest)];
  return question(gap, weight, outcome(gap), below.flat(), () => [
    texts("Also asked as", gap.examples), texts("Readers said", gap.comments),
    texts("Reasons", Object.entries(gap.reasons).map(([reason, count]) => `${REASONS[reason] || reason}: ${number(count)}`)),
    el("p", { class: "small" }, `asked ${plural(gap.count, "time")} in ${plural(gap.wordings, "wording")}, last on ${gap.last}`, gap.collection && `, collection ${gap.collection}`),
  ].flat());
}

function asked(item) {
  const below = item.sections.length ? ["answered from ", section(item.sections[0])] : null;
  return question(item, el("span", { class: "count" }, `${number(item.count)}×`), outcome(item), below && below.flat(), () => [
    texts("Also asked as", item.examples),
    item.sections.length > 1 ? [el("h3", {}, "Answered from"), el("ul", {}, item.sections.map(place => el("li", {}, section(place))))] : [],
    el("p", { class: "small" }, `${plural(item.wordings, "wording")}, last asked on ${item.last}`, item.collection && `, collection ${item.collection}`),
  ].flat());
}

function byDay(view, days, weekly) {
  const of = name => days.map(day => view.days[day][name]), bad = days.map((_, n) => of("unknown")[n] + of("failed")[n]);
  const well = days.map((day, n) => view.days[day].questions - of("low")[n] - bad[n]);
  $("days-title").textContent = weekly ? "Questions by week" : "Questions by day";
  $("days-note").textContent = weekly ? "Weeks begin on Monday; times are UTC." : "Days in UTC.";
  const tip = n => `${days[n]}: ${plural(view.days[days[n]].questions, "question")}, ${of("unknown")[n]} not known, ${of("low")[n]} of low confidence, ${of("failed")[n]} failed`;
  put("days", days.length ? [legend(["", "answered"], ["low", "low confidence"], ["unknown", "not known or failed"]),
    bars(days, [["well", well], ["low", of("low")], ["unknown", bad]], { label: `questions from ${days[0]} to ${days.at(-1)}`, show: number, whole: true }, tip)] : el("p", { class: "small" }, "No question was asked in this time."));
}

function pages(found) {
  $("pages-section").hidden = !found.indexed && !found.most.length;
  $("pages-note").textContent = `${number(found.cited)} of ${plural(found.indexed, "page")} of the live index were cited in an answer. A page that searches often find and no answer cites may not say clearly what its title promises.`;
  const most = Math.max(...found.most.map(page => page.cited), 1);
  const cited = page => el("li", {}, el("span", {}, named(page), !page.indexed && tag("", "no longer in the index"), bar(page.cited / most)), el("span", { class: "num" }, `${number(page.cited)}×`));
  const never = page => el("li", {}, el("span", {}, named(page)), el("span", { class: "small num" }, page.found ? `found ${number(page.found)}×` : "never found"));
  list("cited", found.most, cited, "No page was cited in this time.");
  list("never", found.never, never, found.indexed ? "Every page was cited." : "There is no live index.");
  if (found.never_count > found.never.length) $("never").append(el("p", { class: "small" }, `The list has ${number(found.never.length)} of ${number(found.never_count)} pages.`));
  $("areas").hidden = found.areas.length < 2;
  put("areas", el("summary", {}, "By folder of the site"), el("div", { class: "scroll" }, table("Folders", found.areas, [["folder", area => area.name], ["pages", area => number(area.pages)], ["cited", area => `${number(area.cited_pages)} (${percent(area.cited_pages, area.pages)})`], ["answers that cite them", area => number(area.cited)]])));
}

/** Show which pages and sections readers opened from answers and searches. */
function opened({ clicks, pages }) {
  const times = one => el("span", { class: "num" }, `${number(one.clicks)}×`);
  const page = one => el("li", {}, el("span", {}, link(one.url, one.url), el("ul", {}, one.sections.map(place => el("li", {}, link(place.source, place.source.split("#")[1] || "the page"), " ", times(place))))), times(one));
  $("opened").hidden = !pages.length;
  put("opened", el("summary", {}, `Opened by readers: ${plural(clicks, "source")}`), el("ol", { class: "uses" }, pages.map(page)));
}

/** Return a page's name: its title, and the end of its URL because several pages may have the same title. */
function named(page) { return [link(page.url, page.title), el("span", { class: "end" }, page.url.split("/").slice(-2).join("/"))]; }

function list(id, items, make, empty, shown = FIRST) {
  const more = items.length > shown && el("button", { type: "button", class: "more", onclick: () => list(id, items, make, empty, shown + MORE) }, `show ${Math.min(MORE, items.length - shown)} more of ${number(items.length)}`);
  put(id, items.length ? el("ol", { class: "uses" }, items.slice(0, shown).map(make)) : el("p", { class: "small" }, empty), more);
}

function ratings(view) {
  const { up, down, questions } = view.totals, reasons = Object.entries(view.reasons);
  $("rated-note").textContent = up + down ? `${plural(up, "answer")} rated up, ${number(down)} down, ${number(questions - up - down)} not rated.` : "No answer was rated in this time.";
  put("reasons", reasons.length ? table("Reasons", reasons, [["reason", ([reason]) => REASONS[reason] || reason], ["named", ([, count]) => number(count)]]) : null);
  grow("rated", view.rated, item => question(item, el("span", { class: "count down" }, "↓"),
    [item.reasons.map(reason => tag("bad", REASONS[reason] || reason)), !item.known && tag("", "not known")].flat(), item.comments[0] ? `“${item.comments[0]}”` : null,
    () => [texts("Readers said", item.comments), item.answer && [el("h3", {}, "The answer"), el("div", { class: "said" }, item.answer)], item.sources.length ? [el("h3", {}, "It cites"), el("ul", {}, item.sources.map(source => el("li", {}, link(source))))] : [], el("p", { class: "small" }, `${item.day}, by ${AGENTS[item.agent] || item.agent}`, item.collection && `, collection ${item.collection}`)].flat(2)), down ? "" : "No answer was rated down.");
}

function spent(view, days, weekly) {
  const { totals } = view, of = value => days.map(day => value(view.days[day]));
  $("spent-note").textContent = `${totals.prompt_tokens ? `${number(totals.prompt_tokens)} tokens read and ${number(totals.completion_tokens)} written by language models, for ${dollars(totals.cost)}.` : "No language model was asked."} First word: ${seconds(totals.first_word.p50)} (median), ${seconds(totals.first_word.p95)} (95%).`;
  const times = of(day => day.seconds.p95).some(value => value !== null), each = weekly ? "week" : "day";
  put("seconds", times && [el("h3", {}, "Seconds to the whole answer"), legend(["line", "median"], ["pale", "95% within"]), lines(days, [["pale", of(day => day.seconds.p95)], ["", of(day => day.seconds.p50)]], { label: `seconds to an answer by ${each}`, show: seconds, height: 150 })]);
  put("cost", totals.cost > 0 && [el("h3", {}, `Cost by ${each}`), bars(days, [["well", of(day => day.cost)]], { label: `cost by ${each}`, show: dollars, height: 150 }, n => `${days[n]}: ${dollars(view.days[days[n]].cost)}`)]);
  const columns = (title, names = {}) => [[title, ([name]) => names[name] || name || "not named"], ["questions", ([, f]) => number(f.questions)], ["not known", ([, f]) => number(f.unknown)], ["low", ([, f]) => number(f.low)], ["rated ↑", ([, f]) => number(f.up)], ["rated ↓", ([, f]) => number(f.down)], ["failed", ([, f]) => number(f.failed)],
    ["median", ([, f]) => seconds(f.seconds.p50)], ["95%", ([, f]) => seconds(f.seconds.p95)], ["first word", ([, f]) => seconds(f.first_word.p50)], ["tokens", ([, f]) => number(f.prompt_tokens + f.completion_tokens)], ["cost", ([, f]) => dollars(f.cost)]];
  const tables = [table("By what wrote the answer", Object.entries(view.agents), columns("agent", AGENTS)), table("By channel", Object.entries(view.channels), columns("channel", CHANNELS))];
  if (Object.keys(view.collections).length > 1) tables.push(table("By collection", Object.entries(view.collections), columns("collection")));
  put("spent", totals.questions > 0 && el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "tables of time and cost" }, tables));
}
