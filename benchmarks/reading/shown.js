/* Returns the visible content of the open page's main part: its lines, code, tables, superscripts, links.
 *
 * The docstring of reading_html.py has the rules. They know no site, no generator and nothing about Raydex.
 */
() => {
  const SIDE = "nav, aside, [role=navigation], [role=complementary], [role=search], [role=banner], [role=contentinfo]";
  const WIDGETS = "button, input, select, textarea, option, [role=button], [role=menu], [role=menubar], [role=toolbar], "
    + "[role=combobox], [role=dialog], [role=tooltip], [role=tree], [role=search], [role=navigation], [role=banner], "
    + "[role=contentinfo], nav, search, dialog";
  const UNSEEN = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD", "META", "LINK", "OBJECT", "EMBED", "IFRAME",
    "AUDIO", "VIDEO", "CANVAS", "MAP"]);
  const PAGER = /^\W*(prev(ious)?|next|up|home|top|contents|index|back)\b/i;
  const TOOL = /^\W*(source( code)?|src|view (the )?(page )?source|edit( (this|on|page)\b.*)?|copy|permalink|link|anchor|improve this.*|suggest .*|report (a|an) .*|open an issue.*|run|try it.*|back to top|top)\W*$/i;
  const CONTENTS = /^\W*((table of )?contents|on this page|in this (article|section|chapter)|toc|page contents|chapter contents)\W*$/i;
  const words = text => (text.match(/[\p{L}\p{N}_]+/gu) || []).length;
  const squeeze = text => (text || "").replace(/\s+/g, " ").trim();
  const letters = text => (text || "").toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  const box = element => element.getBoundingClientRect();

  for (const details of document.querySelectorAll("details")) details.open = true;

  // Content that one click opens counts as visible: tab panels and panels of expanding buttons.
  const opened = new Set(), titled = new Map();
  for (const panel of document.querySelectorAll("[role=tabpanel]")) {
    opened.add(panel);
    const name = document.getElementById(panel.getAttribute("aria-labelledby") || "");
    if (name) titled.set(panel, name.textContent);
  }
  for (const opener of document.querySelectorAll("[aria-expanded][aria-controls], [role=tab][aria-controls]")) {
    const panel = document.getElementById(opener.getAttribute("aria-controls"));
    if (!panel || panel.closest(SIDE)) continue;
    opened.add(panel);
    if (opener.getAttribute("role") === "tab" && !titled.has(panel)) titled.set(panel, opener.textContent);
  }
  for (const label of document.querySelectorAll("label[for]")) {
    const input = document.getElementById(label.htmlFor);
    if (input && input.type === "radio" && label.nextElementSibling) opened.add(label.nextElementSibling);
  }
  const expander = element => element.matches("button[aria-expanded], [role=button][aria-expanded]")
    && words(element.innerText || "") > 0 && !element.closest(SIDE);

  const hidden = element => {
    if (opened.has(element)) return false;
    const style = getComputedStyle(element);
    if (style.display === "none" || style.opacity === "0" || style.fontSize === "0px") return true;
    if (element.getAttribute("aria-hidden") === "true" || element.hidden) return true;
    if (style.position === "absolute" || style.position === "fixed") {
      const place = box(element);
      if (/rect\((0|1)(px)?,? (0|1)(px)?,? (0|1)(px)?,? (0|1)(px)?\)/.test(style.clip) || /inset\((50|100)%/.test(style.clipPath)) return true;
      if ((place.width <= 1 || place.height <= 1) && style.overflow === "hidden") return true;
      if (place.right + scrollX < 0 || place.bottom + scrollY < 0) return true;
    }
    return false;
  };

  // ---------------------------------------------------------------- the main part
  const known = new Map();
  const text = e => { if (!known.has(e)) known.set(e, squeeze(e.innerText || "")); return known.get(e); };
  const linked = element => [...element.querySelectorAll("a[href]")].reduce((sum, a) => sum + text(a).length, 0);
  const inSide = element => element.closest(SIDE) || (element.closest("footer") && !element.closest("main, article"));
  const findMain = () => {
    const body = document.body;
    if (!body) return [null, "no body"];
    for (const selector of ["main, [role=main]", "article"]) {
      const found = [...document.querySelectorAll(selector)].filter(e => !hidden(e) && !e.parentElement.closest(selector));
      if (found.length > 1 && selector === "article") continue;
      found.sort((a, b) => text(b).length - text(a).length);
      if (found.length && words(text(found[0])) > 5) return [found[0], selector];
    }
    const shown = [...document.querySelectorAll("h1, h2, h3, [role=heading]")]
      .filter(h => !inSide(h) && words(text(h)) && box(h).width > 1);
    const least = Math.min(...shown.map(h => +(h.tagName[1] || 2)));
    const heads = shown.filter(h => +(h.tagName[1] || 2) === least);
    if (!heads.length) return [body, "body"];
    const held = element => heads.filter(h => element.contains(h)).length;
    let here = body, at = box(heads.length > 1 ? heads[heads.length > 1 && text(heads[0]).length < 3 ? 1 : 0] : heads[0]);
    for (;;) {
      const parts = [...here.children].filter(e => words(text(e)) && !e.matches(SIDE + ", footer") && !hidden(e));
      const inner = parts.filter(held).sort((a, b) => text(b).length - text(a).length)[0];
      if (!inner || heads.includes(inner) || inner.matches("table, tbody, tr, p") && inner.matches("p")) break;
      const place = box(inner);
      const beside = e => { const r = box(e); return (r.right <= place.left + 20 || r.left >= place.right - 20 || r.right <= at.left + 5) && r.width > 5; };
      const lost = parts.filter(e => e !== inner && !beside(e))
        .reduce((sum, e) => sum + Math.max(0, text(e).length - linked(e)), 0);
      const loose = [...here.childNodes].filter(n => n.nodeType === 3).reduce((sum, n) => sum + squeeze(n.data).length, 0);
      if (lost + loose > 0.1 * (text(inner).length - linked(inner)) || (lost + loose > 200 && lost + loose > 0.05 * text(inner).length)) break;
      here = inner;
    }
    return [here, "h" + least];
  };
  const [main, how] = findMain();
  if (!main) return {how, lines: [], tables: [], sups: [], links: []};

  // ---------------------------------------------------------------- layout inside it
  const doomed = new Set();
  const mainBox = box(main);
  const textOf = text;
  const holder = (element, share) => {  // the largest block around a pager link with little besides links
    let found = null;
    for (let e = element; e && e !== main; e = e.parentElement) {
      if (e.querySelector("h1, h2, h3, pre, img[alt]:not([alt=''])") && e.querySelector("h1")) break;
      const whole = textOf(e).length;
      if (whole && (whole > 400 || linked(e) < share * whole)) break;
      found = e;
    }
    return found || element;
  };
  for (const e of main.querySelectorAll(SIDE + ", footer")) {
    const place = box(e);
    const column = place.left < mainBox.left + mainBox.width * 0.5 && place.width > mainBox.width * 0.4;
    const note = e.matches("aside") && !e.matches("[role=complementary], [role=navigation]") && column;
    const inner = e.matches("aside") && e.closest("section, article, [role=main], main") && !(place.left > mainBox.left + mainBox.width * 0.6 && linked(e) > 0.5 * textOf(e).length);
    if (!(note || inner) && !e.closest("blockquote, figure")) doomed.add(e);
  }
  const isInline = n => n.nodeType === 3 || (n.nodeType === 1 && !["BR", "PRE"].includes(n.tagName) && /^inline/.test(getComputedStyle(n).display));
  const run = node => {  // the text nodes and inline elements on both sides of a node, in one line or paragraph
    const found = [node];
    for (let n = node.previousSibling; n && (n.nodeType === 8 || isInline(n)); n = n.previousSibling) found.push(n);
    for (let n = node.nextSibling; n && (n.nodeType === 8 || isInline(n)); n = n.nextSibling) found.push(n);
    return found;
  };
  const linksOf = n => n.nodeType !== 1 ? [] : n.tagName === "A" ? [n] : [...n.querySelectorAll("a")];
  const isTool = a => {  // in a heading, at the right, in brackets, or on a line with only other tools
    if (a.closest("h1, h2, h3, h4, h5, h6, dt, summary") || /^\W*[[(]/.test(a.textContent)) return true;
    for (let e = a; e && e !== main; e = e.parentElement) {
      if (getComputedStyle(e).float === "right") return true;
      if (isInline(e) && e.parentElement && isInline(e.parentElement)) continue;
      const line = isInline(e) ? run(e) : [e];
      const others = line.flatMap(linksOf).filter(o => TOOL.test(textOf(o))).reduce((sum, o) => sum + words(textOf(o)), 0);
      const all = line.reduce((sum, n) => sum + (n.nodeType === 3 ? words(n.data) : n.nodeType === 1 ? words(textOf(n)) : 0), 0);
      return others === all || /\[\s*$/.test((a.previousSibling || {}).data || "");
    }
    return false;
  };
  for (const e of main.querySelectorAll("header")) if (!e.querySelector("h1, h2, h3, h4, h5, h6")) doomed.add(e);
  for (const a of main.querySelectorAll("a")) {
    const said = textOf(a), href = a.getAttribute("href") || "";
    const rel = (a.rel || "").split(" "), key = a.accessKey;
    if (rel.includes("prev") || rel.includes("next") || (/^[pnu]$/.test(key) && PAGER.test(said))) doomed.add(holder(a, 0.3));
    else if (href.startsWith("#") && !words(said) && !a.querySelector("img")) doomed.add(a);
    else if (TOOL.test(said) && isTool(a)) doomed.add(a);
    else if (href.startsWith("#") && href.length > 1) {
      const head = a.closest("h1, h2, h3, h4, h5, h6, dt");
      const id = decodeURIComponent(href.slice(1));
      if (head && (head.id === id || (head.parentElement && head.parentElement.id === id)) && letters(said) && letters(textOf(head)) !== letters(said) && /^\W*(link|permalink|anchor)\W*/i.test(said)) doomed.add(a);
    }
  }
  const called = a => textOf(a) || (a.querySelector("img") || {}).alt || a.title;
  const samePage = a => { const h = a.getAttribute("href") || ""; return h.startsWith("#") || (a.hash && a.href.split("#")[0] === location.href.split("#")[0]); };
  const optional = new Set();
  for (const list of main.querySelectorAll("ul, ol, dl, div, table, p")) {
    if (list.matches("div") && list.querySelector("h1, pre")) continue;
    const links = [...list.querySelectorAll("a[href]")].filter(a => words(a.textContent));
    if (links.length < 2 || links.reduce((sum, a) => sum + a.textContent.length, 0) < 0.3 * squeeze(list.textContent).length) continue;
    if (links.length < 2 || (links.length < 3 && !(list.matches("ul, ol, dl") && links.every(samePage)))) continue;
    const whole = letters(textOf(list)).replace(/\d/g, "").length, said = links.reduce((sum, a) => sum + letters(textOf(a)).replace(/\d/g, "").length, 0);
    if (!whole || said < 0.93 * whole) continue;
    if (links.filter(samePage).length >= 0.9 * links.length && !list.matches("table")) {
      let label = null;
      for (let e = list; e && e !== main && !label; e = e.parentElement) {
        const before = e.previousElementSibling || (e.parentElement.firstElementChild !== e && e.parentElement.firstElementChild);
        if (before && words(textOf(before)) && words(textOf(before)) < 6 && CONTENTS.test(textOf(before))) label = before;
        else if (before && words(textOf(before))) break;
      }
      const ahead = links.filter(a => { const to = document.getElementById(decodeURIComponent(a.hash.slice(1))) || document.getElementsByName(decodeURIComponent(a.hash.slice(1)))[0]; return to && !list.contains(to) && list.compareDocumentPosition(to) & 4; });
      if (label) doomed.add(list).add(label);
      else if (links.length > 3 && ahead.length > 0.9 * links.length) doomed.add(list);
      else optional.add(list);
    } else if (PAGER.test(textOf(links[0])) && links.length < 8 && whole < 200 && !list.matches("ul ul, ol ol")) doomed.add(list);
    else optional.add(list);
  }
  for (const list of main.querySelectorAll("ul, ol, dl, table")) {  // contents: each item starts with a link to a page, or into this page
    const items = [...list.querySelectorAll(list.matches("table") ? "tr" : list.matches("dl") ? "dt" : "li")].filter(e => words(textOf(e)));
    if (items.length < 4 || list.querySelector("pre, p + p")) continue;
    const led = items.filter(e => { const a = e.querySelector("a[href]"); return a && words(textOf(a)) && letters(textOf(e)).replace(/^\d+/, "").startsWith(letters(textOf(a)).replace(/^\d+/, "")); });
    const beside = words(textOf(list)) - led.reduce((sum, e) => sum + words(textOf(e.querySelector("a[href]"))), 0);
    if (led.length >= 0.9 * items.length && beside <= 12 * items.length) optional.add(list);
  }
  for (const line of main.querySelectorAll("div, p, table, center, td, ul, dl")) {  // a pager without markup
    const links = [...line.querySelectorAll("a[href]")];
    if (links.length > 1 && links.length < 8 && line.textContent.length < 3000 && textOf(line).length < 300 && links.filter(a => PAGER.test(called(a)) && called(a).length < 80).length >= 2) doomed.add(holder(links[0], 0.3).contains(line) ? holder(links[0], 0.3) : line);
  }
  const numbers = text => { const all = text.trim().split(/\s+/); return all.length > 1 && all.every((one, at) => /^\d+:?$/.test(one) && parseInt(one) === parseInt(all[0]) + at); };

  // ---------------------------------------------------------------- the walk
  const lines = [], tables = [], sups = [], links = [];
  let now = "", pre = 0, extra = 0, heading = 0, cells = null;
  const flush = () => {
    const parts = pre ? now.replace(/\n$/, "").split("\n") : [squeeze(now)];
    for (const part of parts) if (part.trim()) {
      lines.push({t: part, k: pre ? "code" : heading ? "heading" : cells ? "cell" : "text", o: extra > 0});
      if (cells) cells.push(part);
    }
    now = "";
  };
  const roman = n => { let out = ""; for (const [v, s] of [[1000, "m"], [900, "cm"], [500, "d"], [400, "cd"], [100, "c"], [90, "xc"], [50, "l"], [40, "xl"], [10, "x"], [9, "ix"], [5, "v"], [4, "iv"], [1, "i"]]) while (n >= v) { out += s; n -= v; } return out; };
  const marker = li => {
    const list = li.closest("ol, ul");
    if (!list || list.tagName !== "OL") return "";
    const style = getComputedStyle(li).listStyleType;
    const items = [...list.children].filter(e => e.tagName === "LI");
    let n = list.start || 1;
    for (const item of items) { if (item.hasAttribute("value")) n = item.value; if (item === li) break; n += list.reversed ? -1 : 1; }
    if (style === "decimal" || style === "decimal-leading-zero") return n + ". ";
    if (/alpha|latin/.test(style) && n < 27) return String.fromCharCode((/^upper/.test(style) ? 64 : 96) + n) + ". ";
    if (/roman/.test(style)) return (/^upper/.test(style) ? roman(n).toUpperCase() : roman(n)) + ". ";
    return "";
  };
  const named = e => squeeze(e.getAttribute("aria-label") || (e.tagName === "IMG" ? e.alt : (e.querySelector(":scope > title") || {}).textContent) || "");
  const picture = e => {
    const name = named(e), src = e.getAttribute("src") || "";
    if (!name || e.closest("[aria-hidden=true]") || name === src || /\.(png|svg|gif|jpe?g)$/i.test(name)) return;
    const near = letters(textOf(e.closest("figure, a, p, td, li, div") || main)).includes(letters(name));
    if (near) return;
    now += " " + name + " ";
  };
  const walk = node => {
    if (node.nodeType === 3) {
      if (getComputedStyle(node.parentElement).visibility !== "visible" && ![...opened].some(e => e.contains(node))) return;
      now += pre ? node.data : node.data.replace(/\s+/g, " ");
      return;
    }
    if (node.nodeType !== 1 || UNSEEN.has(node.tagName) || doomed.has(node)) return;
    const tag = node.tagName.toUpperCase();
    if (tag === "BR") { if (pre) now += "\n"; else flush(); return; }
    if (tag === "WBR") return;
    if (node.matches(WIDGETS) && !(expander(node) || (node.closest("h1, h2, h3, h4, h5, h6") && tag === "BUTTON")) && !(tag === "NAV" && !doomed.has(node))) return;
    if (node.getAttribute("role") === "tab" || hidden(node)) return;
    const style = getComputedStyle(node);
    if (tag === "IMG" || tag === "SVG" || node.getAttribute("role") === "img") { picture(node); return; }
    if (tag === "MATH") {
      const tex = node.querySelector("annotation[encoding='application/x-tex']");
      now += " " + (tex ? tex.textContent : node.getAttribute("alttext") || node.textContent) + " "; return;
    }
    let block = !/^(inline|contents|none|ruby)/.test(style.display) || opened.has(node) || ["TD", "TH", "TR", "LI", "DD", "DT", "PRE"].includes(tag);
    const isCode = ["PRE", "LISTING", "XMP"].includes(tag) || (block && !pre && /^pre/.test(style.whiteSpace) && /mono|courier|consol/i.test(style.fontFamily) && tag !== "BODY");
    if (isCode && numbers(node.textContent)) return;
    if (pre && style.userSelect === "none" && /^[\s\d:]*$/.test(node.textContent)) return;
    const isHead = /^H[1-6]$/.test(tag) || node.getAttribute("role") === "heading";
    const outer = {cells};
    if (block) flush();
    if (titled.has(node)) { now += squeeze(titled.get(node)); flush(); }
    if (optional.has(node)) extra++;
    if (isHead) heading++;
    if (isCode) pre++;
    let rows = null;
    if (tag === "TABLE" && !["presentation", "none"].includes(node.getAttribute("role")) && !node.querySelector("table, pre, dl, h1, h2, h3") && node.rows.length > 1 && Math.max(...[...node.rows].map(r => r.cells.length)) > 1) { rows = []; tables.push(rows); node.__rows = rows; }
    if (tag === "TR") { const t = node.closest("table"); if (t && t.__rows) { t.__row = []; t.__rows.push(t.__row); } }
    if (tag === "TD" || tag === "TH") cells = [];
    if (tag === "LI") now += marker(node);
    const start = now.length;
    if (tag === "SUP") {
      const before = (now.match(/[\p{L}\p{N}_]+[)\]]?\s*$/u) || [""])[0], said = squeeze(node.innerText || "");
      if (before && /^[-−+]?[\p{L}\p{N}]+$/u.test(said) && !node.querySelector("a") && !node.closest("a") && !/^(st|nd|rd|th|TM|®|™)$/i.test(said)) { sups.push([before.trim(), said]); now += "^"; }
      else now += " ";
    }
    for (const child of (node.shadowRoot ? node.shadowRoot : node).childNodes) walk(child);
    if (tag === "SUP") now += "\u200a";
    if (tag === "A" && node.href && /^https?:/.test(node.href) && !samePage(node) && !pre && !heading && !(node.closest("dt, summary, h4") && /mono|courier|consol/i.test(style.fontFamily))) {
      const said = squeeze(now.slice(Math.min(start, now.length))) || textOf(node);
      if (words(said)) links.push([said, node.href, extra > 0]);
    }
    if (block) flush();
    if (tag === "TD" || tag === "TH") {
      const t = node.closest("table");
      if (t && t.__row) t.__row.push(cells.join(" "));
      if (outer.cells) outer.cells.push(...cells);
      cells = outer.cells;
    }
    if (isCode) pre--;
    if (isHead) heading--;
    if (optional.has(node)) extra--;
  };
  walk(main);
  flush();
  return {how: how + " -> " + main.tagName + (main.id ? "#" + main.id : "") + (main.className && main.className.split ? "." + main.className.split(" ")[0] : ""),
    outside: [...document.querySelectorAll("h1")].filter(h => !main.contains(h) && !hidden(h)).map(text), lines, tables: tables.filter(t => t.length > 1), sups, links};
}
