/** Why a key can't stand in a page. */

/** Return why a key that is not publishable is refused, and say so in the console too. The key itself is not shown. */
export function explainRefusal(key) {
  const create = `Create one with \`raydex keys create NAME --publishable --origin ${location.origin}\``;
  const reason = /^rdx_/i.test(key)
    ? `data-key is a secret key (rdx_…): anyone who reads this page's source could use it. It was not sent. A page needs a publishable key (pk_…). ${create}, and revoke the secret one.`
    : `data-key is not a publishable key: those begin with pk_. It was not sent. ${create}.`;
  console.error(`Raydex: ${reason}`);
  return reason;
}
