/** Stores a reader's last conversations in the browser, and which one is open in this tab. Nothing is sent anywhere. */

export const MOST = 30; // conversations; nobody reads a longer list
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

  /** The conversation that is open in this tab, also after a reload; undefined for a new one. */
  get open() {
    const id = this.tab?.getItem(this.openName);
    return id ? this.get(id) : undefined;
  }

  /** Store the id of the open conversation. */
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

  /** Move a conversation to the front; the oldest are deleted if there is no room. */
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

/** Return whether a Storage accepted a value; a full or forbidden one does not. */
function put(storage, name, value) {
  try {
    storage?.setItem(name, value);
    return true;
  } catch {
    return false;
  }
}

/** Return the visible parts of an answer, for storage. */
export function keep(answer) {
  return Object.fromEntries(KEPT.filter(name => name in answer).map(name => [name, answer[name]]));
}
