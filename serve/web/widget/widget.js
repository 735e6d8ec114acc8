/**
 * Puts the assistant on a page: `<script async src="https://ask.example.com/widget.js" data-key="pk_…"></script>`.
 *
 * Reads its tag, then loads the rest without holding up the page. What a tag asks for stands in its data- attributes
 * or, where a generator can write none, behind the # of its address: `widget.js#key=pk_…&collection=docs`.
 */
(() => {
  "use strict";
  const tag = /** @type {HTMLScriptElement} */ (document.currentScript ?? document.querySelector('script[src*="/widget.js"]'));
  const address = new URL(tag.src);
  const told = {...Object.fromEntries(new URLSearchParams(address.hash.slice(1))), ...tag.dataset};
  const base = new URL(".", address.origin + address.pathname);
  import(new URL("web/widget/start.js", base).href)
    .then(({start}) => start(base, told, tag))
    .catch(error => console.error(`Raydex: the assistant can't be loaded from ${base}.`, error));
})();
