// Tests concurrent writers to one thread.

import assert from "node:assert/strict";

import { Visitor, eventually, range, release, settled } from "./visitor.mjs";

const sorted = (numbers) => [...numbers].sort((a, b) => a - b);

// Calls `act` once for each number below `count`. The apps run concurrently, but each app runs one call at a time.
async function runInterleaved(apps, count, act) {
  let next = 0;
  const run = async (app) => {
    while (next < count) await act(app, next++);
  };
  await Promise.all(apps.map(run));
}

export const concurrent = [
  ["concurrent pushes from both processes are all stored", async (stage) => {
    const visitor = new Visitor(stage);
    await visitor.do(stage.apps[0], ["set", "log", []]);
    await Promise.all(range(50).map((n) => visitor.run(stage.apps[n % 2], ["push", "log", n])));
    await Promise.all(stage.apps.map(settled));
    assert.deepEqual(sorted((await visitor.state()).log), range(50));
  }],

  ["concurrent pushes from both processes after a read are all stored", async (stage) => {
    const visitor = new Visitor(stage);
    await visitor.do(stage.apps[0], ["set", "log", []]);
    const read = ["get", "log"];
    await runInterleaved(stage.apps, 50, (app, n) => visitor.do(app, read, ["push", "log", n]));
    await eventually(async () => assert.deepEqual(sorted((await visitor.state()).log), range(50)));
  }],

  ["keys that both processes set concurrently after a read are all stored", async (stage) => {
    const visitor = new Visitor(stage);
    await visitor.do(stage.apps[0], ["set", "first", true], ["set", "second", true]);
    const change = (n) => (n === 10 ? ["delete", "second"] : ["set", `key ${n}`, n]);
    await runInterleaved(stage.apps, 20, (app, n) => visitor.do(app, ["entries"], change(n)));
    const keys = range(20).filter((n) => n !== 10).map((n) => [`key ${n}`, n]);
    await visitor.has({ first: true, ...Object.fromEntries(keys) });
  }],

  ["a slow handler does not undo writes of other requests in its process", async (stage) => {
    const [a] = stage.apps;
    const visitor = new Visitor(stage);
    await visitor.do(a, ["push", "log", "before"]);
    const calls = stage.wire.of(visitor.id).length;
    const slow = visitor.run(a, ["get", "log"], ["hold", "slow"], ["push", "log", "slow"]);
    await eventually(() => assert.ok(stage.wire.of(visitor.id)[calls]?.answer, "nothing was read"));
    await visitor.run(a, ["push", "log", "during it"]);
    await visitor.has({ log: ["before", "during it"] });
    await visitor.run(a, ["get", "log"]);
    await release(a, "slow");
    await slow;
    await settled(a);
    await visitor.has({ log: ["before", "during it", "slow"] });
  }],

  ["overlapping requests in both processes lose no writes", async (stage) => {
    const visitor = new Visitor(stage);
    await visitor.do(stage.apps[0], ["set", "log", []]);
    await runInterleaved(range(10).flatMap(() => stage.apps), 50, (app, n) =>
      visitor.run(app, ["get", "log"], ["push", "log", n]));
    await Promise.all(stage.apps.map(settled));
    assert.deepEqual(sorted((await visitor.state()).log), range(50));
  }],
];
