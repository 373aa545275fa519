// Checks that no acknowledged write is lost when Redis or a replica fails under traffic.

import assert from "node:assert/strict";

import { Visitor, eventually, release, settled } from "./visitor.mjs";

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Pushes to threads from both processes until `stop` is called. Half of the requests first read the thread.
class Traffic {
  #stopped = false;
  #next = 0;
  #runs;

  static async start(stage) {
    const traffic = new Traffic();
    traffic.stage = stage;
    traffic.visitors = [0, 1, 2, 3].map(() => new Visitor(stage));
    await Promise.all(traffic.visitors.map((visitor) =>
      visitor.do(stage.apps[0], ["set", "before", "the outage"], ["set", "log", []])));
    traffic.#runs = traffic.visitors.flatMap((visitor, n) =>
      stage.apps.map((app) => traffic.#push(visitor, app, n % 2 ? [["get", "log"]] : [])));
    return traffic;
  }

  async #push(visitor, app, read) {
    while (!this.#stopped) {
      await visitor.run(app, ...read, ["push", "log", this.#next++]);
      await pause(20);
    }
  }

  // Returns, for each write frame in order, the last number in the log and whether the server acknowledged the frame.
  #writes(visitor) {
    const calls = this.stage.wire.of(visitor.id);
    const writes = calls.filter(({ action }) => action === "merge" || action === "save");
    return writes.slice(1).map(({ action, data, answer }) => {
      const { value } = action === "merge" ? data.operations.at(-1) : {};
      const number = value ?? JSON.parse(data.user_data).state.log.at(-1);
      return { number, isAcknowledged: answer?.success === true };
    });
  }

  #acknowledged(visitor) {
    const acknowledged = this.#writes(visitor).filter((write) => write.isAcknowledged);
    return acknowledged.map((write) => write.number);
  }

  // Stops the traffic. Asserts that each acknowledged push was stored exactly once, and that the initial content still
  // exists. Returns a line with the counts.
  async stop() {
    this.#stopped = true;
    await Promise.all(this.#runs);
    await Promise.all(this.stage.apps.map(settled));
    let [sent, acknowledged, stored] = [0, 0, 0];
    for (const visitor of this.visitors) {
      const { before, log } = await visitor.state();
      assert.equal(before, "the outage", "content from before the outage is lost");
      assert.equal(new Set(log).size, log.length, `written twice: ${log}`);
      const lost = this.#acknowledged(visitor).filter((number) => !log.includes(number));
      assert.deepEqual(lost, [], "acknowledged, and lost");
      sent += this.#writes(visitor).length;
      acknowledged += this.#acknowledged(visitor).length;
      stored += log.length;
    }
    const requests = `${this.#next} requests, for which the runtime sent ${sent} writes`;
    return `${requests}: ${acknowledged} were acknowledged, ${stored} are stored`;
  }

  // Waits until `count` more requests are acknowledged.
  async advance(count) {
    const total = () => this.visitors.flatMap((visitor) => this.#acknowledged(visitor)).length;
    const goal = total() + count;
    await eventually(() => assert.ok(total() >= goal, "no more requests are acknowledged"));
  }
}

async function reconnectApps(stage) {
  const before = stage.wire.authenticated;
  stage.proxy.cut();
  stage.proxy.restore();
  await eventually(() => assert.ok(stage.wire.authenticated >= before + 2, "an app did not reconnect"));
}

export const outages = [
  ["Redis is unreachable for 5 s", async (stage) => {
    const traffic = await Traffic.start(stage);
    await traffic.advance(40);
    stage.redis.cut();
    // longer than the store timeout
    await pause(5_000);
    stage.redis.restore();
    await traffic.advance(40);
    return traffic.stop();
  }],

  ["a replica stops, and another replaces it", async (stage) => {
    const traffic = await Traffic.start(stage);
    await traffic.advance(40);
    assert.equal(await stage.replaceReplica(), 0);
    await traffic.advance(40);
    return traffic.stop();
  }],

  ["a handler that could not read the thread during an outage erases nothing", async (stage) => {
    const [a, b] = stage.apps;
    let visitor;
    let name;
    // retry, because on a busy machine the app may reconnect before its read, so that the read succeeds
    for (let tries = 0; name !== null; tries++) {
      assert.ok(tries < 50, "the read never fails");
      visitor = new Visitor(stage);
      await visitor.do(b, ["set", "name", "Ada"], ["set", "log", [1]]);
      const reconnected = reconnectApps(stage);
      const request = visitor.run(a, ["get", "name"], ["hold", "blind"], ["set", "blind", true]);
      await reconnected;
      await release(a, "blind");
      [name] = await request;
      await settled(a);
    }
    assert.equal(stage.wire.of(visitor.id).at(-1).action, "save");
    await visitor.has({ name: "Ada", log: [1], blind: true });
  }],

  ["a handler that reconnects between its read and its save overwrites nothing", async (stage) => {
    const [a, b] = stage.apps;
    const visitor = new Visitor(stage);
    await visitor.do(b, ["set", "name", "Ada"], ["set", "log", [1]]);
    const calls = stage.wire.of(visitor.id).length;
    const request = visitor.run(a, ["get", "name"], ["hold", "cut"], ["set", "late", true]);
    await eventually(() => assert.ok(stage.wire.of(visitor.id)[calls]?.answer, "nothing was read"));
    await reconnectApps(stage);
    await visitor.do(b, ["set", "meanwhile", true]);
    await release(a, "cut");
    assert.equal((await request)[0], "Ada");
    await settled(a);
    await visitor.has({ name: "Ada", log: [1], meanwhile: true, late: true });
  }],
];
