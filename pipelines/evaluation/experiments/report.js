// Draws the report of an experiment from the data in the page.
"use strict";
const X = JSON.parse(document.getElementById("data").textContent);
const $ = id => /** @type {HTMLInputElement} */ (document.getElementById(id)), NS = "http://www.w3.org/2000/svg";
// Text of pages and questions only becomes text nodes; a URL becomes a link only if it is http or https.
function el(tag, attributes = {}, ...children) { return fill(document.createElement(tag), attributes, children); }
function svg(tag, attributes = {}, ...children) { return fill(document.createElementNS(NS, tag), attributes, children); }
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) if (name.startsWith("on")) node.addEventListener(name.slice(2), value); else if (value !== null && value !== false) node.setAttribute(name, value);
  node.append(...children.filter(child => child !== null && child !== undefined));
  return node;
}
function put(id, ...children) { $(id).replaceChildren(...children.filter(Boolean)); }
const link = url => /^https?:\/\//i.test(url) ? el("a", { href: url, rel: "noreferrer noopener", target: "_blank" }, shortUrl(url)) : document.createTextNode(url);
const prefix = (() => { const all = X.places.map(p => p[0]); if (!all.length) return ""; let p = all[0]; for (const s of all) while (p && !s.startsWith(p)) p = p.slice(0, p.lastIndexOf("/", p.length - 2) + 1); return p; })();
const shortUrl = url => url.startsWith(prefix) && url.length > prefix.length ? url.slice(prefix.length) : url;
const twoLines = (text, most) => { // breaks after a comma if there is one, else at a space
  if (text.length <= most) return [text];
  const head = text.slice(0, most + 1), at = Math.max(head.lastIndexOf(", ") + 1, 0) || Math.max(head.lastIndexOf(" "), 0) || most;
  return [text.slice(0, at).trimEnd(), cut(text.slice(at).trim(), most)];
};
const cut = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;
const f3 = v => v.toFixed(3), sign = v => (v >= 0 ? "+" : "−") + Math.abs(v).toFixed(3), ms = s => !s ? "0" : s >= 10 ? s.toFixed(1) + " s" : s >= 1 ? s.toFixed(2) + " s" : s >= 0.1 ? (s * 1000).toFixed(0) + " ms" : (s * 1000).toFixed(1) + " ms";
const measured = X.runs.filter(r => r.state === "done"), failed = X.runs.filter(r => r.state !== "done");
const metrics = [...new Set(measured.flatMap(r => Object.keys(r.values)))].filter(m => measured.some(r => r.scores[m]));
const state = { metric: metrics.includes(X.metric) ? X.metric : metrics[0], sort: "score", up: false, a: "", b: "", filter: "", shown: 40 };
const words = m => X.labels[m] || m.replace(/_/g, " ").replace("@", " @ ");
const scored = () => measured.filter(r => r.scores[state.metric]);
const ranked = () => scored().slice().sort((p, q) => q.scores[state.metric][0] - p.scores[state.metric][0] || +(q.name === X.baseline) - +(p.name === X.baseline));
const asked = X.dataset.questions === 1 ? "1 question" : `${X.dataset.questions} questions`;
const base = () => measured.find(r => r.name === X.baseline);
const unscored = r => Object.values(r.score_errors || {}).reduce((a, b) => a + b, 0);
const against = r => r.against && r.against[state.metric];
const tone = d => !d ? "var(--accent)" : d[1] > 0 ? "var(--up)" : d[2] < 0 ? "var(--down)" : "var(--mute)";
const toneClass = d => !d ? "" : d[1] > 0 ? "up" : d[2] < 0 ? "down" : "";
function ticks(low, high, most) {
  const rough = (high - low) / most || 1, power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 2.5, 5, 10].map(n => n * power).find(s => s >= rough);
  const found = []; for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + 1e-9; v += step) found.push(+v.toFixed(10)); return found;
}
const digits = values => Math.max(0, ...values.map(v => (String(+v.toFixed(6)).split(".")[1] || "").length));
function scale(low, high, from, to) { return v => from + (v - low) / ((high - low) || 1) * (to - from); }
function span(runs) { const all = runs.flatMap(r => r.scores[state.metric]); const low = Math.min(...all), high = Math.max(...all), pad = (high - low) * .04 || .05; return [low - pad, high + pad]; }
function tip(run, metric = state.metric) {
  const s = run.scores[metric], d = run.against && run.against[metric];
  return svg("title", {}, `${run.name}\n${words(metric)} ${f3(s[0])} [${f3(s[1])}, ${f3(s[2])}]` + (d ? `\nto the baseline ${sign(d[0])} [${sign(d[1])}, ${sign(d[2])}], p ${d[3]}` : "") + `\nmedian ${ms(run.timings.total.p50)}`);
}

function cards() {
  const best = ranked()[0], b = base(), d = best && against(best), s = best && best.scores[state.metric];
  const card = (title, big, under, cls = "") => el("div", { class: "card" }, el("span", {}, title), el("b", { class: cls }, big), el("span", {}, under));
  put("cards", best && card("Best", f3(s[0]), `${best.name}, 95% interval ${f3(s[1])} to ${f3(s[2])}`),
    b && b.scores[state.metric] && card("Baseline", f3(b.scores[state.metric][0]), b.name),
    d ? card("Best against baseline", sign(d[0]), (d[1] > 0 ? "significant" : "not significant") + `: 95% interval ${sign(d[1])} to ${sign(d[2])}, p ${d[3]}`, toneClass(d)) : null,
    card("Measured", `${measured.length} of ${X.runs.length}`, failed.length ? `${failed.length} failed: see all numbers` : `configurations, each on the same ${asked}`, failed.length ? "down" : ""));
}
function forest() {
  const runs = ranked(); if (!runs.length) return put("runs", el("p", { class: "small" }, "nothing was measured"));
  const labels = runs.map(r => twoLines(r.name, 48)), narrow = innerWidth < 760, right = 220, row = 24;
  const left = Math.min(340, 26 + 6.7 * Math.max(...labels.flat().map(l => l.length))), W = narrow ? left + right + 170 : 1136;
  const heights = labels.map(l => l.length > 1 ? 36 : row), tops = heights.map((_, i) => heights.slice(0, i).reduce((a, b) => a + b, 0) + 4);
  const H = tops.at(-1) + heights.at(-1) + 30, [low, high] = span(runs), x = scale(low, high, left, W - right);
  const marks = ticks(low, high, narrow ? 4 : 8), dec = digits(marks), b = base();
  const g = svg("svg", { viewBox: `0 0 ${W} ${H}`, width: W, style: narrow ? `min-width:${W}px` : null, role: "img", "aria-label": "score of every configuration" });
  for (const m of marks) g.append(svg("line", { class: "grid", x1: x(m), x2: x(m), y1: 4, y2: H - 26 }), svg("text", { x: x(m), y: H - 8, "text-anchor": "middle" }, m.toFixed(dec)));
  if (b && b.scores[state.metric]) g.append(svg("line", { x1: x(b.scores[state.metric][0]), x2: x(b.scores[state.metric][0]), y1: 4, y2: H - 26, stroke: "var(--ink)", "stroke-dasharray": "3 4", opacity: .55 }));
  runs.forEach((run, i) => {
    const y = tops[i] + heights[i] / 2, s = run.scores[state.metric], d = against(run), own = run === b, colour = own ? "var(--ink)" : tone(d);
    g.append(svg("g", { style: "cursor:pointer", onclick: () => compareWith(run) }, tip(run), svg("rect", { x: 0, y: tops[i], width: W, height: heights[i], fill: "transparent" }),
      ...labels[i].map((line, n) => svg("text", { x: left - 14, y: y + 4 + (labels[i].length > 1 ? n * 15 - 7 : 0), "text-anchor": "end", class: "ink", "font-weight": own ? 650 : 400 }, line)),
      svg("line", { x1: x(s[1]), x2: x(s[2]), y1: y, y2: y, stroke: colour, "stroke-width": 2, opacity: .5 }),
      svg("circle", { cx: x(s[0]), cy: y, r: 5, fill: colour }),
      svg("text", { x: W - right + 14, y: y + 4, class: "ink", "font-weight": 600 }, f3(s[0])),
      svg("text", { x: W - right + 62, y: y + 4, style: d ? `fill:${tone(d)}` : "" }, own ? "baseline" : d ? `${sign(d[0])} [${sign(d[1])}, ${sign(d[2])}]` : "")));
  });
  $("runs-note").textContent = `${words(state.metric)}, with 95% intervals` + (b ? `; on the right the paired difference to the baseline (dashed). Green is significantly better, orange significantly worse; for grey, ${asked} can't tell.` : ".");
  put("runs", g);
}
function effects() {
  const at = n => n === null || !X.runs[n].scores[state.metric] ? [] : [X.runs[n].scores[state.metric][0]];
  const shown = X.effects.flatMap(e => [...e.lines.flat().flatMap(at), ...(e.means[state.metric] || []).flat()]), low = Math.min(...shown), high = Math.max(...shown), pad = (high - low) * .05 || .02;
  const plots = X.effects.map(e => effect(e, X.runs, low - pad, high + pad)).filter(Boolean);
  $("effects-section").hidden = !plots.length; put("effects", ...plots);
}
function effect(e, runs, low, high) {
  const at = n => n === null ? null : runs[n].scores[state.metric], lines = e.lines.filter(line => line.some(n => at(n)));
  if (!lines.length) return null;
  const mean = e.means[state.metric];
  const W = 340, H = 230, left = 54, bottom = 40;
  const y = scale(low, high, H - bottom, 12), x = i => left + 40 + i * (W - left - 80) / Math.max(1, e.values.length - 1), marks = ticks(low, high, 5), dec = digits(marks);
  const g = svg("svg", { viewBox: `0 0 ${W} ${H}`, width: W, role: "img", "aria-label": `score by ${e.parameter}` });
  for (const m of marks) g.append(svg("line", { class: "grid", x1: left, x2: W - 8, y1: y(m), y2: y(m) }), svg("text", { x: left - 8, y: y(m) + 4, "text-anchor": "end" }, m.toFixed(dec)));
  const room = Math.max(6, Math.floor((W - left) / e.values.length / 6.6));
  e.values.forEach((v, i) => g.append(svg("text", { x: e.values.length > 1 ? x(i) : W / 2, y: H - bottom + 20, "text-anchor": "middle", class: "ink" }, svg("title", {}, v), cut(v, room))));
  for (const line of lines) {
    const points = line.map((n, i) => at(n) && [x(i), y(at(n)[0]), runs[n]]).filter(Boolean);
    g.append(svg("polyline", { points: points.map(p => `${p[0]},${p[1]}`).join(" "), fill: "none", stroke: "var(--mute)", "stroke-width": 1, opacity: .65 }));
    for (const p of points) g.append(svg("circle", { cx: p[0], cy: p[1], r: 3, fill: "var(--mute)", opacity: .75 }, tip(p[2])));
  }
  const drawn = mean ? mean.map((s, i) => [x(i), s]) : lines.length === 1 ? lines[0].map((n, i) => at(n) && [x(i), at(n)]).filter(Boolean) : [];
  if (drawn.length) g.append(svg("polyline", { points: drawn.map(([px, s]) => `${px},${y(s[0])}`).join(" "), fill: "none", stroke: "var(--accent)", "stroke-width": 2.5 }));
  for (const [px, s] of drawn) g.append(svg("line", { x1: px, x2: px, y1: y(s[1]), y2: y(s[2]), stroke: "var(--accent)", "stroke-width": 2, opacity: .45 }), svg("circle", { cx: px, cy: y(s[0]), r: 5, fill: "var(--accent)" }, svg("title", {}, `mean ${f3(s[0])} [${f3(s[1])}, ${f3(s[2])}]`)));
  return el("div", {}, el("h3", {}, words(e.parameter)), g);
}
const isHits = m => X.of_hits.includes(m);
// The cost of an answering model is plotted against its answer scores, because the hits are the same for all models.
const ofAnswers = names => !isHits(state.metric) ? state.metric : X.of_answers.find(m => names.includes(m)) || state.metric;
const dollars = v => v == null ? "–" : "$" + (!v ? "0" : v < .001 ? v.toPrecision(2) : v < 1 ? v.toFixed(4) : v.toFixed(2));
function price() {
  const costs = measured.filter(r => r.cost_per_1000 > 0), metric = costs.length ? ofAnswers(metrics) : state.metric;
  $("price-title").textContent = costs.length ? "Score against cost" : "Score against time";
  $("price-note").textContent = (costs.length ? `Left: ${words(metric)} against the US dollars that models cost for 1,000 questions; right: ${words(state.metric)} against the median time of a question. ` : "No configuration asked a model with a price: a better score costs time alone, the median of a question. ") + "The line joins the configurations that no other beats in both.";
  put("price", costs.length ? scatter(metric, r => r.cost_per_1000 || 0, dollars, "US dollars for 1,000 questions") : null, scatter(state.metric, r => r.timings.total.p50, ms, "median of a question"));
  bill();
}
function bill() {
  const runs = measured.filter(r => r.bill).sort((p, q) => p.cost_per_1000 - q.cost_per_1000), prices = Object.entries(Object.assign({}, ...measured.map(r => r.prices || {}))).filter(([, p]) => p.prompt + p.completion + p.embedding > 0);
  const n = v => v >= 100 ? v.toFixed(0) : v.toFixed(1), of = r => r.scores[ofAnswers(metrics)], shares = r => Object.entries(r.agents).map(([a, c]) => Object.keys(r.agents).length > 1 ? `${a} ${(100 * c / X.questions.length).toFixed(0)}%` : a).join(", ");
  const grid = (head, rows) => el("table", { class: "plain bill" }, el("thead", {}, el("tr", {}, ...head.map(h => el("th", {}, h)))), el("tbody", {}, ...rows.map(row => el("tr", {}, ...row.map((v, i) => el("td", { class: i ? "" : "name" }, v))))));
  put("bill", runs.length ? grid(["run", "answered by", words(ofAnswers(metrics)), "prompt tokens", "completion", "calls", "a question", "1,000 questions"], runs.map(r => [r.name, shares(r), of(r) ? f3(of(r)[0]) : "–", n(r.bill.prompt_tokens), n(r.bill.completion_tokens), r.bill.calls.toFixed(1), dollars(r.cost_per_question), dollars(r.cost_per_1000)])) : null,
    runs.length || prices.length ? el("p", { class: "note", style: "margin-top:18px" }, "Prices in US dollars per million tokens. A model that is not listed counts as free.") : null,
    prices.length ? grid(["model", "prompt", "completion", "embedding"], prices.map(([m, p]) => [m, ...[p.prompt, p.completion, p.embedding].map(v => v ? "$" + v : "–")])) : null);
}
function scatter(metric, of, show, title) {
  const runs = measured.filter(r => r.scores[metric]); if (!runs.length) return null;
  const wide = !measured.some(r => r.cost_per_1000 > 0), W = wide ? 1100 : 540, H = 300, left = 48, top = 14, bottom = 46, [low, high] = (v => [Math.min(...v), Math.max(...v)])(runs.map(r => r.scores[metric][0])), pad = (high - low) * .12 || .05;
  const most = Math.max(...runs.map(of)) * 1.06 || 1, x = scale(0, most, left + 8, W - 24), y = scale(low - pad, high + pad, H - bottom, top);
  const g = svg("svg", { viewBox: `0 0 ${W} ${H}`, width: W, role: "img", "aria-label": `score against ${title}` }), my = ticks(low - pad, high + pad, 5), dec = digits(my);
  for (const m of my) g.append(svg("line", { class: "grid", x1: left, x2: W - 8, y1: y(m), y2: y(m) }), svg("text", { x: left - 8, y: y(m) + 4, "text-anchor": "end" }, m.toFixed(dec)));
  for (const m of ticks(0, most, wide ? 10 : 5)) g.append(svg("text", { x: x(m), y: H - bottom + 18, "text-anchor": "middle" }, show(m)));
  g.append(svg("text", { x: (left + W) / 2, y: H - 6, "text-anchor": "middle" }, title));
  const order = runs.slice().sort((p, q) => of(p) - of(q) || q.scores[metric][0] - p.scores[metric][0]), frontier = []; let top0 = -Infinity;
  for (const r of order) if (r.scores[metric][0] > top0) { top0 = r.scores[metric][0]; frontier.push(r); }
  let path = ""; frontier.forEach((r, i) => { const px = x(of(r)), py = y(r.scores[metric][0]); path += i ? `H${px}V${py}` : `M${px},${py}`; });
  g.append(svg("path", { d: path + `H${W - 24}`, fill: "none", stroke: "var(--accent)", "stroke-width": 1.5, opacity: .7 }));
  for (const r of runs) { const on = frontier.includes(r), own = r === base();
    g.append(svg("circle", { cx: x(of(r)), cy: y(r.scores[metric][0]), r: on ? 6 : 4.5, fill: own ? "var(--ink)" : on ? "var(--accent)" : "var(--mute)", opacity: on || own ? 1 : .6, style: "cursor:pointer", onclick: () => compareWith(r) }, tip(r, metric))); }
  const boxes = [];
  for (const r of [...frontier].reverse()) {
    const px = x(of(r)), py = y(r.scores[metric][0]), text = cut(r.name, 46), w = text.length * 6.3, start = px + w + 12 < W, box = [start ? px : px - w, py - 22, start ? px + w : px, py - 6];
    if (boxes.some(o => box[0] < o[2] && o[0] < box[2] && box[1] < o[3] && o[1] < box[3])) continue;
    boxes.push(box); g.append(svg("text", { x: start ? px - 2 : px + 2, y: py - 10, "text-anchor": start ? "start" : "end", class: "ink halo" }, text));
  }
  return el("div", { class: "scroll" }, g);
}
function steps() {
  const runs = ranked(), names = [...new Set(runs.flatMap(r => Object.keys(r.timings)))].filter(s => s === "total" || Math.max(...runs.map(r => r.timings[s] ? r.timings[s].p50 : 0)) >= .0005).sort((p, q) => +(q === "total") - +(p === "total"));
  const most = Math.max(...runs.map(r => r.timings.total.p95)) || 1, width = v => Math.max(.5, Math.min(100, 100 * v / most)).toFixed(1) + "%";
  const cell = t => t ? el("td", { class: "step", title: `mean ${ms(t.mean)}, median ${ms(t.p50)}, 95% within ${ms(t.p95)}` }, `${ms(t.p50)}`, el("div", { class: "bar" }, el("i", { class: "p95", style: `width:${width(t.p95)}` }), el("i", { class: "p50", style: `width:${width(t.p50)}` }))) : el("td", {}, "");
  put("steps", el("table", { class: "plain" }, el("thead", {}, el("tr", {}, el("th", {}, "run"), ...names.map(n => el("th", {}, n)))), el("tbody", {}, ...runs.map(r => el("tr", {}, el("td", { class: "name" }, r.name), ...names.map(n => cell(r.timings[n])))))));
}
function columns() {
  const family = state.metric.split("@")[0], ks = metrics.filter(m => m.startsWith(family + "@")), others = metrics.filter(m => !m.includes("@") && !ks.includes(m));
  const money = measured.some(r => r.cost_per_1000 !== null);
  return [{ id: "name", text: true, title: "run", of: r => r.name },
    ...[...ks, ...others].map(m => ({ id: m === state.metric ? "score" : m, title: ks.includes(m) ? "@" + m.split("@")[1] : words(m), full: words(m), metric: m, of: r => r.scores[m] ? r.scores[m][0] : -1, show: r => r.scores[m] ? f3(r.scores[m][0]) : "–" })),
    { id: "delta", title: "to baseline", of: r => against(r) ? against(r)[0] : 0, show: r => against(r) ? `${sign(against(r)[0])} [${sign(against(r)[1])}, ${sign(against(r)[2])}]` : r === base() ? "baseline" : "–", cls: r => toneClass(against(r)) },
    { id: "p", title: "p", of: r => against(r) ? against(r)[3] : 2, show: r => against(r) ? against(r)[3].toFixed(3) : "" },
    { id: "ms", title: "median", of: r => r.timings.total.p50, show: r => ms(r.timings.total.p50) },
    money && { id: "cost", title: "$ / 1,000", of: r => r.cost_per_1000 ?? -1, show: r => r.cost_per_1000 === null ? "–" : r.cost_per_1000.toFixed(3) },
    measured.some(r => r.errors) && { id: "errors", title: "errors", of: r => r.errors, show: r => String(r.errors) },
    measured.some(unscored) && { id: "unscored", title: "unscored", of: unscored, show: r => Object.entries(r.score_errors || {}).filter(([, n]) => n).map(([m, n]) => `${n} ${words(m)}`).join(", ") || "0" },
    measured.some(r => r.degraded) && { id: "degraded", title: "degraded", of: r => r.degraded, show: r => String(r.degraded) },
    ...X.parameters.map(p => ({ id: "p:" + p, text: true, title: p, of: r => isNaN(r.varied[p]) ? r.varied[p] : +r.varied[p], show: r => cut(r.varied[p], 26) }))].filter(Boolean);
}
function table() {
  const all = columns(), by = all.find(c => c.id === state.sort) || all.find(c => c.id === "score") || all[0], order = (p, q) => { const a = by.of(p), b = by.of(q); return (a < b ? -1 : a > b ? 1 : 0) * (state.up ? 1 : -1); };
  const tops = new Map(all.filter(c => c.metric).map(c => [c.id, Math.max(...measured.map(c.of))]));
  const sort = c => { state.up = state.sort === c.id ? !state.up : !!c.text; state.sort = c.id; table(); };
  const head = el("tr", {}, ...all.map(c => el("th", { class: c.text ? "text" : "", tabindex: 0, title: c.full || c.title, "aria-sort": c === by ? (state.up ? "ascending" : "descending") : null, onclick: () => sort(c), onkeydown: e => { if (e.key === "Enter") sort(c); } }, c.title)));
  const rows = measured.slice().sort(order).map(r => el("tr", { style: "cursor:pointer", onclick: () => compareWith(r) }, ...all.map(c => el("td", { class: [c.id === "name" ? "name" : c.text ? "text" : "", c.metric && c.of(r) === tops.get(c.id) ? "best" : "", c.cls ? c.cls(r) : ""].join(" "), title: c.metric && r.scores[c.metric] ? `${c.full}: 95% interval ${f3(r.scores[c.metric][1])} to ${f3(r.scores[c.metric][2])}` : null }, c.show ? c.show(r) : c.of(r), c.id === "name" && r === base() ? el("span", { class: "tag" }, "baseline") : null))));
  const broken = failed.map(r => el("tr", {}, el("td", { class: "name" }, r.name, el("span", { class: "tag" }, "failed")), el("td", { class: "failed", colspan: all.length - 1 }, r.error)));
  put("table", el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows, ...broken)));
}
function compareWith(run) { if (run.name !== state.a) { state.b = run.name; $("b").value = run.name; } questions(); $("compare").scrollIntoView({ behavior: "smooth" }); }
function bounds(values) { // 95% percentile bootstrap of the mean, from a fixed seed
  let seed = 12345; const next = () => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) / 4294967296, n = values.length, means = [];
  const times = Math.max(200, Math.min(2000, Math.floor(2e6 / n)));
  for (let t = 0; t < times; t++) { let sum = 0; for (let i = 0; i < n; i++) sum += values[Math.floor(next() * n)]; means.push(sum / n); }
  means.sort((p, q) => p - q); return [means[Math.floor(times * .025)], means[Math.floor(times * .975)]];
}
function pick(kind) { state.filter = kind; state.shown = 40; questions(); }
function questions() {
  const a = measured.find(r => r.name === state.a), b = measured.find(r => r.name === state.b); if (!a || !b) return put("questions");
  const va = a.values[state.metric] || [], vb = b.values[state.metric] || [], far = r => r === null || r === undefined ? 1000 : r;
  const all = X.questions.map((q, i) => ({ q, i, a: va[i], b: vb[i], d: va[i] == null || vb[i] == null ? null : vb[i] - va[i], fa: a.found[i], fb: b.found[i] }));
  const both = all.filter(r => r.d !== null), sure = both.length ? bounds(both.map(r => r.d)) : [0, 0], mean = both.length ? both.reduce((s, r) => s + r.d, 0) / both.length : 0;
  const kinds = { changed: r => r.d, worse: r => r.d < 0, better: r => r.d > 0, "both miss": r => r.a === 0 && r.b === 0, "without score": r => r.d === null, all: () => true };
  $("compare-note").textContent = `${words(state.metric)}: ${sign(mean)} from “${a.name}” to “${b.name}” (95% interval ${sign(sure[0])} to ${sign(sure[1])}). The worst questions come first. A green hit lies in a reference section, a grey one on a reference page; a pale one ranks too low to count.`;
  put("filters", ...Object.entries(kinds).map(([kind, is]) => { const n = all.filter(is).length; return kind === "without score" && !n ? null : el("button", { "aria-pressed": String(state.filter === kind), style: "margin-right:6px", onclick: () => pick(kind) }, `${n} ${kind}`); }));
  if (!state.filter) return all.some(kinds.changed) ? pick("changed") : pick("all");
  const find = $("find").value.trim().toLowerCase(), rows = all.filter(kinds[state.filter]).filter(r => !find || r.q.question.toLowerCase().includes(find));
  const drop = r => r.fa && r.fb ? far(r.fb.rank) - far(r.fa.rank) : 0;
  const badness = r => r.d ?? (r.fb && r.fb.error ? -99 : 99);
  rows.sort((p, q) => badness(p) - badness(q) || drop(q) - drop(p));
  const place = f => !f ? "?" : f.error ? "error" : f.rank === null ? "not found" : "at " + f.rank;
  const places = r => r.q.answerable === false ? "about other things" : `${place(r.fa)} → ${place(r.fb)}`;
  put("questions", ...rows.slice(0, state.shown).map(r => {
    const details = el("details", { class: "q" }, el("summary", {}, el("span", { class: "delta " + (r.d > 0 ? "up" : r.d < 0 ? "down" : "") }, r.d === null ? whyMissing(r.fa, r.fb) : r.d === 0 ? "same" : sign(r.d).replace(/\.?0+$/, "")), el("span", {}, r.q.question), el("span", { class: "small num" }, places(r))));
    details.addEventListener("toggle", () => { if (details.open && details.children.length === 1) details.append(inside(r, a, b)); });
    return details;
  }), !rows.length && el("p", { class: "small" }, "no question"));
  $("more").hidden = rows.length <= state.shown;
}
const whyMissing = (...found) => found.some(f => f && f.error) ? "error" : "no score";
function inside(r, a, b) {
  const wanted = r.q.sources || (r.q.source ? [r.q.source] : []);
  return el("div", { class: "inside" }, el("div", { class: "small" }, wanted.length ? "reference: " : "about other things: the right answer is that it is not known", ...wanted.flatMap((s, i) => [i ? ", " : "", link(s)])), r.q.answer && (r.fa && r.fa.answer !== null || r.fb && r.fb.answer !== null) ? el("div", { class: "said" }, r.q.answer) : null,
    el("div", { class: "sides" }, side(a, r.fa, r.a), side(b, r.fb, r.b)));
}
function side(run, found, value) {
  const k = +(state.metric.split("@")[1] || 1000);
  const hits = found ? found.hits.map(([n, right], i) => el("li", { class: ["", "page", "section"][right] + (i < k ? "" : " beyond") }, X.places[n][1], el("span", { class: "where" }, link(X.places[n][0])))) : [];
  return el("div", {}, el("h3", {}, run.name, el("span", { class: "tag" }, value == null ? whyMissing(found) : f3(value))), found && found.error ? el("div", { class: "down small" }, found.error) : null,
    found && found.answer ? el("div", { class: "said" }, found.answer) : null, found ? el("ol", { class: "hits" }, ...hits) : el("p", { class: "small" }, "its hits are in results.json alone"));
}
function draw() { cards(); forest(); effects(); price(); steps(); table(); questions(); }
function gateLines() {
  const passed = X.gate.filter(l => l.startsWith("passed")), rest = X.gate.filter(l => !l.startsWith("passed")), line = (l, cls) => el("div", { class: cls }, l);
  const all = passed.map(l => line(l, "up")), many = passed.length > 3 ? [el("details", {}, el("summary", { class: "up" }, `${passed.length} passed`), ...all)] : all;
  return [...rest.map(l => line(l, "down")), ...many];
}
function start() {
  $("name").textContent = X.name; $("about").textContent = `${asked} of ${X.dataset.name}, collection ${X.collection}, ${X.created.replace("T", " ").replace("+00:00", " UTC")}`;
  $("metric").append(...metrics.map(m => el("option", { value: m }, words(m)))); $("metric").value = state.metric;
  $("metric").addEventListener("change", () => { state.metric = $("metric").value; draw(); });
  const best = ranked().find(r => r !== base()), names = measured.map(r => r.name); state.a = base() ? X.baseline : names[0] || ""; state.b = best ? best.name : names[0] || "";
  for (const id of ["a", "b"]) { $(id).append(...names.map(n => el("option", { value: n }, n))); $(id).value = state[id]; $(id).addEventListener("change", () => { state[id] = $(id).value; questions(); }); }
  $("swap").addEventListener("click", () => { [state.a, state.b] = [state.b, state.a]; $("a").value = state.a; $("b").value = state.b; questions(); });
  $("find").addEventListener("input", questions); $("more").addEventListener("click", () => { state.shown += 200; questions(); });
  $("theme").addEventListener("click", () => { const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches; document.documentElement.dataset.theme = dark ? "light" : "dark"; });
  if (X.gate.length) { $("gate").hidden = false; $("gate").append(...gateLines()); }
  draw();
}
start();
