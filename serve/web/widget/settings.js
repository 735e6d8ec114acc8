/** What the attributes of the script tag mean. Says what is wrong with them instead of guessing. */

const MODES = ["launcher", "search", "inline"];
const POSITIONS = ["bottom-right", "bottom-left"];
const SCHEMES = ["auto", "light", "dark"];
const NAMES = [
  "accent", "collection", "colorScheme", "examples", "hotkey", "key", "label", "language", "mode", "placeholder",
  "position", "selection", "target", "title", "version",
];

/**
 * Return the settings of a tag. `refusal` is why its key can't be used, "" if it can; a refused key is not kept.
 *
 * `base` is the service's address, `told` maps the names of attributes without data- to their values.
 */
export function readSettings(base, told) {
  const unknown = Object.keys(told).filter(name => !NAMES.includes(name));
  if (unknown.length) warn(`unknown attributes: ${unknown.map(attributeOf).join(", ")}`);
  const refusal = refuse((told.key ?? "").trim());
  if (refusal) console.error(`Raydex: ${refusal}`);
  return {
    base,
    refusal,
    key: refusal ? "" : (told.key ?? "").trim(),
    collection: told.collection ?? "",
    version: told.version ?? "",
    language: told.language ?? "",
    modes: readModes(told),
    target: told.target ?? "",
    title: told.title || "Ask the documentation",
    label: told.label || "Ask",
    placeholder: told.placeholder || "How do I …?",
    accent: told.accent ?? "",
    position: among("position", told, POSITIONS),
    scheme: among("colorScheme", told, SCHEMES),
    hotkey: told.hotkey !== "off",
    selection: told.selection !== "off",
  };
}

/** Return why a key is not to be used in a page, "" for a publishable one or none. */
function refuse(key) {
  const create = `Create one with \`raydex keys create NAME --publishable --origin ${location.origin}\``;
  if (!key || /^pk_[\w-]+$/.test(key)) return "";
  if (/^rdx_/i.test(key))
    return `data-key is a secret key (rdx_…): whoever reads this page's source could use it. It was not sent. A page needs a publishable key (pk_…). ${create}, and revoke the secret one.`;
  return `data-key is not a publishable key: those begin with pk_. It was not sent. ${create}.`;
}

function readModes(told) {
  const asked = (told.mode || (told.target ? "inline" : "launcher search")).split(/[\s,]+/).filter(Boolean);
  const known = asked.filter(mode => MODES.includes(mode));
  if (known.length < asked.length) warn(`data-mode="${told.mode}": it may name ${MODES.join(", ")}`);
  return new Set(known);
}

function among(name, told, choices) {
  if (!told[name] || choices.includes(told[name])) return told[name] || choices[0];
  warn(`${attributeOf(name)}="${told[name]}": it may be ${choices.join(", ")}`);
  return choices[0];
}

function attributeOf(name) {
  return `data-${name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}`;
}

function warn(text) {
  console.warn(`Raydex: ${text}`);
}
