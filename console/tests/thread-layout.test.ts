import assert from "node:assert/strict";
import { afterEach, before, test } from "node:test";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { API_KEY, STORE, type Server, api, newContext, newThread, noErrors, openConsole, pageOf, startServer, until } from "./support/console.js";

const SCREENSHOTS = join(process.env["SCREENSHOTS"]!, STORE);
const SIZES = [["desktop", 1280, 800], ["phone", 390, 844]] as const;

let server: Server;
before(async () => {
  server = await startServer();
});
afterEach(noErrors);

const open = async (width: number, height: number, body: unknown, part = "", prepare = (_: string): Promise<unknown> => Promise.resolve()): Promise<Page> => {
  const id = await newThread(server, body);
  await prepare(id);
  const page = await openConsole(server, pageOf(id, part), API_KEY, await newContext({ viewport: { width, height } }));
  await page.locator(".status.on").waitFor();
  return page;
};

for (const [size, width, height] of SIZES)
  test(`on a ${size}, a conversation begins in the upper part of the screen, with the newest message in view`, async () => {
    const messages = Array.from({ length: 80 }, (_, i) => ({ role: i % 2 ? "assistant" : "user", content: `Message ${i} `.repeat(12) }));
    const metadata = { title: "A trip to Oslo", topic: "trains and ferries", language: "en", channel: "web" };

    const page = await open(width, height, { owner: "ada", metadata, state: { messages } });

    const newest = page.getByRole("log").getByText("Message 79").first();
    await newest.waitFor();
    const bottomOf = async () => {
      const { y, height } = (await newest.boundingBox())!;
      return y + height;
    };
    await until("the newest message is in view", async () => (await bottomOf()) <= height);
    const top = (await page.getByRole("log").boundingBox())!.y;
    await page.screenshot({ path: join(SCREENSHOTS, `thread-layout-${size}.png`) });
    assert.ok(top / height < (size === "phone" ? 0.4 : 0.33), `${Math.round((100 * top) / height)} % of the screen come before the conversation`);
    const send = (await page.getByLabel("Message", { exact: true }).boundingBox())!;
    assert.ok(send.y + send.height <= height, "the field for a message is in view");
    assert.equal(await page.locator("main").evaluate((main) => main.scrollTop), 0);
  });

const figuresOf = (page: Page): Promise<{ whole: string[]; cut: string[] }> =>
  page.locator(".facts").evaluate((line) => {
    const box = line.getBoundingClientRect();
    const whole: string[] = [];
    const cut: string[] = [];
    for (const figure of line.children) {
      const { left, right, top, bottom } = figure.getBoundingClientRect();
      const name = figure.querySelector("dt")!.textContent!;
      if (top >= box.bottom - 1) continue;
      // a figure that does not fit ends in an ellipsis
      const isWhole = left >= box.left - 1 && right <= box.right + 1 && bottom <= box.bottom + 1 && figure.scrollWidth <= figure.clientWidth + 1;
      (isWhole ? whole : cut).push(name);
    }
    return { whole, cut };
  });

test("the figures are on one line until a button shows all", async () => {
  const page = await open(390, 844, { owner: "ada", metadata: { title: "A trip to Oslo" }, state: { n: 1 } }, "state");
  const heightOf = () => page.locator(".facts").evaluate((line) => line.getBoundingClientRect().height);
  await page.locator(".facts > div").first().waitFor();
  const line = await heightOf();
  assert.ok(line < 40, `${line} px`);

  await page.getByRole("button", { name: "All figures" }).click();

  await until("the figures take several lines", async () => (await heightOf()) > 2 * line);
  assert.equal((await figuresOf(page)).whole.length, 10);
  await page.getByRole("button", { name: "One line" }).click();
  await until("the figures are on one line again", async () => (await heightOf()) === line);
});

for (const [width, expected] of [
  [390, ["Size", "Time left"]],
  [768, ["Size", "Time left", "Version"]],
  [1280, ["Size", "Time left", "Version", "Changed", "Created", "Owner", "Metadata"]],
  [1440, ["Size", "Time left", "Version", "Changed", "Created", "Owner", "Metadata"]],
  [1920, ["Size", "Time left", "Version", "Changed", "Created", "Owner", "Metadata"]],
] as const)
  test(`no figure is cut off on the line at a width of ${width}`, async () => {
    const metadata = { title: "A trip to Oslo", topic: "trains and ferries", language: "en", channel: "web" };
    for (const owner of ["ada", "user-4f1e2a9b-77c1@example.com"]) {
      const page = await open(width, 800, { owner, metadata, state: { n: 1 } }, "state");
      await page.locator(".facts > div").first().waitFor();

      const { whole, cut } = await figuresOf(page);

      await page.locator(".facts-line").screenshot({ path: join(SCREENSHOTS, `figures-${width}-${owner.length}.png`) });
      assert.deepEqual(cut, []);
      if (owner === "ada") assert.deepEqual(whole.slice(0, expected.length), expected);
    }
  });

test("the actions are a menu that can be used with the keyboard", async () => {
  const page = await open(1280, 800, { state: { n: 1 } }, "state");
  const button = page.getByRole("button", { name: "Actions" });
  const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim());
  await button.focus();
  assert.equal(await button.getAttribute("aria-expanded"), "false");

  await page.keyboard.press("ArrowDown");
  await page.getByRole("menu", { name: "Actions" }).waitFor();
  assert.equal(await button.getAttribute("aria-expanded"), "true");
  await until("the first action has the focus", async () => (await focused()) === "Add a message");
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(), "Set a key");
  await page.keyboard.press("End");
  assert.equal(await focused(), "Destroy");
  await page.keyboard.press("ArrowDown");
  assert.equal(await focused(), "Add a message");
  await page.keyboard.press("ArrowUp");
  assert.equal(await focused(), "Destroy");
  await page.keyboard.press("Home");
  assert.equal(await focused(), "Add a message");

  // while a menu is open, the shortcut to the list of threads is disabled
  await page.keyboard.press("t");
  await page.keyboard.press("Escape");
  await page.getByRole("menu").waitFor({ state: "detached" });
  assert.match((await focused())!, /^Actions/);

  await page.keyboard.press("ArrowUp");
  await until("the last action has the focus", async () => (await focused()) === "Destroy");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").getByRole("button", { name: "Destroy" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.match((await focused())!, /^Actions/);

  await button.click();
  await page.locator("h1").click();
  await page.getByRole("menu").waitFor({ state: "detached" });
});

test("on a phone, the history shows the content of each item", async () => {
  const page = await open(390, 844, { state: { n: 1 } }, "history", (id) =>
    api(server, "POST", `/v1/threads/${id}/history`, { items: [{ id: "an-id-of-an-item-that-is-rather-long", value: { text: "The content of the item" } }] }),
  );
  const content = page.locator(".history-row bdi");
  await content.getByText("The content of the item").waitFor();

  const { x, width } = (await content.boundingBox())!;

  await page.screenshot({ path: join(SCREENSHOTS, "history-phone.png") });
  assert.ok(width > 300 && x + width <= 390, `the content is ${width} px wide`);
});
