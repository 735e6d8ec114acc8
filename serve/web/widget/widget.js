/**
 * Puts the assistant on a page: `<script async src="https://ask.example.com/widget.js" data-key="pk_…"></script>`.
 * A tag is configured by data- attributes or, if a generator can't write them, after the # of its URL: `widget.js#key=pk_…`.
 */
(() => {
  "use strict";
  // currentScript is null for a script in a shadow root.
  const find = root => {
    let tag = root.querySelector('script[src*="/widget.js"]');
    for (const {shadowRoot} of root.querySelectorAll("*")) tag ??= shadowRoot && find(shadowRoot);
    return tag;
  };
  const tag = /** @type {HTMLScriptElement} */ (document.currentScript ?? find(document));
  if (!tag) return console.error("Raydex: a closed shadow root hides the tag.");
  const address = new URL(tag.src);
  const told = {...Object.fromEntries(new URLSearchParams(address.hash.slice(1))), ...tag.dataset};
  const base = new URL(".", address.origin + address.pathname);
  import(new URL("web/widget/start.js", base).href)
    .then(({start}) => start(base, told, tag))
    .catch(error => console.error(`Raydex: the assistant can't be loaded from ${base}.`, error));
})();
