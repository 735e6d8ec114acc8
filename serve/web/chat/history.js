/** Keeps the last conversations of a reader in the browser. Nothing of them is sent anywhere. */

const MOST = 30; // conversations; a list that is longer is not read
const KEPT = [
  "agent",
  "answer",
  "citations",
  "claims",
  "confidence",
  "conversation",
  "degraded",
  "finish_reason",
  "id",
  "known",
  "notes",
  "queries",
  "written_by",
];

/** Conversations as `{id, title, at, place, turns: [{question, answer, rating}]}`, the latest first. */
export class History {
  /** `store` is a Storage, null to keep nothing; `name` tells the service. */
  constructor(store, name) {
    this.store = store;
    this.name = `raydex-conversations ${name}`;
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
    this.#write([conversation, ...this.all().filter(({id}) => id !== conversation.id)].slice(0, MOST));
  }

  remove(id) {
    this.#write(this.all().filter(conversation => conversation.id !== id));
  }

  #write(conversations) {
    try {
      this.store?.setItem(this.name, JSON.stringify(conversations));
    } catch {
      if (conversations.length > 1) this.#write(conversations.slice(0, -1));
    }
  }
}

/** Return what of an answer is kept: all that is shown. */
export function keep(answer) {
  return Object.fromEntries(KEPT.filter(name => name in answer).map(name => [name, answer[name]]));
}
