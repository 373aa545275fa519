import { randomUUID } from "node:crypto";
import { promisify } from "node:util";
import session from "express-session";
import { threadIdFor } from "threadkeep";
import { ThreadkeepStore } from "threadkeep/express-session";
import { afterEach, describe, expect, it } from "vitest";
import { startProcess } from "../support/processes.mjs";
import { startProxy } from "../support/proxy.mjs";
import { client, isLong, options, servers, unique } from "../support/servers.mjs";

const stops = [];
afterEach(() => stops.splice(0).forEach((stop) => stop()));

async function startApps(store, count, cookie = { maxAge: 600_000 }) {
  const prefix = randomUUID();
  const numbers = Array.from({ length: count }, (_, number) => number);
  const apps = await Promise.all(numbers.map((number) => startProcess("express-app", "serve", number, { store, prefix, cookie })));
  stops.push(...apps.map((app) => app.stop));
  return { prefix, addresses: apps.map((app) => app.result) };
}

/** Logs in and keeps the cookie. Reads whole responses, because the session is saved just before their last byte. */
async function logIn(address) {
  const response = await fetch(`${address}/login`);
  await response.text();
  const cookie = response.headers.get("set-cookie").split(";")[0];
  const send = async (url, method = "POST") => {
    const response = await fetch(url, { method, headers: { cookie } });
    return { status: response.status, body: await response.json() };
  };
  return { cookie, send };
}

async function release(addresses, count) {
  const getAll = async (path) => Promise.all(addresses.map(async (address) => (await fetch(address + path)).json()));
  await expect.poll(async () => (await getAll("/held")).reduce((sum, held) => sum + held)).toBe(count);
  await getAll("/release");
}

async function overlap(addresses, count) {
  const { send } = await logIn(addresses[0]);
  const ids = Array.from({ length: count }, (_, index) => `id-${index}`);
  const visits = ids.map((id, index) => send(`${addresses[index % addresses.length]}/visit/${id}`));
  await release(addresses, count);
  await Promise.all(visits);
  const { body: state } = await send(`${addresses[0]}/read`, "GET");
  return {
    elements: state.visits.length,
    members: Object.keys(state.cart.items).length,
    keys: ids.filter((id) => state[`key-${id}`] === id).length,
  };
}

it("keeps all changes of overlapping requests in two processes, unlike express-session's own store", async () => {
  const count = isLong ? 60 : 20;
  const memory = await overlap((await startApps("memory", 1)).addresses, count);
  const threadkeep = await overlap((await startApps("threadkeep", 2)).addresses, count);

  const line = (name, { elements, members, keys }) =>
    `${name}: of ${count} overlapping requests, the session kept ${elements} elements, ${members} members and ${keys} keys`;
  console.log([line("MemoryStore, one process", memory), line("ThreadkeepStore, two processes", threadkeep)].join("\n"));
  expect(threadkeep).toEqual({ elements: count, members: count, keys: count });
  expect(memory.elements).toBeLessThan(count / 2);
});

it("does not recreate a session when a request that began before the logout ends after it", async () => {
  const { addresses, prefix } = await startApps("threadkeep", 2);
  const { send, cookie } = await logIn(addresses[0]);
  const slow = send(`${addresses[1]}/slow`);
  await expect.poll(async () => (await fetch(`${addresses[1]}/held`)).json()).toBe(1);

  await send(`${addresses[0]}/logout`);
  await release([addresses[1]], 1);
  const late = await slow;

  expect(late.status).toBe(200);
  expect((await send(`${addresses[0]}/read`, "GET")).body).toEqual({});
  const sid = decodeURIComponent(cookie).split("s:")[1].split(".")[0];
  expect(await (await client().thread(await threadIdFor(sid, prefix))).info()).toMatchObject({ exists: false });
});

it("sets the TTL of the thread to the cookie's maximum age", async () => {
  const { addresses, prefix } = await startApps("threadkeep", 1, { maxAge: 123_000 });
  const { cookie } = await logIn(addresses[0]);

  const sid = decodeURIComponent(cookie).split("s:")[1].split(".")[0];
  expect(await (await client().thread(await threadIdFor(sid, prefix))).info()).toMatchObject({ ttlSeconds: 123 });
});

describe("the store", () => {
  const store = new ThreadkeepStore(options());
  const load = promisify(store.load.bind(store));
  const set = promisify(store.set.bind(store));
  const get = promisify(store.get.bind(store));
  const touch = promisify(store.touch.bind(store));
  const destroy = promisify(store.destroy.bind(store));
  const threadOf = async (sid) => client().thread(await threadIdFor(sid, "sess"));
  const cookie = (ms = 600_000) => ({ originalMaxAge: ms, expires: new Date(Date.now() + ms), path: "/", httpOnly: true });
  let sid;

  async function both(initial, first, second) {
    sid = unique("merge");
    await set(sid, { cookie: cookie(), ...initial });
    const [a, b] = [await load(sid), await load(sid)];
    first(a);
    second(b);
    await set(sid, a);
    await set(sid, b);
    const { cookie: _, ...rest } = await get(sid);
    return rest;
  }

  it.each([
    ["plain values: the later one wins", { a: 1 }, (s) => (s.a = 2), (s) => (s.a = 3), { a: 3 }],
    ["a change and a value that was not touched", { a: 1, b: 1 }, (s) => (s.a = 2), (s) => (s.b = 2), { a: 2, b: 2 }],
    ["a deleted key", { a: 1, b: 1 }, (s) => delete s.a, (s) => (s.b = 2), { b: 2 }],
    ["two new arrays", {}, (s) => (s.a = [1]), (s) => (s.a = [2]), { a: [1, 2] }],
    ["elements", { a: [0] }, (s) => s.a.push(1), (s) => s.a.push(2), { a: [0, 1, 2] }],
    ["an element and another array", { a: [0, 1] }, (s) => s.a.push(2), (s) => (s.a = [5]), { a: [5, 2] }],
    ["an element and a removed one", { a: [0, 1] }, (s) => s.a.push(2), (s) => s.a.shift(), { a: [1, 2] }],
    ["an element and an edited one", { a: [0, 1] }, (s) => s.a.push(2), (s) => (s.a[0] = 5), { a: [5, 1, 2] }],
    ["an element and a member of another", { a: [{ n: 1 }] }, (s) => s.a.push(2), (s) => (s.a[0].m = 5), { a: [{ n: 1, m: 5 }, 2] }],
    ["an element and an emptied array", { a: [0, 1] }, (s) => s.a.push(2), (s) => (s.a = []), { a: [2] }],
    ["an emptied array and an element", { a: [0, 1] }, (s) => (s.a = []), (s) => s.a.push(2), { a: [2] }],
    ["two removed elements", { a: [0, 0, 1, 2] }, (s) => s.a.shift(), (s) => s.a.pop(), { a: [0, 1] }],
    ["the same element removed twice", { a: [0, 1] }, (s) => s.a.shift(), (s) => s.a.shift(), { a: [1] }],
    ["an element that a member of a member loses", { o: { a: [0, 1] } }, (s) => s.o.a.push(2), (s) => s.o.a.shift(), { o: { a: [1, 2] } }],
    ["an element and a value that replaces the array", { a: [0] }, (s) => (s.a = "x"), (s) => s.a.push(1), { a: [0, 1] }],
    ["elements under a name that all objects have", {}, (s) => (s.toLocaleString = [1]), (s) => (s.toLocaleString = [2]), { toLocaleString: [1, 2] }],
    [
      "an edited element and a reversed list",
      { a: [{ id: 1, q: 1 }, { id: 2, q: 1 }] },
      (s) => (s.a[1].q = 5),
      (s) => s.a.reverse(),
      { a: [{ id: 1, q: 1 }, { id: 2, q: 5 }] },
    ],
    ["elements of a bounded list", { a: [1, 2, 3] }, (s) => s.a.push(5) && s.a.shift(), (s) => s.a.push(4) && s.a.shift(), { a: [2, 3, 4, 5] }],
    [
      "objects of a bounded list",
      { a: [{ n: 1 }, { n: 2 }] },
      (s) => s.a.push({ n: 4 }) && s.a.shift(),
      (s) => s.a.push({ n: 3 }) && s.a.shift(),
      { a: [{ n: 2 }, { n: 3 }, { n: 4 }] },
    ],
    ["elements before the others", { a: [1] }, (s) => s.a.unshift(8), (s) => s.a.unshift(9), { a: [9, 1, 8] }],
    ["elements that replace all others", { a: [{ id: 1 }] }, (s) => (s.a = [{ id: 3, x: 1 }]), (s) => (s.a = [{ id: 2 }]), { a: [{ id: 2 }, { id: 3, x: 1 }] }],
    [
      "members of the same elements",
      { a: [{ id: 1, q: 1 }, { sku: "x", q: 1 }] },
      (s) => s.a.forEach((item) => (item.gift = true)),
      (s) => s.a.forEach((item) => (item.q = 2)),
      { a: [{ id: 1, q: 2, gift: true }, { sku: "x", q: 2, gift: true }] },
    ],
    ["plain elements at the same index: the later one wins", { a: [0, 0] }, (s) => (s.a[0] = 1), (s) => (s.a = [2, 3]), { a: [2, 3] }],
    ["a new array and a new empty one", {}, (s) => (s.a = [2]), (s) => (s.a ??= []), { a: [2] }],
    ["a value and a new empty array", {}, (s) => (s.b = 1), (s) => (s.a ??= []), { b: 1, a: [] }],
    ["members", { o: { x: 1 } }, (s) => (s.o.y = 2), (s) => (s.o.z = 3), { o: { x: 1, y: 2, z: 3 } }],
    ["a deleted member", { o: { x: 1, y: 1 } }, (s) => delete s.o.x, (s) => (s.o.y = 2), { o: { y: 2 } }],
    ["members of members", { o: { p: { x: 1 } } }, (s) => (s.o.p.y = [1]), (s) => (s.o.p.z = 3), { o: { p: { x: 1, y: [1], z: 3 } } }],
    ["elements of members", { o: { a: [0] } }, (s) => s.o.a.push(1), (s) => s.o.a.push(2), { o: { a: [0, 1, 2] } }],
    ["two new objects", {}, (s) => (s.o = { x: 1 }), (s) => (s.o = { y: 2 }), { o: { x: 1, y: 2 } }],
    ["odd names", {}, (s) => (s["."] = 1), (s) => (s["a/b ü"] = { "": 1 }), { ".": 1, "a/b ü": { "": 1 } }],
  ])("merges %s", async (_, initial, first, second, expected) => {
    expect(await both(initial, first, second)).toEqual(expected);
  });

  it("sends only the changes, in one write", async () => {
    const proxy = await startProxy(servers[0]);
    stops.push(proxy.stop);
    const proxied = new ThreadkeepStore({ ...options(), baseUrl: proxy.url });
    sid = unique("changes");
    await set(sid, { cookie: cookie(), large: "x".repeat(10_000), a: [1] });
    const loaded = await promisify(proxied.load.bind(proxied))(sid);
    loaded.a.push(2);
    proxy.requests.length = 0;

    await promisify(proxied.set.bind(proxied))(sid, loaded);

    expect(proxy.requests).toHaveLength(1);
    expect(JSON.parse(proxy.requests[0].body).operations).toEqual([{ op: "push", key: "a", value: 2 }]);
  });

  it("retries a save whose response was lost without repeating its changes", async () => {
    sid = unique("again");
    await set(sid, { cookie: cookie(), a: [] });
    let failing = true;
    const proxy = await startProxy(servers[0], ({ method }) => (failing && method === "PATCH" ? "lose" : undefined));
    stops.push(proxy.stop);
    const proxied = new ThreadkeepStore({ ...options(), baseUrl: proxy.url, attempts: 1 });
    const loaded = await promisify(proxied.load.bind(proxied))(sid);
    loaded.a.push("once");
    const save = () => promisify(proxied.set.bind(proxied))(sid, loaded);

    await expect(save()).rejects.toMatchObject({ code: "connection" });
    failing = false;
    await save();

    expect((await get(sid)).a).toEqual(["once"]);
  });

  it("retries a creation whose response was lost without repeating its changes", async () => {
    sid = unique("again");
    let failing = true;
    const proxy = await startProxy(servers[0], ({ method }) => (failing && method === "POST" ? "lose" : undefined));
    stops.push(proxy.stop);
    const proxied = new ThreadkeepStore({ ...options(), baseUrl: proxy.url, attempts: 1 });
    const created = proxied.createSession({ sessionID: sid, sessionStore: proxied }, { cookie: cookie(), a: ["once"] });
    const save = () => promisify(proxied.set.bind(proxied))(sid, created);

    await expect(save()).rejects.toMatchObject({ code: "connection" });
    failing = false;
    await save();

    expect((await get(sid)).a).toEqual(["once"]);
  });

  it("never recreates a session that has ended", async () => {
    sid = unique("ended");
    await set(sid, { cookie: cookie(), a: 1 });
    const [a, b] = [await load(sid), await load(sid)];
    await destroy(sid);

    await set(sid, Object.assign(a, { a: 2 }));
    await set(sid, Object.assign(a, { o: { x: 1 } }));
    await touch(sid, b);
    await destroy(sid);

    expect(await get(sid)).toBeNull();
    expect(await (await threadOf(sid)).info()).toMatchObject({ exists: false });
  });

  it("does not create a session on touch", async () => {
    sid = unique("touch");
    await touch(sid, { cookie: cookie() });
    expect(await (await threadOf(sid)).info()).toMatchObject({ exists: false });
  });

  it("changes only the cookie on touch", async () => {
    sid = unique("touch");
    await set(sid, { cookie: cookie(60_000), a: 1 });
    const loaded = await load(sid);
    await (await threadOf(sid)).set("a", 2);
    loaded.cookie.maxAge = 300_000;

    await touch(sid, loaded);

    const stored = await get(sid);
    expect(stored.a).toBe(2);
    expect(Date.parse(stored.cookie.expires)).toBe(loaded.cookie.expires.getTime());
  });

  it("returns no session whose cookie has expired, and ends it on a set", async () => {
    let loaded;
    // doubles the TTL until the session survives pauses of the machine
    for (let ms = 400; !loaded; ms *= 2) {
      sid = unique("expired");
      await set(sid, { cookie: cookie(ms) });
      loaded = await load(sid);
    }
    await expect.poll(() => get(sid)).toBeNull();
    await set(sid, Object.assign(loaded, { a: 1 }));

    expect(await (await threadOf(sid)).info()).toMatchObject({ exists: false });
  });

  it("extends the TTL of the thread when the cookie's maximum age grows", async () => {
    sid = unique("remember");
    await set(sid, { cookie: cookie(100_000) });
    const loaded = await load(sid);
    loaded.cookie.maxAge = 900_000;
    loaded.cookie.originalMaxAge = 900_000;

    await set(sid, loaded);

    expect(await (await threadOf(sid)).info()).toMatchObject({ ttlSeconds: 900 });
  });

  it("merges the sessions of a framework without createSession, and keeps values from other requests", async () => {
    sid = unique("plain");
    await set(sid, { cookie: cookie(), a: [1], o: { x: 1 } });

    await set(sid, { cookie: cookie(), a: [1, 2], o: { y: 1 }, b: 1 });
    await set(sid, { cookie: cookie(), a: [1, 2], o: { y: 1 }, b: 1 });

    const { cookie: _, ...rest } = await get(sid);
    expect(rest).toEqual({ a: [1, 2], o: { x: 1, y: 1 }, b: 1 });
  });

  it("works without callbacks", async () => {
    sid = unique("callbacks");
    store.set(sid, { cookie: cookie(), a: 1 });
    await expect.poll(() => get(sid)).toMatchObject({ a: 1 });
    store.touch(sid, { cookie: cookie() });
    store.destroy(sid);
    await expect.poll(() => get(sid)).toBeNull();
    new ThreadkeepStore({ ...options(), baseUrl: "http://127.0.0.1:1", attempts: 1 }).destroy(sid);
  });

  it("is a store of express-session", () => {
    expect(store).toBeInstanceOf(session.Store);
  });
});
