/** Why a key can't be used in a page. */

import {learn, say} from "../chat/texts.js";

/** Return why a key that is not publishable is refused, and log it to the console. The key itself is not shown. */
export async function explainRefusal(key) {
  await learn("page");
  const command = `raydex keys create NAME --publishable --origin ${location.origin}`;
  const reason = say(/^rdx_/i.test(key) ? "secret_key" : "other_key", {command});
  console.error(`Raydex: ${reason}`);
  return reason;
}
