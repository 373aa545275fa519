// A user of the app, the user's thread, and the back end's view of that thread.

import assert from "node:assert/strict";

const WAIT_LIMIT_MS = 300_000;

export const range = (count) => Array.from({ length: count }, (_, n) => n);

// Retries `attempt` until it no longer throws, and returns its result. The runtime saves the state only after it has
// answered, so a change may take a moment to appear.
export async function eventually(attempt) {
  const end = performance.now() + WAIT_LIMIT_MS;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > end) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

// Calls `fetch` with a JSON body. Pass the body as a value (`body`) or as JSON text (`text`).
export function request(url, { body, text = JSON.stringify(body), headers, ...init } = {}) {
  const type = text === undefined ? {} : { "content-type": "application/json" };
  const signal = AbortSignal.timeout(WAIT_LIMIT_MS);
  return fetch(url, { ...init, signal, body: text, headers: { ...type, ...headers } });
}

// Waits until the saves of all answered requests have succeeded or failed.
export function settled(app) {
  return eventually(async () => {
    assert.equal(await (await request(`${app.url}/api/pending`)).json(), false, "saves are pending");
  });
}

// Releases the request that waits for `name`.
export function release(app, name) {
  return eventually(async () => {
    const response = await request(`${app.url}/api/release/${name}`, { method: "POST" });
    assert.equal(await response.json(), true, `no request waits for ${name}`);
  });
}

export class Visitor {
  // Credentials from the app: the `atid` cookie as a name-value pair, and the `x-thread-id` header.
  cookie;
  signed;

  constructor(stage, { by = "cookie", cookie, signed } = {}) {
    this.stage = stage;
    this.by = by;
    this.cookie = cookie;
    this.signed = signed;
  }

  get id() {
    return this.signed.split(";")[0];
  }

  get credentials() {
    if (!this.signed && !this.cookie) return {};
    return this.by === "cookie" ? { cookie: this.cookie } : { "x-thread-id": this.signed };
  }

  // Runs `steps` in one request to the app. Returns the result of each step.
  async run(app, ...steps) {
    const init = { method: "POST", headers: this.credentials, body: steps };
    const response = await request(`${app.url}/api/thread`, init);
    assert.equal(response.status, 200, `${JSON.stringify(steps)} at app ${app.name}`);
    const cookie = response.headers.get("set-cookie").split(";")[0];
    const signed = response.headers.get("x-thread-id");
    if (this.signed) assert.equal(signed, this.signed, "another thread");
    [this.cookie, this.signed] = [cookie, signed];
    return response.json();
  }

  // Like `run`, but waits until the save has finished.
  async do(app, ...steps) {
    const answers = await this.run(app, ...steps);
    await settled(app);
    return answers;
  }

  // Sends a request to /v1 with the API key.
  v1(path = "", init = {}) {
    const headers = { authorization: `Bearer ${this.stage.key}`, ...init.headers };
    return request(`${this.stage.url}/v1/threads/${this.id}${path}`, { ...init, headers });
  }

  async stateText() {
    const response = await this.v1("/state");
    assert.equal(response.status, 200);
    return response.text();
  }

  async state() {
    return JSON.parse(await this.stateText());
  }

  async thread() {
    return (await this.v1()).json();
  }

  async has(expected) {
    await eventually(async () => assert.deepEqual(await this.state(), expected));
  }
}
