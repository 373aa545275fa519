/** Tests the requests of `turn.effect` with a fake server. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { describe, test, type TestContext } from "node:test";
import { createClient, type Turn } from "threadkeep";

interface Request {
  method: string;
  path: string;
  headers: Headers;
  body: any;
}

/** Takes a turn of a fake server, which answers each request about an effect with `answer`. */
async function fakeTurn(t: TestContext, answer: (request: Request) => object): Promise<{ turn: Turn; requests: Request[] }> {
  const requests: Request[] = [];
  const fakeFetch: typeof fetch = async (input, init) => {
    const { pathname: path } = new URL(String(input));
    if (path.endsWith("/turn")) return Response.json({ token: "turn_1", number: 1, in_doubt: 0 });
    const request = { method: init!.method!, path, headers: new Headers(init!.headers), body: init!.body && JSON.parse(String(init!.body)) };
    requests.push(request);
    return Response.json({ id: "call_1", attempt: 1, idempotency_key: "key_1", ...answer(request) });
  };
  const turn = await createClient({ baseUrl: "http://fake", apiKey: "key", fetch: fakeFetch }).thread("thrd_a").turn();
  t.after(() => turn.release());
  return { turn, requests };
}

const granted = () => ({ state: "granted", fence: "fence_1" });

describe("requests", () => {
  test("a begin has the token of the turn, and a settle has the fence", async (t) => {
    const { turn, requests } = await fakeTurn(t, granted);
    const run = (effect: object) => effect;
    const attempt = { id: "call_1", key: "key_1", attempt: 1, fence: "fence_1" };
    assert.deepEqual(await turn.effect("a/b", "send", {}, run, { idempotent: true }), attempt);
    const [begin, settle] = requests;
    assert.deepEqual([begin!.method, begin!.path], ["POST", "/v1/threads/thrd_a/effects/a%2Fb"]);
    assert.equal(begin!.headers.get("x-turn-token"), "turn_1");
    assert.match(begin!.headers.get("idempotency-key")!, /^[0-9a-f]{32}$/);
    assert.deepEqual(begin!.body, { tool: "send", hash: begin!.body.hash, idempotent: true });
    assert.equal(settle!.method, "PUT");
    assert.deepEqual(settle!.body, { fence: "fence_1", result: attempt });
  });

  test("a check settles an effect in doubt with the token of the turn, without a fence", async (t) => {
    const { turn, requests } = await fakeTurn(t, () => ({ state: "in_doubt" }));
    assert.equal(await turn.effect("call_1", "send", {}, () => "ran", { check: () => "found" }), "found");
    assert.deepEqual(requests[1]!.body, { result: "found" });
    assert.equal(requests[1]!.headers.get("x-turn-token"), "turn_1");
  });

  test("pauses grow from 50 ms to 1 s while another branch runs the tool", async (t) => {
    let isDone = false;
    const { turn, requests } = await fakeTurn(t, () => (isDone ? { state: "done", result: 7 } : { state: "running" }));
    const settle = async () => {
      for (let round = 0; round < 20; round++) await new Promise((resolve) => setImmediate(resolve));
    };
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const call = turn.effect("call_1", "send", {}, () => assert.fail("it must not run"));
    while (!requests.length) await settle();
    await settle();
    const times: number[] = [];
    for (let now = 10; times.length < 7; now += 10) {
      const before = requests.length;
      t.mock.timers.tick(10);
      await settle();
      if (requests.length > before) times.push(now);
    }
    assert.deepEqual(times, [50, 150, 350, 750, 1_550, 2_550, 3_550]);
    isDone = true;
    t.mock.timers.tick(1_000);
    assert.equal(await call, 7);
    // so that the release can clear the timer of the renewal
    t.mock.timers.reset();
    assert.ok(requests.slice(1).every(({ method }) => method === "GET"));
  });
});

describe("the hash of the arguments is that of their canonical form (RFC 8785)", () => {
  const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
  const hashOf = async (t: TestContext, args: unknown): Promise<string> => {
    const { turn, requests } = await fakeTurn(t, granted);
    await turn.effect("call_1", "send", args, () => 1);
    return requests[0]!.body.hash;
  };
  const double = (bits: string) => Buffer.from(bits, "hex").readDoubleBE();

  test("literals, numbers and text, as in section 3.2.2", async (t) => {
    const args = JSON.parse(String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`);
    const text = String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`;
    assert.equal(await hashOf(t, args), sha256(text));
  });

  test("members are sorted by UTF-16 code units at each level, as in section 3.2.3", async (t) => {
    const names = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\u{1f600}", "\ufb33"];
    const text = (value: string) => `{${names.map((name) => `${JSON.stringify(name)}:${value}`).join()}}`;
    const object = (value: unknown) => Object.fromEntries([...names].reverse().map((name) => [name, value]));
    assert.equal(await hashOf(t, object(object(0))), sha256(text(text("0"))));
    assert.equal(await hashOf(t, { 10: 1, 9: 2, 1: 3 }), sha256('{"1":3,"10":1,"9":2}'));
  });

  test("numbers have the form of ECMAScript, as in appendix B", async (t) => {
    const numbers = {
      "0000000000000000": "0",
      "8000000000000000": "0",
      "0000000000000001": "5e-324",
      "8000000000000001": "-5e-324",
      "7fefffffffffffff": "1.7976931348623157e+308",
      "ffefffffffffffff": "-1.7976931348623157e+308",
      "4340000000000000": "9007199254740992",
      "c340000000000000": "-9007199254740992",
      "4430000000000000": "295147905179352830000",
      "44b52d02c7e14af5": "9.999999999999997e+22",
      "44b52d02c7e14af6": "1e+23",
      "44b52d02c7e14af7": "1.0000000000000001e+23",
      "444b1ae4d6e2ef4e": "999999999999999700000",
      "444b1ae4d6e2ef4f": "999999999999999900000",
      "444b1ae4d6e2ef50": "1e+21",
      "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
      "3eb0c6f7a0b5ed8d": "0.000001",
      "41b3de4355555553": "333333333.3333332",
      "41b3de4355555554": "333333333.33333325",
      "41b3de4355555555": "333333333.3333333",
      "41b3de4355555556": "333333333.3333334",
      "41b3de4355555557": "333333333.33333343",
      "becbf647612f3696": "-0.0000033333333333333333",
      "43143ff3c1cb0959": "1424953923781206.2",
    };
    const args = Object.keys(numbers).map(double);
    assert.equal(await hashOf(t, args), sha256(`[${Object.values(numbers).join()}]`));
  });

  test("values have the form that JSON gives them, and no arguments are null", async (t) => {
    const args = { b: undefined, a: new Date(0), list: [undefined, 1] };
    assert.equal(await hashOf(t, args), sha256('{"a":"1970-01-01T00:00:00.000Z","list":[null,1]}'));
    assert.equal(await hashOf(t, undefined), sha256("null"));
    assert.equal(await hashOf(t, null), sha256("null"));
  });

  test("values without a canonical form are rejected before a request", async (t) => {
    const { turn, requests } = await fakeTurn(t, granted);
    for (const bad of [double("7fffffffffffffff"), Infinity, -Infinity, "\ud83d", { "\ude00": 1 }, 1n, () => 1]) {
      await assert.rejects(turn.effect("call_1", "send", { bad }, () => 1), TypeError);
    }
    assert.deepEqual(requests, []);
  });
});
