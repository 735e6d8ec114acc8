/** Explains to a person what went wrong and what to do. */

import {make, withCode} from "./dom.js";
import {say} from "./texts.js";

/** The kinds of errors with advice, in texts with the same names. */
const ADVISED = new Set([
  "bad_key", "cut", "gone", "model", "no_key", "rate", "reloaded", "too_long", "unavailable", "unreachable",
]);
/** The headline of a kind without its own. */
const HEADLINES = {reloaded: "cut"};
/** Kinds for which the service's message is shown too. Readers of other sites can't fix a key, so they do not see it. */
const EXPLAINED = new Set(["forbidden", "invalid", "no_index", "not_set_up"]);
/** Kinds for which the same request would fail again, so retrying does not help. */
const FINAL = new Set(["forbidden", "gone", "invalid", "not_found", "too_long"]);
const CREATE_KEY = "raydex keys create NAME";
/** Kinds where nothing is broken: the reader has to do something, or to wait. */
const CALM = new Set(["gone", "model", "no_index", "no_key", "rate", "reloaded", "too_long", "unavailable"]);

/**
 * Return an element for a ServiceError. `again` retries, null if that is useless; `enterKey` is called with an API key,
 * null if readers have none. If the service says how long to wait, a countdown runs before retrying is possible.
 * If the same request would only fail again, retrying is not offered.
 */
export function showFailure(error, {again, enterKey}) {
  const keyed = ["no_key", "bad_key"].includes(error.kind);
  const kind = keyed && !enterKey ? "not_set_up" : error.kind;
  const advised = ADVISED.has(kind);
  const box = make(
    "div",
    {class: CALM.has(error.kind) ? "failure calm" : "failure", role: "alert"},
    make("strong", {}, say(advised || EXPLAINED.has(kind) ? (HEADLINES[kind] ?? kind) : "failed")),
    make("p", {}, withCode(advised ? advice(kind, error.limit) : sentence(error.message))),
  );
  if (keyed && enterKey) box.append(askForKey(enterKey));
  else if (again && !FINAL.has(kind)) box.append(...askAgain(again, error.seconds));
  return box;
}

function advice(kind, limit) {
  const why = say(`${kind}_why`, {command: CREATE_KEY});
  return limit ? `${say("too_long_most", {most: limit})} ${why}` : why;
}

/** Return a form for an API key. */
export function askForKey(enterKey) {
  const input = make("input", {
    type: "password",
    autocomplete: "off",
    "aria-label": say("api_key"),
    placeholder: "rdx_…",
    required: true,
  });
  const onsubmit = event => {
    event.preventDefault();
    enterKey(input.value.trim());
  };
  return make("form", {class: "key", onsubmit}, input, make("button", {class: "primary"}, say("use_key")));
}

function askAgain(again, seconds) {
  const button = make("button", {type: "button", class: "outlined", onclick: again}, say("try_again"));
  const wait = make("span", {class: "wait"});
  const until = Date.now() + seconds * 1000;
  const tick = () => {
    const left = Math.ceil((until - Date.now()) / 1000);
    button.disabled = left > 0;
    wait.textContent = left > 0 ? say("in_seconds", {n: left}) : "";
    if (left > 0) setTimeout(tick, 1000);
  };
  tick();
  return [button, wait];
}

/** Return a message of the service as a complete sentence. */
function sentence(text) {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…。！？]$/.test(whole) ? whole : `${whole}.`;
}
