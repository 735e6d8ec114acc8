/** The page at `/`, and the page of one answer at `/a/<id>`. */

import {mountAnswer, mountChat} from "./chat/chat.js";
import {Client} from "./chat/client.js";
import {openStorage} from "./chat/history.js";
import {language, say, speak} from "./chat/texts.js";

const KEY = "raydex-key";
const store = openStorage("localStorage"),
  tab = openStorage("sessionStorage");
const shared = /\/a\/([^/]+)$/.exec(location.pathname);
const home = new URL(shared ? ".." : ".", location.href);
const wanted = new URLSearchParams(location.search);
const place = Object.fromEntries(["collection", "version", "language"].map(name => [name, wanted.get(name) ?? ""]));
const client = new Client({
  base: home.href.replace(/[?#].*$/, ""),
  key: tab?.getItem(KEY) ?? "",
  channel: "page",
  store,
});
const main = document.querySelector("main");
await speak("page", place.language, ...navigator.languages);
document.documentElement.lang = language;
document.title = say("title");

const onKey = key => tab?.setItem(KEY, key);

if (shared) mountAnswer(main, client, decodeURIComponent(shared[1]), {home: client.base, onKey});
else mountChat(main, client, {store, tab, sidebar: true, place, onPlace: keepPlace, onKey, onTitle: title => (document.title = title)});

/** Put the choice into the URL, so that it can be bookmarked. */
function keepPlace(chosen) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(chosen))
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
  history.replaceState(null, "", url);
}
