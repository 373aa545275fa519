import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Client, type ClientOptions, createClient } from "threadkeep";
import { type Proxy, startProxy } from "./support/proxy.js";
import { API_KEY, startServer } from "./support/server.js";
import { gate } from "./support/until.js";

const SECRET = "a-secret-for-the-logins-of-the-tests";
const dir = mkdtempSync(join(tmpdir(), "threadkeep-logins-"));
after(() => rmSync(dir, { recursive: true, force: true }));

let proxy: Proxy;
let baseUrl: string;
let backEnd: Client;
let gracesId: string;
before(async () => {
  const file = join(dir, "key");
  writeFileSync(file, SECRET);
  const settings = { THREADKEEP_OWNER: "jwt", THREADKEEP_OWNER_REQUIRED: "true", THREADKEEP_IDENTITY_JWT_KEY_FILE: file };
  proxy = await startProxy((await startServer(settings)).url);
  baseUrl = proxy.url;
  process.env["THREADKEEP_API_KEY"] = API_KEY;
  backEnd = createClient({ baseUrl });
  gracesId = (await backEnd.threads.create({ owner: "grace", state: { secret: 1 } })).id!;
});

function login(name: string): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${part({ alg: "HS256", typ: "JWT" })}.${part({ sub: name, exp: 4_000_000_000 })}`;
  return `${text}.${createHmac("sha256", SECRET).update(text).digest("base64url")}`;
}

const authorization = `Bearer ${login("ada")}`;
const logins: { [name: string]: ClientOptions } = {
  "a header": { headers: { Authorization: authorization } },
  "a header of a function": { headers: async () => new Headers({ authorization }) },
  "a token": { token: login("ada") },
  "a token of a function": { token: async () => login("ada") },
};

for (const [name, options] of Object.entries(logins)) {
  test(`${name} wins over the API key of the environment`, async () => {
    const client = createClient({ baseUrl, ...options });
    const own = await client.threads.create({ state: { a: 1 } });
    assert.equal(await own.get("a"), 1);
    assert.deepEqual(new Set((await client.threads.list()).threads.map(({ owner }) => owner)), new Set(["ada"]));
    await assert.rejects(client.thread(gracesId).read(), { status: 401 });
    await client.current().set("b", 2);
    assert.equal((await backEnd.thread(client.current().id!).info()).owner, "ada");
  });
}

test("a signed ID wins over the API key of the environment", async () => {
  const { signedId, id } = await backEnd.threads.create({ owner: "ada", state: { a: 1 } });
  const carriers: ClientOptions[] = [{ signedId }, { headers: { "x-thread-id": signedId! } }];
  for (const options of carriers) {
    await assert.rejects(createClient({ baseUrl, ...options }).threads.list(), { status: 401 });
    await assert.rejects(createClient({ baseUrl, ...options }).thread(gracesId).read(), { status: 401 });
  }
  assert.equal(await createClient({ baseUrl, signedId, token: login("ada") }).thread(id!).get("a"), 1);
});

test("an API key that the caller passes wins over the environment, and an empty one disables it", async () => {
  await assert.rejects(createClient({ baseUrl, apiKey: "another" }).threads.list(), { status: 401 });
  await assert.rejects(createClient({ baseUrl, apiKey: "" }).threads.list(), { status: 401 });
});

test("a header without credentials does not disable the API key of the environment", async () => {
  const client = createClient({ baseUrl, headers: { "x-trace": "1" } });
  assert.equal(await client.thread(gracesId).get("secret"), 1);
});

test("a token excludes an API key", () => {
  assert.throws(() => createClient({ apiKey: "a", token: "b" }), TypeError);
});

describe("for a request", () => {
  const asAda = () => backEnd.forRequest({ headers: { authorization } });

  test("the user's login is forwarded, including for forks and streams", async () => {
    const thread = asAda();
    await thread.set("a", 1);
    assert.equal((await backEnd.thread(thread.id!).info()).owner, "ada");
    const copy = await thread.fork();
    await copy.set("a", 2);
    const opened = gate();
    const events = thread.events({ onOpen: opened.open });
    const next = events.next();
    await opened.opened;
    await thread.set("a", 3);
    assert.equal((await next).value?.type, "thread.updated");
    await events.return!();
    assert.deepEqual([await thread.get("a"), await copy.get("a")], [3, 2]);
  });

  test("a thread of another user is not accessible", async () => {
    const { signedId } = await backEnd.threads.create({ owner: "grace" });
    const thread = backEnd.forRequest(new Request("http://app/", { headers: { authorization, "x-thread-id": signedId! } }));
    await assert.rejects(thread.read(), { code: "not_the_owner" });
  });

  test("a visitor without a login gets no credential of the back end", async () => {
    const headers = { Authorization: `Bearer ${API_KEY}`, Cookie: "atid=a", "X-Thread-Id": "a", "x-trace": "1" };
    for (const options of [{}, { apiKey: API_KEY }, { token: login("ada") }, { headers }, { headers: async () => headers }]) {
      proxy.requests.length = 0;
      const visitor = createClient({ baseUrl, ...options }).forRequest({ headers: {} });
      await assert.rejects(visitor.set("a", 1), { code: "owner_required" });
      const [sent] = proxy.requests.map(({ headers }) => headers);
      const credentials = ["authorization", "cookie", "x-thread-id"].map((name) => sent?.[name]);
      assert.deepEqual(credentials, [undefined, undefined, undefined]);
      assert.equal(sent?.["x-trace"], "headers" in options ? "1" : undefined);
    }
  });
});
