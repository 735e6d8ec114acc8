/** Provides interface text in the reader's language. It comes from pipelines/text/languages, one file per language. */

const LANGUAGES = ["de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "zh"];
/** The current language (BCP 47). */
export let language = "en";
const texts = {};
/** @type {Intl.PluralRules} */
let rules;

/** Use the first supported language of `wanted` (BCP 47), else English, and load a part of its text. */
export function speak(part, ...wanted) {
  const known = wanted.map(tag => tag.toLowerCase().split(/[-_]/)[0]);
  language = known.find(tag => LANGUAGES.includes(tag)) ?? "en";
  rules = new Intl.PluralRules(language);
  return learn(part);
}

/** Load the text of a part: "page" for all, or "launcher". Rejects if the service can't be reached. */
export async function learn(part) {
  const reply = await fetch(new URL(`../texts/${part}/${language}.json`, import.meta.url), {credentials: "omit"});
  Object.assign(texts, await reply.json());
}

/** Return the text `name` with `values` for its placeholders; `n` selects its plural form. */
export function say(name, values = {}) {
  return parts(name, values).join("");
}

/** Return the parts of a text; the values are separate parts, and may be nodes. */
export function parts(name, values) {
  const text = texts[name];
  const form = typeof text === "string" ? text : (text[rules.select(values.n)] ?? text.other);
  return form.split(/\{(\w+)\}/).map((part, i) => (i % 2 ? shown(values[part]) : part));
}

const SPANS = Object.entries({day: 86_400, hour: 3_600, minute: 60});

/** Return how long ago a time was, in words: "3 hours ago". */
export function ago(time) {
  const seconds = (Date.now() - Date.parse(time)) / 1000;
  const [unit, span] = SPANS.find(([, span]) => seconds >= span) ?? SPANS.at(-1);
  const words = new Intl.RelativeTimeFormat(language, {numeric: "auto"});
  return words.format(-Math.max(0, Math.floor(seconds / span)), /** @type {Intl.RelativeTimeFormatUnit} */ (unit));
}

function shown(value) {
  return typeof value === "number" ? value.toLocaleString(language) : value;
}
