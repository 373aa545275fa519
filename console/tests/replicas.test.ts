/** Tests the overview behind a load balancer that sends each request to a different replica. */

import assert from "node:assert/strict";
import { afterEach, before, test } from "node:test";
import type { Page } from "playwright-core";
import { API_KEY, STORE, type Server, api, newThread, noErrors, openConsole, startServer, until } from "./support/console.js";
import { startBalancer } from "./support/balancer.js";

const EVENTS = "a-listening-secret-of-the-tests-that-is-long-enough";
/** Key prefix of both replicas in Redis. With the memory store, two servers with separate data act as replicas. */
const shared = { THREADKEEP_KEY_PREFIX: `balanced${process.pid}` };
const settings = {
  ...(STORE === "redis" ? shared : {}),
  THREADKEEP_API_KEYS: `ops:${API_KEY},listener:${EVENTS}`,
  THREADKEEP_API_KEY_RIGHTS: "listener:events",
};

let replicas: [Server, Server];
before(async () => {
  replicas = [await startServer(settings), await startServer(settings)];
});
afterEach(noErrors);

const tile = async (page: Page, name: string) => (await page.locator(".tiles div", { has: page.getByText(name, { exact: true }) }).locator("dd").textContent())!.trim();

async function newestOf(page: Page, title: string): Promise<Map<string, number>> {
  const label = await page.getByRole("img", { name: new RegExp(`^${title}`) }).getAttribute("aria-label");
  return new Map([...label!.matchAll(/(all|replica \d+) ([\d.,]+)/g)].map(([, line, value]) => [line!, Number(value!.replaceAll(",", ""))]));
}

for (const [key, kind] of [[API_KEY, "stats"], [EVENTS, "metrics"]] as const)
  test(`behind a load balancer, the overview has a series for each replica and their sum, from ${kind}`, async () => {
    const balancer = await startBalancer(...replicas);
    const page = await openConsole({ url: balancer.url } as Server, "#/overview", key);
    const ids = await Promise.all(replicas.map((server) => newThread(server)));

    await until("both replicas have a rate, and all has their sum", async () => {
      for (const [i, server] of replicas.entries()) await api(server, "POST", `/v1/threads/${ids[i]}/state/n/increment`, { by: 1 });
      if ((await page.getByRole("img", { name: /^Requests by replica/ }).count()) === 0) return false;
      const lines = await newestOf(page, "Requests by replica");
      const [all, one, two] = ["all", "replica 1", "replica 2"].map((name) => lines.get(name) ?? 0) as [number, number, number];
      return one > 0 && two > 0 && Math.abs(all - one - two) <= 0.02 * all;
    });

    assert.equal(await tile(page, "Replicas"), "2");
    assert.match(await tile(page, "Requests"), /^[\d.,]+ \/s$/);
    assert.equal(await page.getByRole("region", { name: "Replica", exact: true }).getByRole("row").count(), 3);
    await page.getByText("Rates and counts are sums over all replicas").waitFor();
  });

test("every line has a value at each point", async () => {
  const balancer = await startBalancer(...replicas);
  const page = await openConsole({ url: balancer.url } as Server);
  const legend = page.locator(".plot", { hasText: "Requests by replica" }).locator(".u-legend");
  const drawn = new Set<string>();

  // a point has a value on each line only if the replicas and their total were plotted for the same time
  await until("four points in a row have a value on each line", async () => {
    if ((await legend.count()) === 0) return false;
    const [time, ...values] = await legend.locator(".u-value").allTextContents();
    if (values.length < 3) return false;
    assert.ok(drawn.size === 0 || !values.includes("–"), `${time}: ${values.join(", ")}`);
    if (!values.includes("–")) drawn.add(time!);
    return drawn.size >= 4;
  });
});

test("a replica that stops responding is removed from the sum", async () => {
  const balancer = await startBalancer(...replicas);
  const page = await openConsole({ url: balancer.url } as Server);
  await until("both have responded", async () => (await page.locator(".tiles").count()) > 0 && (await tile(page, "Replicas")) === "2");

  balancer.remove(replicas[1]);

  await until("one is left", async () => (await tile(page, "Replicas")) === "1");
  await page.getByRole("heading", { name: "Replicas", exact: true }).waitFor({ state: "detached" });
});
