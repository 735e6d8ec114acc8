/** Says what went wrong and what to do, as a person needs it. */

import {count, make, withCode} from "./dom.js";

const SAYINGS = {
  bad_key: [
    "This API key is not accepted",
    "It is unknown, revoked or expired. Check it, or ask the people who run this service for another one.",
  ],
  cut: ["The answer broke off", "The connection closed before it was complete. What came so far stands above."],
  forbidden: ["This is not allowed", ""],
  gone: ["This answer can't be shown", "It was deleted, or the person who asked has not shared it."],
  invalid: ["The service can't take this question", ""],
  model: ["The service is still loading its models", "This takes a minute at most. Your question is kept."],
  no_index: ["Nothing is indexed yet", ""],
  no_key: [
    "An API key is needed",
    "This service answers only with a key. Its operator creates one with `raydex keys create NAME`.",
  ],
  rate: ["Too many questions in a short time", "The service limits how often one may ask. Your question is kept."],
  unavailable: ["The service is busy or starting", "It will be back in a moment. Your question is kept."],
  unreachable: ["The service can't be reached", "It may be restarting, or you may be offline. Your question is kept."],
};
/** A reader of another site can't mend its key: what the service says is for those who run the site. */
const NOT_SET_UP = ["The assistant is not set up", ""];
const FAILED = ["Something went wrong", ""];
/** Nothing is broken: there is something to do, or to wait for. */
const CALM = new Set(["gone", "model", "no_index", "no_key", "rate", "unavailable"]);

/**
 * Return an element for a ServiceError. `again` asks once more, null where that is no use; `enterKey` is called with an
 * API key, null where readers have none. Where the service says how long to wait, the seconds are counted down, and
 * asking again waits for them.
 */
export function showFailure(error, {again, enterKey}) {
  const keyed = ["no_key", "bad_key"].includes(error.kind);
  const [title, advice] = keyed && !enterKey ? NOT_SET_UP : (SAYINGS[error.kind] ?? FAILED);
  const box = make(
    "div",
    {class: CALM.has(error.kind) ? "failure calm" : "failure", role: "alert"},
    make("strong", {}, title),
    make("p", {}, withCode(advice || sentence(error.message))),
  );
  if (keyed && enterKey) box.append(askForKey(enterKey));
  else if (again) box.append(...askAgain(again, error.seconds));
  return box;
}

/** Return a form that takes an API key. */
export function askForKey(enterKey) {
  const input = make("input", {
    type: "password",
    autocomplete: "off",
    "aria-label": "API key",
    placeholder: "rdx_…",
    required: true,
  });
  const onsubmit = event => {
    event.preventDefault();
    enterKey(input.value.trim());
  };
  return make("form", {class: "key", onsubmit}, input, make("button", {class: "primary"}, "Use this key"));
}

function askAgain(again, seconds) {
  const button = make("button", {type: "button", class: "outlined", onclick: again}, "Try again");
  const wait = make("span", {class: "wait"});
  const until = Date.now() + seconds * 1000;
  const tick = () => {
    const left = Math.ceil((until - Date.now()) / 1000);
    button.disabled = left > 0;
    wait.textContent = left > 0 ? `in ${count(left, "second")}` : "";
    if (left > 0) setTimeout(tick, 1000);
  };
  tick();
  return [button, wait];
}

/** Return a service's sentence as one that stands alone. */
function sentence(text) {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(whole) ? whole : `${whole}.`;
}
