// A client that validates all objects and events that it receives.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createRequire } from "node:module";
import { checked, compaction, response, socketError } from "./schemas.mjs";
import { isEnd, responseOf } from "./stream.mjs";

const { WebSocket } = createRequire(import.meta.url)("ws");
const WAIT_LIMIT_MS = 60_000;

export class Client {
  #url;
  #headers;

  constructor(server, apiKey, model) {
    this.#url = `${server}/v1/responses`;
    this.#headers = { authorization: `Bearer ${apiKey}` };
    this.model = model;
  }

  async #post(path, body) {
    return fetch(this.#url + path, {
      method: "POST",
      headers: { ...this.#headers, "content-type": "application/json" },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(WAIT_LIMIT_MS),
    });
  }

  async #ok(path, schema, members) {
    const answer = await this.#post(path, { model: this.model, ...members });
    const body = await answer.json();
    assert.equal(answer.status, 200, JSON.stringify(body));
    return checked(schema, body);
  }

  respond(members) {
    return this.#ok("", response, members);
  }

  compact(members) {
    return this.#ok("/compact", compaction, members);
  }

  /** Sends exactly `body` as a compaction request. Returns the status. */
  async statusOfCompact(body) {
    return (await this.#post("/compact", body)).status;
  }

  async stream(members) {
    const answer = await this.#post("", { model: this.model, stream: true, ...members });
    assert.match(answer.headers.get("content-type"), /^text\/event-stream/);
    const messages = (await answer.text()).split("\n\n").map((message) => {
      const lines = message.split("\n").map((line) => /^(event|data): (.*)$/.exec(line));
      return Object.fromEntries(lines.filter(Boolean).map(([, name, value]) => [name, value]));
    });
    const data = messages.filter((message) => message.data);
    assert.equal(data.pop().data, "[DONE]");
    return data.map(({ event, data }) => {
      const parsed = JSON.parse(data);
      assert.equal(event, parsed.type);
      return parsed;
    });
  }

  /** Opens a socket, calls `use` with the socket, and closes it. Returns the result of `use`. */
  async connected(use) {
    const socket = new WebSocket(this.#url.replace(/^http/, "ws"), { headers: this.#headers });
    await once(socket, "open", { signal: AbortSignal.timeout(WAIT_LIMIT_MS) });
    try {
      return await use(new Socket(socket, this.model));
    } finally {
      socket.close();
    }
  }
}

class Socket {
  #socket;
  #model;

  constructor(socket, model) {
    this.#socket = socket;
    this.#model = model;
  }

  async #events(members) {
    const signal = AbortSignal.timeout(WAIT_LIMIT_MS);
    const events = [];
    const ended = new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
      this.#socket.once("close", () => reject(new Error("the server closed the socket")));
      this.#socket.on("message", (message) => {
        const event = JSON.parse(message);
        events.push(event);
        if (isEnd(event) || event.type === "error") resolve();
      });
    });
    this.#socket.send(JSON.stringify({ type: "response.create", model: this.#model, store: false, ...members }));
    await ended;
    this.#socket.removeAllListeners();
    return events;
  }

  /** Requests a response that the server does not store. */
  async respond(members) {
    return responseOf(await this.#events(members));
  }

  async respondWithError(members) {
    const events = await this.#events(members);
    assert.equal(events.length, 1);
    return checked(socketError, events[0]).error;
  }
}
