// Tests an app's threads in two processes.

import assert from "node:assert/strict";

import { Visitor, request, eventually, range } from "./visitor.mjs";

export const threads = [
  ["the other process continues a thread, by cookie and by header", async (stage) => {
    const [a, b] = stage.apps;
    for (const by of ["cookie", "header"]) {
      const visitor = new Visitor(stage, { by });
      await visitor.do(a, ["set", "name", "Ada"], ["push", "messages", "hello"]);
      const answers = await visitor.do(b, ["get", "name"], ["push", "messages", "again"]);
      assert.deepEqual(answers, ["Ada", null]);
      assert.deepEqual(await visitor.do(a, ["get", "messages"]), [["hello", "again"]]);
      await visitor.has({ name: "Ada", messages: ["hello", "again"] });
    }
  }],

  ["a tampered id is a new thread to the app, and 401 to /v1", async (stage) => {
    const visitor = new Visitor(stage, { by: "header" });
    await visitor.do(stage.apps[0], ["set", "name", "Ada"]);
    const signed = visitor.signed.replace(/[0-9a-f]/, (digit) => (digit === "0" ? "1" : "0"));

    const headers = { "x-thread-id": signed };
    const response = await request(`${stage.url}/v1/threads/current`, { headers });
    assert.equal(response.status, 401);
    const init = { method: "POST", headers, body: [["get", "name"]] };
    const other = await request(`${stage.apps[0].url}/api/thread`, init);
    assert.notEqual(other.headers.get("x-thread-id"), visitor.signed);
    assert.deepEqual(await other.json(), [null]);
  }],

  ["writes without a read are merged in order", async (stage) => {
    const [a] = stage.apps;
    const visitor = new Visitor(stage);
    await visitor.do(a, ["set", "gone", 1], ["set", "n", 1]);
    for (const n of range(20)) await visitor.run(a, ["push", "log", n], ["set", "n", n]);
    await visitor.do(
      a,
      ["delete", "gone"],
      ["set", "list", []],
      ["push", "list", { a: [] }],
      ["push", "n", "skipped, because n is not a list"],
      ["set", "undefined"],
      ["push", "nothing"],
    );
    await visitor.has({ log: range(20), n: 19, list: [{ a: [] }], nothing: [null] });
    const actions = stage.wire.of(visitor.id).map((call) => call.action);
    assert.ok(!actions.includes("save"), "the runtime loaded and saved a whole state");

    await visitor.do(a, ["set", "dropped", 1], ["clear"], ["set", "kept", 2]);
    await visitor.has({ kept: 2 });
  }],

  ["windows keep the newest records, pushed with and without a read", async (stage) => {
    const [a, b] = stage.apps;
    for (const read of [[], [["get", "log"]]]) {
      const visitor = new Visitor(stage);
      for (const n of range(12)) await visitor.do([a, b][n % 2], ...read, ["push", "log", n, 5]);
      await visitor.has({ log: [7, 8, 9, 10, 11] });
      await visitor.do(a, ...read, ["push", "log", 12, 0]);
      await visitor.has({ log: [] });
    }
  }],

  ["metadata can be set and emptied, and saves of the state keep it", async (stage) => {
    const [a, b] = stage.apps;
    const visitor = new Visitor(stage);
    const metadata = async (expected) =>
      eventually(async () => assert.deepEqual((await visitor.thread()).metadata, expected));

    await visitor.do(a, ["setMetadata", { user: "ada", tags: [] }]);
    await metadata({ user: "ada", tags: [] });
    const answers = await visitor.do(b, ["getMetadata"], ["empty"]);
    assert.deepEqual(answers, [{ user: "ada", tags: [] }, false]);
    await visitor.do(b, ["get", "name"], ["set", "name", "Ada"]);
    await visitor.do(a, ["set", "age", 36]);
    await metadata({ user: "ada", tags: [] });
    const changes = [["set", "name", "Augusta"], ["setMetadata", { user: "augusta" }]];
    await visitor.do(b, ["get", "name"], ...changes);
    await metadata({ user: "augusta" });
    await visitor.do(a, ["setMetadata", {}]);
    await metadata({});
    await visitor.has({ name: "Augusta", age: 36 });
  }],

  ["a destroyed thread is empty, and the same cookie can create it again", async (stage) => {
    const [a, b] = stage.apps;
    const visitor = new Visitor(stage);
    await visitor.do(a, ["set", "name", "Ada"], ["setMetadata", { user: "ada" }]);
    assert.deepEqual(await visitor.do(b, ["get", "name"]), ["Ada"]);

    await visitor.do(a, ["destroy"]);
    assert.equal((await visitor.thread()).exists, false);
    const headers = { authorization: `Bearer ${stage.key}` };
    const archive = await request(`${stage.url}/v1/archives/${visitor.id}`, { headers });
    assert.deepEqual((await archive.json()).state, { name: "Ada" });
    assert.deepEqual(await visitor.do(b, ["get", "name"], ["getMetadata"]), [null, {}]);
    await visitor.do(b, ["set", "name", "Grace"]);
    await visitor.has({ name: "Grace" });
    await visitor.do(a, ["destroy"], ["destroy"]);
    await visitor.has({});
  }],

  ["the start and the end of a session get a response", async (stage) => {
    const countAnswered = async (method) => {
      const metrics = await (await request(`${stage.url}/metrics`)).text();
      const line = `threadkeep_http_requests_total{route="/session",method="${method}",status="200"}`;
      return Number(metrics.split(line)[1]?.split("\n")[0] ?? 0);
    };
    const before = await countAnswered("PUT");
    await new Visitor(stage).do(stage.apps[0], ["size"]);
    assert.ok((await countAnswered("PUT")) > before);
    assert.ok((await countAnswered("POST")) > 0);
  }],
];
