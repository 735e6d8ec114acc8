/** Client of a Raydex service. Knows its routes, errors and sessions, and nothing about the page. */

import {readEvents} from "./events.js";
import {language, say} from "./texts.js";

const KINDS = {
  401: "no_key",
  403: "forbidden",
  404: "not_found",
  413: "invalid",
  422: "invalid",
  429: "rate",
  503: "unavailable",
};

/**
 * Why a request failed. `kind` is the service's own (`no_key`, `rate`, `no_index`, …; see docs/api.md), or
 * `unreachable` (no service answers), `cut` (the stream ended too early) or `reloaded` (the page was reloaded before it
 * ended); `seconds` is how long to wait, `limit` the maximum length of a question in characters.
 */
export class ServiceError extends Error {
  constructor(kind, message, seconds = 0, limit = 0) {
    super(message);
    this.name = "ServiceError";
    this.kind = kind;
    this.seconds = seconds;
    this.limit = limit;
  }

  /** Return the error of a body such as `{error, kind?, retry_after?}`. */
  static of(body, kind = "failed", seconds = 0) {
    const why = typeof body?.error === "string" ? body.error : body?.error?.message;
    const said = body?.request ? `${say("failed_why")} (${body.request})` : why; // all a reader can do is report it
    return new ServiceError(body?.kind ?? kind, said ?? say("failed_why"), body?.retry_after ?? seconds, body?.limit);
  }
}

/** One service at `base` (a URL that ends in a slash), as one reader sees it. */
export class Client {
  /**
   * `key` is an API key or a publishable key. Questions go to `collection`, `version` and `language` ("" means the
   * service's choice; `place` has them and may be changed), from `page`, the URL of the reader's page, over `channel`.
   * `store` stores the session.
   */
  constructor({base, key = "", collection = "", version = "", language = "", page = "", channel = "", store = null}) {
    this.base = new URL(base, location.href).href;
    this.place = {collection, version, language};
    this.key = key;
    this.page = page;
    this.channel = channel;
    this.session = new Session(this, store);
  }

  /**
   * Yield `[event, data]` as they arrive: hits, status, delta, citation, answer. The question follows the answers with
   * the ids `after` in `conversation`; with `aboutPage` it means the open page. Throws ServiceError, or AbortError.
   *
   * @param {string} question
   * @param {{conversation?: string, after?: string[], aboutPage?: boolean, signal?: AbortSignal}} [options]
   */
  async *ask(question, {conversation, after, aboutPage, signal} = {}) {
    const reply = await this.#post(
      "query/stream",
      {...this.#question(question), conversation, after: conversation && after, about_page: aboutPage || undefined},
      signal,
    );
    let whole = false;
    try {
      for await (const [name, data] of readEvents(reply.body)) {
        if (name === "error") throw ServiceError.of(data);
        whole ||= name === "answer";
        if (name !== "heartbeat") yield [name, data];
      }
    } catch (error) {
      if (error instanceof ServiceError || signal?.aborted) throw error;
    }
    if (!whole) throw new ServiceError("cut", say("cut_why"));
  }

  /**
   * Return `{hits, queries, …}` for the typed text.
   *
   * @param {string} question
   * @param {{k?: number, signal?: AbortSignal}} [options]
   */
  async search(question, {k, signal} = {}) {
    return (await this.#post("search", {...this.#question(question), k}, signal)).json();
  }

  /**
   * Rate an answer: `reasons` are wrong, incomplete, outdated, not_asked.
   *
   * @param {string} id
   * @param {-1 | 0 | 1} rating
   * @param {{reasons?: string[], comment?: string}} [more]
   */
  async feedback(id, rating, {reasons, comment} = {}) {
    return (await this.#post("feedback", {id, rating, reasons, comment})).json();
  }

  /**
   * Report that a source of an answer or a search, given by its id, was opened. Nothing waits for it or fails because of
   * it; `keepalive` delivers it even if the page is left.
   *
   * @param {string | undefined} id
   * @param {string} source
   */
  async opened(id, source) {
    if (!id) return;
    const body = JSON.stringify({id, source});
    await this.#authorized("clicks", {method: "POST", body, keepalive: true}).catch(() => {});
  }

  /** Return the published collections, `{name, title, …}`; an @ in a name marks a copy. */
  async collections() {
    const rows = await (await this.#get("collections")).json();
    return rows.filter(row => row.index !== null && !row.name.includes("@"));
  }

  /** Return `{name, title, versions, languages, examples, …}` of a collection. */
  async collection(name) {
    return (await this.#get(`collections/${encodeURIComponent(name)}`)).json();
  }

  /** Return a recorded answer. */
  async answer(id) {
    return (await this.#get(`answers/${encodeURIComponent(id)}`)).json();
  }

  /** Let anyone with its link read an answer. */
  async share(id) {
    await this.#post(`answers/${encodeURIComponent(id)}/share`, {});
  }

  /** Return the link to an answer. */
  linkTo(id) {
    return new URL(`a/${encodeURIComponent(id)}`, this.base).href;
  }

  /**
   * Send a request without a session: its headers are `headers`. Throws ServiceError.
   *
   * @param {string} path
   * @param {RequestInit} [options]
   */
  async send(path, {headers = {}, ...more} = {}) {
    let reply;
    try {
      reply = await fetch(new URL(path, this.base), {headers, credentials: "omit", ...more});
    } catch (error) {
      if (more.signal?.aborted) throw error;
      throw await this.#noReply();
    }
    if (!reply.ok) throw await this.#refusal(reply);
    return reply;
  }

  #question(question) {
    const {collection, version, language: written} = this.place;
    const filters = version || written ? {version: version || undefined, language: written || undefined} : undefined;
    const from = {channel: this.channel || undefined, page: this.page || undefined, language};
    return {question, collection: collection || undefined, filters, ...from};
  }

  #get(path) {
    return this.#authorized(path, {});
  }

  #post(path, body, signal) {
    return this.#authorized(path, {method: "POST", body: JSON.stringify(body), signal});
  }

  /** Send a request with the session's token; one that has expired is renewed once. */
  async #authorized(path, more) {
    const headers = more.body ? {"content-type": "application/json"} : {};
    const token = await this.session.token();
    try {
      return await this.send(path, {...more, headers: {...headers, ...bearer(token)}});
    } catch (error) {
      if (error.kind !== "session") throw error;
      const renewed = await this.session.renew();
      return this.send(path, {...more, headers: {...headers, ...bearer(renewed)}});
    }
  }

  /** Browsers don't tell a script why there was no reply: if the service still serves this file, it rejects this site. */
  async #noReply() {
    const alive = await fetch(import.meta.url, {method: "HEAD", cache: "no-store"}).then(
      reply => reply.ok,
      () => false,
    );
    if (!alive || new URL(this.base).origin === location.origin)
      return new ServiceError("unreachable", say("unreachable"));
    const {origin} = location;
    const command = `raydex keys create NAME --publishable --origin ${origin}`;
    return new ServiceError("forbidden", say("forbidden_origin", {origin, command}));
  }

  async #refusal(reply) {
    const body = await reply.json().catch(() => ({}));
    const kind = reply.status === 401 && this.key ? "bad_key" : KINDS[reply.status];
    return ServiceError.of(body, kind, Number(reply.headers.get("retry-after")) || 0);
  }
}

const NO_SESSION = {token: "", until: 0};
/** A token is renewed this long before it expires: longer than a request takes. */
const EARLY_MS = 60_000;

/** The token in a reader's requests, which makes answers their own: a secret key, or a session token. */
class Session {
  #session = null;
  #opening = null;

  constructor(client, store) {
    this.client = client;
    this.store = store;
  }

  /** Return the token to send. */
  async token() {
    const {key} = this.client;
    if (key && !key.startsWith("pk_")) return key;
    const {token, until} = this.#kept();
    return Date.now() < until ? token : this.renew();
  }

  /** Return a new token for the same session, or for a new one. Concurrent callers get the same token. */
  renew() {
    this.#opening ??= this.#open().finally(() => (this.#opening = null));
    return this.#opening;
  }

  async #open() {
    const {token: old} = this.#kept();
    const headers = {...bearer(this.client.key), ...(old && {"X-Raydex-Renew": old})};
    const reply = await this.client.send("session", {method: "POST", headers});
    const {token, expires_in} = await reply.json();
    this.#keep({token, until: Date.now() + expires_in * 1000 - EARLY_MS});
    return token;
  }

  get #name() {
    return `raydex-session ${this.client.base} ${this.client.key}`;
  }

  #kept() {
    try {
      this.#session ??= JSON.parse(this.store?.getItem(this.#name) ?? "null");
    } catch {
      // Not JSON: not written here.
    }
    return this.#session ?? NO_SESSION;
  }

  #keep(session) {
    this.#session = session;
    try {
      this.store?.setItem(this.#name, JSON.stringify(session));
    } catch {
      // Full or forbidden: the session lasts as long as the page.
    }
  }
}

function bearer(token) {
  return token ? {authorization: `Bearer ${token}`} : {};
}
