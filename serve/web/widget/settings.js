/** Parses the attributes of the script tag, and reports mistakes instead of guessing. */

import {say, speak} from "../chat/texts.js";

const PUBLISHABLE = /^pk_[\w-]+$/;
const MODES = ["launcher", "search", "inline"];
const POSITIONS = ["bottom-right", "bottom-left"];
const SCHEMES = ["auto", "light", "dark"];
const NAMES = [
  "accent", "collection", "colorScheme", "hotkey", "key", "label", "lang", "language", "mode", "placeholder",
  "position", "selection", "target", "title", "version",
];

/**
 * Return the settings of a tag. `refusal` is why its key can't be used, "" if it can; a refused key is dropped.
 *
 * `base` is the service's URL, `told` maps attribute names, without data-, to their values.
 */
export async function readSettings(base, told) {
  const unknown = Object.keys(told).filter(name => !NAMES.includes(name));
  if (unknown.length) console.info(`Raydex: unknown attributes: ${unknown.map(attributeOf).join(", ")}`);
  await speak("launcher", told.lang ?? "", told.language ?? "", document.documentElement.lang, ...navigator.languages);
  const key = (told.key ?? "").trim();
  const refusal = !key || PUBLISHABLE.test(key) ? "" : await (await import("./refusal.js")).explainRefusal(key);
  return {
    base,
    refusal,
    key: refusal ? "" : key,
    collection: told.collection ?? "",
    version: told.version ?? "",
    language: told.language ?? "",
    modes: readModes(told),
    target: valid("target", told, isSelector, "a CSS selector"),
    title: told.title ?? "",
    label: told.label || say("ask"),
    placeholder: told.placeholder || say("example"),
    accent: valid("accent", told, value => CSS.supports("color", value), "a CSS colour"),
    position: among("position", told, POSITIONS),
    scheme: among("colorScheme", told, SCHEMES),
    hotkey: told.hotkey !== "off",
    selection: told.selection !== "off",
  };
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

function valid(name, told, isValid, what) {
  if (!told[name] || isValid(told[name])) return told[name] ?? "";
  warn(`${attributeOf(name)}="${told[name]}" is not ${what}`);
  return "";
}

function isSelector(text) {
  try {
    document.querySelector(text);
    return true;
  } catch {
    return false;
  }
}

function attributeOf(name) {
  return `data-${name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)}`;
}

function warn(text) {
  console.warn(`Raydex: ${text}`);
}
