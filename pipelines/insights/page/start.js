// Chooses the view: from the report's own data, or loaded from the service with an admin key kept in this tab.
const DATA = JSON.parse($("data").textContent), KEY = "raydex-insights-key", TIMES = [[0, "all that is kept"], [90, "the last 90 days"], [30, "the last 30 days"], [7, "the last 7 days"]];
const stored = DATA.views || null;
let current = null, latest = 0;

function about(view) {
  const days = Object.keys(view.days), span = days.length ? `${days[0]} to ${days.at(-1)}` : "no question in this time";
  return `${plural(view.totals.questions, "question")}, ${span}; as of ${view.created.replace("T", " ").replace(/(\+00:00|Z)$/, " UTC")}`;
}

function render(view) {
  current = view;
  $("about").textContent = about(view);
  for (const [id, hidden] of Object.entries({ report: false, controls: false, locked: true, problem: true })) $(id).hidden = hidden;
  show(view);
}

function choose(id, options, value) {
  $(id).replaceChildren(...options.map(([name, words]) => el("option", { value: name }, words)));
  $(id).value = value;
}

// ------------------------------------------------------------------------------------------ a report with its own data

function startStored() {
  const names = [...new Set(stored.map(view => view.collection))], windows = [...new Set(stored.map(view => view.window))];
  choose("collection", names.map(name => [name, name || "all collections"]), names[0]);
  choose("window", windows.map(days => [days, days ? `the last ${days} days` : "all of the report"]), windows[0]);
  $("collection").disabled = names.length < 2;
  $("window").disabled = windows.length < 2;
  const update = () => render(stored.find(view => view.collection === $("collection").value && view.window === +$("window").value));
  for (const id of ["collection", "window"]) $(id).addEventListener("change", update);
  update();
}

// ------------------------------------------------------------------------------------------ a page of the service

function lock(problem = "") {
  sessionStorage.removeItem(KEY);
  for (const [id, hidden] of Object.entries({ report: true, controls: true, locked: false })) $(id).hidden = hidden;
  $("about").textContent = "";
  say(problem);
  $("key").value = "";
  $("key").focus();
}

function say(problem) { $("problem").hidden = !problem; $("problem").textContent = problem; }

function wanted() {
  const query = new URLSearchParams(), days = $("window").value;
  if ($("collection").value) query.set("collection", $("collection").value);
  if (days === "dates") {
    if ($("since").value) query.set("since", `${$("since").value}T00:00:00Z`);
    if ($("until").value) query.set("until", new Date(Date.parse($("until").value) + 864e5).toISOString());
  } else if (+days) query.set("days", days);
  return query;
}

async function load() {
  const mine = ++latest, key = sessionStorage.getItem(KEY);
  $("report").setAttribute("aria-busy", "true");
  $("about").textContent = "reading and clustering the questions …";
  try {
    const reply = await fetch(`/admin/insights?${wanted()}`, { headers: { Authorization: `Bearer ${key}` } });
    const body = await reply.json().catch(() => ({}));
    if (mine !== latest) return;
    if (reply.status === 401 || reply.status === 403) return lock(reply.status === 401 ? "This key is unknown, revoked or expired." : body.error);
    if (!reply.ok) throw new Error(body.error || `The service answered with ${reply.status}.`);
    collections(body.choices);
    render(body);
  } catch (error) {
    if (mine !== latest) return;
    $("about").textContent = "";
    say(error instanceof TypeError ? "The service cannot be reached. Is `raydex serve` running?" : error.message);
    if (!current) $("controls").hidden = false;
  } finally { if (mine === latest) $("report").removeAttribute("aria-busy"); }
}

function collections(names) {
  const chosen = $("collection").value;
  choose("collection", [["", "all collections"], ...names.map(name => [name, name])], names.includes(chosen) ? chosen : "");
}

function startLive() {
  choose("collection", [["", "all collections"]], "");
  choose("window", [...TIMES, ["dates", "from … to …"]], 0);
  $("forget").hidden = false;
  $("forget").addEventListener("click", () => lock());
  $("window").addEventListener("change", () => { $("dates").hidden = $("window").value !== "dates"; });
  for (const id of ["collection", "window", "since", "until"]) $(id).addEventListener("change", load);
  $("key-form").addEventListener("submit", event => {
    event.preventDefault();
    sessionStorage.setItem(KEY, $("key").value.trim());
    load();
  });
  if (sessionStorage.getItem(KEY)) load(); else lock();
}

$("theme").addEventListener("click", () => {
  const root = document.documentElement, dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
let narrow = innerWidth < 760;
addEventListener("resize", () => { if (narrow !== (narrow = innerWidth < 760) && current) show(current); });
if (stored) startStored(); else startLive();
