/** Takes the screenshot for docs/console.md. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { before, test } from "node:test";
import { API_KEY, STORE, type Server, api, enter, newContext, noErrors, pageOf, startServer, visit } from "./support/console.js";
import { differenceOf } from "./support/pictures.js";

const SCREENSHOTS = process.env["SCREENSHOTS"]!;
const TAKEN = join(SCREENSHOTS, STORE, "picture.png");
const PUBLISHED = join(SCREENSHOTS, "../../../docs/console.png");
/** Maximum share of non-empty blocks that may differ. Another font changes up to 8 %, a different tab at least 47 %. */
const DIFFERENCE_MAX = 0.25;

let server: Server;
before(async () => {
  server = await startServer();
});

test("the picture in docs/console.md matches the console, and screenshots of other pages do not", async () => {
  const id = "thrd_c0ffee00c0ffee00c0ffee00c0ffee00";
  const messages = [
    { role: "user", content: "I want to go to Oslo in May. What does it cost by train?" },
    { role: "assistant", content: null, tool_calls: [{ id: "call_1", function: { name: "find_trains", arguments: '{"to":"Oslo","month":"May"}' } }] },
    { role: "tool", tool_call_id: "call_1", content: '{"trains":3,"cheapest":"€ 89"}' },
    { role: "assistant", content: "There are three trains a day. The cheapest costs € 89, with one change in Gothenburg." },
    { role: "user", content: "Book the early one, please." },
  ];
  const state = { messages, tokens: 412, draft: { from: "Hamburg", to: "Oslo", date: "2027-05-14" } };
  await api(server, "POST", "/v1/threads", { id, owner: "ada", metadata: { title: "A trip to Oslo" }, state });
  const context = await newContext({ viewport: { width: 1280, height: 860 }, reducedMotion: "reduce", bypassCSP: true });
  const page = await context.newPage();
  await page.goto(`${server.url}/console/`);
  await enter(page, API_KEY);
  await visit(page, pageOf(id));
  await page.locator(".status.on").waitFor();
  await page.getByText("Book the early one").waitFor();
  const cut = await page.getByRole("log").evaluate((chat) => chat.scrollHeight - chat.clientHeight);
  assert.ok(cut <= 0, `${cut} px of the conversation are out of sight`);
  await page.screenshot({ path: TAKEN });

  const blank = await (await newContext()).newPage();
  const different = await differenceOf(blank, TAKEN, PUBLISHED);
  assert.ok(different <= DIFFERENCE_MAX, `${different} of the picture differ: cp ${TAKEN} docs/console.png, and commit it`);

  const take = async (name: string) => {
    const path = join(SCREENSHOTS, STORE, `picture-${name}.png`);
    await page.screenshot({ path });
    return differenceOf(blank, path, PUBLISHED);
  };
  for (const font of ["serif", "monospace"]) {
    const style = await page.addStyleTag({ content: `body { font-family: ${font} }` });
    const share = await take(font);
    assert.ok(share <= DIFFERENCE_MAX, `${share} differ in ${font}`);
    await style.evaluate((element) => (element as HTMLElement).remove());
  }
  for (const [name, fragment, shown] of [
    ["overview", "#/overview", "Requests by route"],
    ["threads", "#/threads", "1 thread,"],
    ["state", pageOf(id, "state"), '"draft"'],
    ["history", pageOf(id, "history"), "The history is empty."],
    ["events", "#/events", "No event has happened"],
    ["webhooks", "#/webhooks", "There is no endpoint."],
    ["settings", "#/settings", "thread_ttl_seconds"],
    ["playground", "#/playground", "Create a thread"],
  ] as const) {
    await visit(page, fragment);
    await page.getByText(shown).first().waitFor();
    const share = await take(name);
    assert.ok(share > DIFFERENCE_MAX, `${name} passes: ${share}`);
  }
  await noErrors();
});
