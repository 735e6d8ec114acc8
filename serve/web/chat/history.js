/** Keeps the last conversations of a reader in the browser, and which is open in this tab. Nothing of them is sent anywhere. */

export const MOST = 30; // conversations; a list that is longer is not read
const KEPT = [
  "agent",
  "answer",
  "citations",
  "claims",
  "confidence",
  "conversation",
  "degraded",
  "finish_reason",
  "form",
  "id",
  "known",
  "notes",
  "queries",
  "written_by",
];

/** Conversations as `{id, title, at, place, turns: [{question, answer, rating}]}`, the latest first. */
export class History {
  /**
   * `store` is a Storage, null to keep nothing; `tab` one that ends with the tab; `name` tells the service; the last
   * `most` conversations are kept.
   */
  constructor(store, tab, name, most = MOST) {
    this.store = store;
    this.tab = tab;
    this.most = most;
    this.name = `raydex-conversations ${name}`;
    this.openName = `raydex-open ${name}`;
  }

  /** The conversation that is open in this tab, also after it is loaded again; undefined for a new one. */
  get open() {
    const id = this.tab?.getItem(this.openName);
    return id ? this.get(id) : undefined;
  }

  /** Note which conversation is open, by its id. */
  set openId(id) {
    put(this.tab, this.openName, id);
  }

  all() {
    try {
      return JSON.parse(this.store?.getItem(this.name) ?? "[]");
    } catch {
      return [];
    }
  }

  get(id) {
    return this.all().find(conversation => conversation.id === id);
  }

  /** Put a conversation in front; the oldest go where there is no room. */
  save(conversation) {
    this.#write([conversation, ...this.all().filter(({id}) => id !== conversation.id)].slice(0, this.most));
  }

  remove(id) {
    this.#write(this.all().filter(conversation => conversation.id !== id));
  }

  #write(conversations) {
    const kept = put(this.store, this.name, JSON.stringify(conversations));
    if (!kept && conversations.length > 1) this.#write(conversations.slice(0, -1));
  }
}

/**
 * Return a Storage of the window; null where the reader forbids it.
 *
 * @param {"localStorage" | "sessionStorage"} name
 */
export function openStorage(name) {
  try {
    return window[name];
  } catch {
    return null;
  }
}

/** Return whether a Storage took a value; one that is full or forbidden does not. */
function put(storage, name, value) {
  try {
    storage?.setItem(name, value);
    return true;
  } catch {
    return false;
  }
}

/** Return what of an answer is kept: all that is shown. */
export function keep(answer) {
  return Object.fromEntries(KEPT.filter(name => name in answer).map(name => [name, answer[name]]));
}
