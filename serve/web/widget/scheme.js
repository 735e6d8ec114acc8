/** Detects whether the page around the widget is light or dark, and when that changes. */

/** Attributes in which themes store their choice: Furo, PyData, Material, Docusaurus, Bootstrap, Starlight and others. */
const ATTRIBUTES = ["data-theme", "data-md-color-scheme", "data-bs-theme", "data-color-mode", "data-color-scheme"];
const DARK = /(^|[-_ ])(dark|slate|night|black|navy|coal|ayu)($|[-_ ])/i;
const LIGHT = /(^|[-_ ])(light|default|white|rust)($|[-_ ])/i;
/** Longer than a theme's transition from one background to the other. */
const FADE_MS = 500;

/** Return "light" or "dark": from the page's theme, else from its background, else from the reader's preference. */
export function schemeOfPage() {
  const roots = [document.documentElement, document.body];
  const said = roots.flatMap(root => ATTRIBUTES.map(name => root.getAttribute(name) ?? ""));
  const classes = roots.flatMap(root => [...root.classList]).filter(name => DARK.test(name) || /^(theme-)?light(-mode)?$/i.test(name));
  for (const value of [...said, ...classes]) {
    if (DARK.test(value)) return "dark";
    if (LIGHT.test(value)) return "light";
  }
  const brightness = [document.body, document.documentElement].map(brightnessOf).find(value => value !== null);
  const dark = brightness === undefined ? matchMedia("(prefers-color-scheme: dark)").matches : brightness < 0.4;
  return dark ? "dark" : "light";
}

/** Call `changed` whenever the page's scheme may have changed. */
export function watchScheme(changed) {
  const soon = () => {
    changed();
    setTimeout(changed, FADE_MS);
  };
  const observer = new MutationObserver(soon);
  for (const root of [document.documentElement, document.body])
    observer.observe(root, {attributes: true, attributeFilter: ["class", "style", ...ATTRIBUTES]});
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", soon);
}

/** Return the brightness of an element's own background, from 0 to 1; null if it is transparent. */
function brightnessOf(element) {
  const parts = getComputedStyle(element).backgroundColor.match(/[\d.]+/g)?.map(Number) ?? [];
  const [red, green, blue, alpha = 1] = parts;
  return parts.length < 3 || alpha < 0.5 ? null : (0.299 * red + 0.587 * green + 0.114 * blue) / 255;
}
