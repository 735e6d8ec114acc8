/**
 * Puts the assistant on a page: `<script async src="https://ask.example.com/widget.js" data-key="pk_…"></script>`.
 * A tag asks by data- attributes or, where a generator can write none, behind the # of its address: `widget.js#key=pk_…`.
 */
(() => {
  "use strict";
  // A script in a shadow root is told no tag.
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
