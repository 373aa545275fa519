// Checks the size limit of app states, and that /v1 returns the state that the app sees.

import assert from "node:assert/strict";

import { Visitor, request, eventually } from "./visitor.mjs";

// Returns the JSON text that the server stores when keys are set one at a time, with the keys sorted by bytes.
function textOf(entries) {
  const bytes = ([key]) => Buffer.from(key);
  const members = Object.entries(entries)
    .sort((a, b) => Buffer.compare(bytes(a), bytes(b)))
    .map(([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`);
  return `{${members.join(",")}}`;
}

export const states = [
  ["a merge beyond 1 MiB is rejected, and the state is unchanged", async (stage) => {
    const [a, b] = stage.apps;
    const visitor = new Visitor(stage);
    await visitor.do(a, ["set", "first", "1".repeat(700_000)]);
    await visitor.do(a, ["set", "small", 1], ["set", "second", "2".repeat(700_000)]);
    const rejected = stage.wire.of(visitor.id).filter((call) => call.answer?.success === false);
    assert.equal(rejected.length, 1);
    assert.match(rejected[0].answer.error, /1048576|1,048,576/);
    await visitor.has({ first: "1".repeat(700_000) });
    await visitor.do(b, ["set", "small", 2]);
    await visitor.has({ first: "1".repeat(700_000), small: 2 });
  }],

  ["a state of nearly 1 MiB is saved and restored", async (stage) => {
    const [a, b] = stage.apps;
    const visitor = new Visitor(stage);
    // each quotation mark takes two bytes in the stored state and four bytes in the WebSocket frame
    const text = '"'.repeat(524_200);
    await visitor.do(a, ["get", "text"], ["set", "text", text]);
    assert.equal(stage.wire.of(visitor.id).at(-1).action, "save");
    await visitor.has({ text });
    assert.deepEqual(await visitor.do(b, ["get", "text"]), [text]);
  }],

  ["/v1 returns the state of an app byte for byte", async (stage) => {
    const [a, b] = stage.apps;
    const entries = {
      "": "a key without a name",
      a: [], b: {}, "a/b c%": { z: 1, a: [[], {}, null] }, "😀": "é \u2028 😀",
      state: { metadata: 1 }, metadata: "a name like any other", ".": 0, "..": -0.5,
      big: 1e21, exact: 9007199254740991, small: 5e-324,
      half: "\ud83d", control: "\u0000\u001f\u007f",
      ["__proto__"]: { polluted: true },
    };
    const steps = Object.entries(entries).map(([key, value]) => ["set", key, value]);
    for (const read of [[], [["size"]]]) {
      const visitor = new Visitor(stage);
      await visitor.do(a, ...read, ...steps);
      await eventually(async () => assert.equal(await visitor.stateText(), textOf(entries)));
      const answers = await visitor.do(b, ...Object.keys(entries).map((key) => ["get", key]));
      assert.deepEqual(answers, Object.values(entries));
    }
  }],

  ["the app and /v1 access the same thread by its id", async (stage) => {
    const [a] = stage.apps;
    const current = (path, init) => request(`${stage.url}/v1/threads/current${path}`, init);

    const visitor = new Visitor(stage);
    await visitor.do(a, ["push", "messages", "from the app"]);
    for (const headers of [{ cookie: visitor.cookie }, { "x-thread-id": visitor.signed }]) {
      const init = { method: "POST", headers, body: "from /v1" };
      const response = await current("/state/messages/push", init);
      assert.equal(response.status, 200);
      assert.equal(response.headers.get("x-thread-id"), visitor.signed);
      assert.equal(response.headers.get("set-cookie"), null, "the browser has it");
    }
    const messages = ["from the app", "from /v1", "from /v1"];
    assert.deepEqual(await visitor.do(a, ["get", "messages"]), [messages]);

    // a number that JavaScript cannot represent stays exact until an app loads it
    const created = await current("/state/exact", { method: "PUT", text: "9007199254740993" });
    const other = new Visitor(stage, {
      cookie: created.headers.get("set-cookie").split(";")[0],
      signed: created.headers.get("x-thread-id"),
    });
    await other.do(a, ["push", "messages", "from the app"]);
    await eventually(async () => {
      const expected = '{"exact":9007199254740993,"messages":["from the app"]}';
      assert.equal(await other.stateText(), expected);
    });
  }],
];
