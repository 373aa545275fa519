/** Tests proxies that change ETags. With compression, nginx and Cloudflare weaken ETags, and Apache extends them. */

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { createClient, VersionMismatchError } from "threadkeep";
import { type Fault, type Proxy, startProxy } from "./support/proxy.js";
import { API_KEY, startServer } from "./support/server.js";

let proxy: Proxy;
before(async () => {
  proxy = await startProxy((await startServer()).url);
});

const clientBehind = (etag: NonNullable<Fault["etag"]>) => {
  proxy.fault = () => ({ etag });
  return createClient({ baseUrl: proxy.url, apiKey: API_KEY });
};

for (const change of ["weakened", "suffixed", "replaced", "removed"] as const) {
  test(`conditional calls work if ETags are ${change}`, async () => {
    const client = clientBehind(change);
    const { id } = await client.threads.create({ state: { a: [] } });
    const thread = client.thread(id!);
    const receipt = await thread.push("a", 1);
    const { version, etag } = await thread.read();
    assert.deepEqual([version, etag], [2, receipt.etag]);

    await thread.update("a", () => [{ op: "push", key: "a", value: 2 }]);
    await assert.rejects(thread.set("b", 1, { ifMatch: etag }), VersionMismatchError);
    const info = await thread.read({ keys: [] });
    await thread.set("b", 1, { ifMatch: info.etag });
    assert.deepEqual((await thread.read()).state, { a: [1, 2], b: 1 });
    assert.match(info.etag, ["weakened", "suffixed"].includes(change) ? /^"3-[0-9a-f]{16}"$/ : /^"3"$/);

    const entries = client.kv(`tags-${change}`);
    await entries.put("k", "1");
    const entry = (await entries.get("k"))!;
    await entries.put("k", "2", { ifMatch: entry.etag });
    await assert.rejects(entries.put("k", "3", { ifMatch: entry.etag }), VersionMismatchError);
  });
}

test("update ends if conditional writes always fail", async () => {
  const client = clientBehind("weakened");
  const thread = client.current();
  await thread.set("a", 1);
  const code = { code: "version_mismatch" };
  const body = JSON.stringify(code);
  proxy.fault = ({ method }) => (method === "PATCH" ? { status: 412, body } : undefined);
  const before = proxy.requests.length;
  await assert.rejects(thread.update("a", () => [{ op: "set", key: "a", value: 2 }]), code);
  assert.equal(proxy.requests.length - before, 200);
});

test("a response without version is an error that names the proxy", async () => {
  const bare = async () => new Response("{}");
  const client = createClient({ baseUrl: proxy.url, apiKey: API_KEY, fetch: bare as typeof fetch });
  await assert.rejects(client.thread("thrd_" + "7".repeat(32)).read(), { code: "untagged", message: /a proxy has removed them/ });
});
