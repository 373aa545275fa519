import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { type Client, ConflictError, createClient, EffectFailed, EffectInDoubt, NOT_DONE, NotFoundError, ReusedError, TooLargeError, type Thread, type Turn } from "threadkeep";
import { type Fault, type Proxy, startProxy } from "./support/proxy.js";
import { API_KEY, startServer } from "./support/server.js";
import { gate, until } from "./support/until.js";

let proxy: Proxy;
let client: Client;
before(async () => {
  proxy = await startProxy((await startServer()).url);
  client = createClient({ baseUrl: proxy.url, apiKey: API_KEY });
});

async function inTurn<T>(thread: Thread, act: (turn: Turn) => Promise<T>): Promise<T> {
  const turn = await thread.turn({ waitSeconds: 30 });
  try {
    return await act(turn);
  } finally {
    await turn.release();
  }
}

const crash = () => {
  throw new Error("crash");
};

/** Leaves the effect `call_1` in doubt, like a process that dies after it has called the tool. Returns its key. */
async function doubt(thread: Thread): Promise<string> {
  let key = "";
  const dying = inTurn(thread, (turn) =>
    turn.effect("call_1", "send", { to: "ada" }, (effect) => {
      key = effect.key;
      return crash();
    }),
  );
  await assert.rejects(dying, { message: "crash" });
  return key;
}

describe("effects", () => {
  test("turns count from 1, and count the effects in doubt", async () => {
    const thread = await client.threads.create();
    assert.equal((await thread.turnState()).number, 0);
    await inTurn(thread, async ({ number, inDoubt }) => assert.deepEqual([number, inDoubt], [1, 0]));
    await doubt(thread);
    await inTurn(thread, async ({ number, inDoubt }) => assert.deepEqual([number, inDoubt], [3, 1]));
    const { held, number } = await thread.turnState();
    assert.deepEqual([held, number], [false, 3]);
  });

  test("a tool runs once, and later calls in this turn and others return its result", async () => {
    const thread = await client.threads.create();
    let runs = 0;
    const run = async () => ({ runs: ++runs, at: new Date(0), none: undefined, a_b: [null] });
    const recorded = { runs: 1, at: "1970-01-01T00:00:00.000Z", a_b: [null] };
    await inTurn(thread, async (turn) => {
      assert.deepEqual(await turn.effect("call_1", "send", { to: "ada", cc: null }, run), recorded);
      assert.deepEqual(await turn.effect("call_1", "send", { cc: null, to: "ada" }, run), recorded);
      assert.equal(await turn.effect("call_2", "send", undefined, () => undefined), null);
    });
    await inTurn(thread, async (turn) => {
      assert.deepEqual(await turn.effect("call_1", "send", { to: "ada", cc: null }, run), recorded);
      assert.equal(await turn.effect("call_2", "send", null, crash), null);
    });
    assert.equal(runs, 1);
  });

  test("an ID cannot be reused for another tool or other arguments", async () => {
    const thread = await client.threads.create();
    await inTurn(thread, async (turn) => {
      await turn.effect("call_1", "send", [1], () => 1);
      for (const [tool, args] of [["other", [1]], ["send", [2]]] as const) {
        const reused = turn.effect("call_1", tool, args, crash);
        await assert.rejects(reused, (error) => error instanceof ReusedError && error.code === "effect_reused");
      }
    });
  });

  test("branches of a turn run a tool once", async () => {
    const thread = await client.threads.create();
    await inTurn(thread, async (turn) => {
      const held = gate();
      proxy.requests.length = 0;
      let runs = 0;
      const branches = [1, 2, 3].map(() => turn.effect("call_1", "send", {}, () => held.opened.then(() => ++runs)));
      await until("another branch waits", () => proxy.requests.some(({ method, path }) => method === "GET" && path.includes("/effects/")));
      held.open();
      assert.deepEqual(await Promise.all(branches), [1, 1, 1]);
    });
  });

  test("a result that is not recorded because it is too large leaves the effect open", async () => {
    const thread = await client.threads.create();
    await inTurn(thread, async (turn) => {
      await assert.rejects(turn.effect("call_1", "read", {}, () => "x".repeat(70_000)), TooLargeError);
      await assert.rejects(turn.effect("call_1", "read", {}, crash), EffectInDoubt);
    });
  });

  test("an application's own JSON reads and writes results and errors", async () => {
    const json = {
      parse: (text: string) => JSON.parse(text, (_, value) => (typeof value === "string" && /^n\d+$/.test(value) ? BigInt(value.slice(1)) : value)),
      stringify: (value: unknown) => JSON.stringify(value, (_, one) => (typeof one === "bigint" ? `n${one}` : one)),
    };
    const thread = createClient({ baseUrl: proxy.url, apiKey: API_KEY, json }).thread((await client.threads.create()).id!);
    await inTurn(thread, async (turn) => {
      for (const run of [() => ({ big: 12n }), crash]) assert.deepEqual(await turn.effect("n1", "add", { big: 1n }, run), { big: 12n });
      const fail = () => Promise.reject(new EffectFailed(7n));
      for (const run of [fail, crash]) await assert.rejects(turn.effect("n2", "add", {}, run), { name: "EffectFailed", error: 7n });
    });
    assert.deepEqual((await thread.effects.get("n1")).result, { big: 12n });
    assert.equal((await thread.effects.get("n2")).error, 7n);
  });
});

describe("failures", () => {
  test("a failure is recorded, and the tool runs again only if the caller retries", async () => {
    const thread = await client.threads.create();
    const fail = async () => {
      throw new EffectFailed({ reason: "no such address" });
    };
    const failed = (attempt: number) => (error: unknown) => {
      assert.ok(error instanceof EffectFailed);
      assert.deepEqual([error.code, error.error, error.attempt], ["effect_failed", { reason: "no such address" }, attempt]);
      return true;
    };
    await inTurn(thread, async (turn) => {
      await assert.rejects(turn.effect("call_1", "send", {}, fail), failed(1));
      await assert.rejects(turn.effect("call_1", "send", {}, crash), failed(1));
      await assert.rejects(turn.effect("call_1", "send", {}, fail, { retry: true }), failed(2));
    });
    await inTurn(thread, async (turn) => {
      await assert.rejects(turn.effect("call_1", "send", {}, crash), failed(2));
      assert.equal(await turn.effect("call_1", "send", {}, ({ attempt }) => attempt, { retry: true }), 3);
      assert.equal(await turn.effect("call_1", "send", {}, crash, { retry: true }), 3);
    });
  });

  test("another error leaves the effect in doubt", async () => {
    const thread = await client.threads.create();
    const key = await doubt(thread);
    assert.match(key, /^[0-9a-f-]{36}$/);
    await inTurn(thread, async (turn) => {
      await assert.rejects(turn.effect("call_1", "send", { to: "ada" }, crash), (error) => {
        assert.ok(error instanceof EffectInDoubt);
        assert.deepEqual([error.code, error.id, error.key, error.attempt], ["effect_in_doubt", "call_1", key, 1]);
        return true;
      });
    });
  });

  test("a check that finds the tool's work records it, and the tool does not run", async () => {
    const thread = await client.threads.create();
    const key = await doubt(thread);
    await inTurn(thread, async (turn) => {
      const check = async (key: string) => ({ key, at: new Date(0) });
      const found = { key, at: "1970-01-01T00:00:00.000Z" };
      assert.deepEqual(await turn.effect<unknown>("call_1", "send", { to: "ada" }, crash, { check }), found);
      assert.deepEqual(await turn.effect("call_1", "send", { to: "ada" }, crash), found);
    });
  });

  test("a check that returns NOT_DONE runs the next attempt with the same key", async () => {
    const thread = await client.threads.create();
    const key = await doubt(thread);
    await inTurn(thread, async (turn) => {
      const run = (effect: { key: string; attempt: number }) => [effect.key, effect.attempt];
      assert.deepEqual(await turn.effect("call_1", "send", { to: "ada" }, run, { check: () => NOT_DONE }), [key, 2]);
    });
  });

  test("an idempotent tool runs again with the same key", async () => {
    const thread = await client.threads.create();
    const key = await doubt(thread);
    await inTurn(thread, async (turn) => {
      const run = (effect: { key: string; attempt: number }) => [effect.key, effect.attempt];
      assert.deepEqual(await turn.effect("call_1", "send", { to: "ada" }, run, { idempotent: true }), [key, 2]);
    });
  });

  test("a later call in the turn in which the tool threw does not wait, and does not run the tool unchecked", async () => {
    const thread = await client.threads.create();
    await inTurn(thread, async (turn) => {
      const call = (run: () => unknown, o?: object) => turn.effect("call_1", "send", {}, run, o);
      await assert.rejects(call(crash), { message: "crash" });
      await assert.rejects(call(() => 1), EffectInDoubt);
      await assert.rejects(call(crash, { check: () => NOT_DONE }), { message: "crash" });
      assert.equal(await call(crash, { check: () => "sent" }), "sent");
      await assert.rejects(turn.effect("call_2", "read", {}, crash, { idempotent: true }), { message: "crash" });
      assert.equal(await turn.effect("call_2", "read", {}, ({ attempt }) => attempt, { idempotent: true }), 1);
    });
  });

  test("a branch that waits takes over when the other branch throws", async () => {
    const thread = await client.threads.create();
    await inTurn(thread, async (turn) => {
      const [running, held] = [gate(), gate()];
      const first = turn.effect("call_1", "send", {}, () => (running.open(), held.opened.then(crash)));
      first.catch(() => {});
      await running.opened;
      proxy.requests.length = 0;
      const second = turn.effect("call_1", "send", {}, () => "second", { check: () => NOT_DONE });
      await until("the second branch waits", () => proxy.requests.some(({ method }) => method === "GET"));
      held.open();
      assert.equal(await second, "second");
      await assert.rejects(first, { message: "crash" });
    });
  });

  test("the result of a process that has lost its turn counts", async () => {
    const thread = await client.threads.create();
    const held = gate();
    const lost = await thread.turn();
    const late = lost.effect("call_1", "send", {}, () => held.opened.then(() => "late"));
    await until("the tool runs", async () => (await thread.effects.get("call_1").catch(() => undefined))?.state === "running");
    await lost.release();
    await inTurn(thread, async (turn) => {
      await assert.rejects(turn.effect("call_1", "send", {}, crash), EffectInDoubt);
      held.open();
      assert.equal(await late, "late");
      assert.equal(await turn.effect("call_1", "send", {}, crash), "late");
      await assert.rejects(lost.effect("call_2", "send", {}, crash), (error) => error instanceof ConflictError && error.code === "turn_lost");
    });
  });

  for (const [name, fault] of Object.entries<Fault>({ "a lost response": { loseResponse: true }, "a broken connection": { drop: true } })) {
    test(`a tool runs once after ${name}`, async (t) => {
      t.after(() => (proxy.fault = () => undefined));
      const thread = await client.threads.create();
      await inTurn(thread, async (turn) => {
        const failed = new Set<string>();
        proxy.fault = ({ method, path }) => {
          if (!path.includes("/effects/") || failed.has(method)) return undefined;
          failed.add(method);
          return fault;
        };
        let runs = 0;
        assert.equal(await turn.effect("call_1", "send", {}, () => ++runs), 1);
        assert.deepEqual([...failed], ["POST", "PUT"]);
        assert.equal((await thread.effects.get("call_1")).result, 1);
      });
    });
  }

  test("a call repeats a begin whose responses were all lost", async (t) => {
    t.after(() => (proxy.fault = () => undefined));
    const thread = await client.threads.create();
    await inTurn(thread, async (turn) => {
      proxy.fault = ({ path }) => (path.includes("/effects/") ? { loseResponse: true } : undefined);
      await assert.rejects(turn.effect("call_1", "send", {}, crash), { code: "connection" });
      proxy.fault = () => undefined;
      assert.equal(await turn.effect("call_1", "send", {}, ({ attempt }) => attempt), 1);
    });
  });
});

describe("records", () => {
  test("a thread returns an effect with its result, and lists effects without, newest first", async () => {
    const thread = await client.threads.create();
    const ids = Array.from({ length: 120 }, (_, index) => `call/${index}`);
    await inTurn(thread, async (turn) => {
      for (const id of ids) await turn.effect(id, "count", {}, () => ({ snake_case: id }));
      await assert.rejects(turn.effect("failed", "count", {}, () => Promise.reject(new EffectFailed("why"))), EffectFailed);
    });
    const { begunAt, hash, idempotencyKey, ...effect } = await thread.effects.get("call/7");
    assert.deepEqual(effect, { id: "call/7", state: "done", tool: "count", attempt: 1, turn: 1, result: { snake_case: "call/7" } });
    assert.deepEqual([Date.parse(begunAt) > 0, hash.length, idempotencyKey.length], [true, 64, 36]);
    assert.equal((await thread.effects.get("failed")).error, "why");
    const all = [];
    for await (const effect of thread.effects.list()) all.push(effect);
    assert.deepEqual(all.map(({ id }) => id), ["failed", ...ids.reverse()]);
    assert.ok(all.every((effect) => !("result" in effect) && !("error" in effect)));
    for await (const { id } of thread.effects.list({ state: "failed" })) assert.equal(id, "failed");
    for await (const effect of thread.effects.list({ state: "in_doubt" })) assert.fail(effect.id);
    await assert.rejects(thread.effects.get("none"), NotFoundError);
  });

  test("a merge settles an effect together with other operations, or does nothing", async () => {
    const thread = await client.threads.create();
    await inTurn(thread, async (turn) => {
      const result = await turn.effect("call_1", "send", {}, async ({ id, fence }) => {
        const { results } = await turn.thread.merge([
          { op: "settle", effect: id, fence, result: "sent" },
          { op: "append", id, value: { role: "tool", content: "sent" } },
        ]);
        assert.deepEqual(results[0], { state: "done", repeated: false });
        return "sent";
      });
      assert.equal(result, "sent");
    });
    await doubtOf(thread, "call_2");
    await inTurn(thread, async (turn) => {
      const failure = { op: "settle", effect: "call_2", error: { reason: null } } as const;
      const refused = turn.thread.merge([{ op: "set", key: "a", value: 1 }, { ...failure, effect: "none" }]);
      await assert.rejects(refused, (error) => error instanceof NotFoundError && (error as { operation?: number }).operation === 1);
      assert.equal(await thread.has("a"), false);
      assert.deepEqual((await turn.thread.merge([failure])).results, [{ state: "failed", repeated: false }]);
    });
    assert.deepEqual((await thread.effects.get("call_2")).error, { reason: null });
  });
});

const doubtOf = (thread: Thread, id: string) =>
  assert.rejects(inTurn(thread, (turn) => turn.effect(id, "send", {}, crash)), { message: "crash" });
