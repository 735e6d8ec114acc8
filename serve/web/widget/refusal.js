/** Why a key can't stand in a page. */

import {learn, say} from "../chat/texts.js";

/** Return why a key that is not publishable is refused, and say so in the console too. The key itself is not shown. */
export async function explainRefusal(key) {
  await learn("page");
  const command = `raydex keys create NAME --publishable --origin ${location.origin}`;
  const reason = say(/^rdx_/i.test(key) ? "secret_key" : "other_key", {command});
  console.error(`Raydex: ${reason}`);
  return reason;
}
