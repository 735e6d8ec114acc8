// Draws charts over days as SVG: stacked bars, and lines.
const WIDTH = 1100, LEFT = 46, BOTTOM = 24, TOP = 8;

/** Return the ticks of an axis from 0 to at least `high`. */
function marks(high, whole) {
  const rough = high / 4 || 1, power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 2.5, 5, 10].map(n => n * power).find(s => s >= rough);
  if (whole) step = Math.max(1, Math.ceil(step));
  return Array.from({ length: Math.ceil(high / step - 1e-9) + 1 }, (_, n) => +(n * step).toFixed(10));
}

/** Return an empty chart over `days`: its node, the center of each day's slot, a slot's width, and the heights of values. */
function chart(days, high, { label, show, whole = false, height = 200 }) {
  const wide = innerWidth >= 760, W = wide ? WIDTH : 420, at = marks(high, whole), top = at.at(-1) || 1, base = height - BOTTOM;
  const place = (W - LEFT - 8) / days.length, x = n => LEFT + (n + 0.5) * place, y = value => base - value / top * (base - TOP);
  const node = svg("svg", { viewBox: `0 0 ${W} ${height}`, role: "img", "aria-label": label });
  for (const mark of at) node.append(svg("line", { class: mark ? "grid" : "axis", x1: LEFT, x2: W - 8, y1: y(mark), y2: y(mark) }), svg("text", { x: LEFT - 8, y: y(mark) + 4, "text-anchor": "end" }, show(mark)));
  const every = Math.ceil(days.length / (wide ? 10 : 4));
  days.forEach((day, n) => { if (n % every === 0) node.append(svg("text", { x: x(n), y: height - 6, "text-anchor": "middle" }, day.slice(5))); });
  return { node, x, y, place };
}

/** Return stacked bars: `parts` are [class, values], the lowest first; `tip` returns a day's tooltip. */
function bars(days, parts, options, tip) {
  const totals = days.map((_, n) => parts.reduce((sum, [, values]) => sum + values[n], 0));
  const { node, x, y, place } = chart(days, Math.max(...totals, 1e-9), options), width = Math.max(1, Math.min(48, place * 0.72));
  days.forEach((day, n) => {
    let below = 0;
    const stack = parts.map(([kind, values]) => svg("rect", { class: kind, x: x(n) - width / 2, width, y: y(below + values[n]), height: Math.max(0, y(below) - y(below += values[n])), rx: 1.5 }));
    node.append(svg("g", {}, svg("title", {}, tip(n)), svg("rect", { x: x(n) - place / 2, width: place, y: TOP, height: y(0) - TOP, fill: "transparent" }), stack));
  });
  return node;
}

/** Return lines over days: `parts` are [class, values], null for a day without a value. */
function lines(days, parts, options) {
  const known = parts.flatMap(([, values]) => values).filter(value => value !== null);
  const { node, x, y } = chart(days, Math.max(...known, 1e-9), options);
  for (const [kind, values] of parts) {
    const points = values.map((value, n) => value === null ? null : [x(n), y(value)]).filter(Boolean);
    node.append(svg("polyline", { class: `line ${kind}`, points: points.map(p => p.map(v => v.toFixed(1)).join(",")).join(" ") }));
    values.forEach((value, n) => { if (value !== null) node.append(svg("circle", { cx: x(n), cy: y(value), r: 3, fill: kind ? "var(--mute)" : "var(--accent)" }, svg("title", {}, `${days[n]}: ${options.show(value)}`))); });
  }
  return node;
}

function legend(...entries) { return el("ul", { class: "legend" }, entries.map(([kind, words]) => el("li", { class: kind }, words))); }
