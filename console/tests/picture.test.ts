/** The picture of the console that the README shows. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { API_KEY, STORE, type Server, api, enter, newContext, noErrors, pageOf, startServer, visit } from "./support/console.js";

const SCREENSHOTS = process.env["SCREENSHOTS"]!;
const MADE = join(SCREENSHOTS, STORE, "picture.png");
const SHOWN = join(SCREENSHOTS, "../../../docs/console.png");
/** The share of pixels that may differ: times pass, and machines have other fonts. */
const MOST_DIFFERENT = 0.05;

let server: Server;
before(async () => {
  server = await startServer();
});

test("the picture in the README shows the console as it is", async () => {
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
  const context = await newContext({ viewport: { width: 1280, height: 720 }, reducedMotion: "reduce" });
  const page = await context.newPage();
  await page.goto(`${server.url}/console/`);
  await enter(page, API_KEY);
  await visit(page, pageOf(id));
  await page.locator(".status.on").waitFor();
  await page.getByText("Book the early one").waitFor();

  await page.screenshot({ path: MADE });

  await page.goto("about:blank");
  const pictures = [MADE, SHOWN].map((path) => readFileSync(path).toString("base64"));
  const different = await page.evaluate(async (pictures) => {
    const [made, shown] = await Promise.all(
      pictures.map(async (picture) => {
        const image = new Image();
        image.src = `data:image/png;base64,${picture}`;
        await image.decode();
        const canvas = new OffscreenCanvas(image.width, image.height);
        const context = canvas.getContext("2d")!;
        context.drawImage(image, 0, 0);
        return context.getImageData(0, 0, image.width, image.height).data;
      }),
    );
    if (made!.length !== shown!.length) return 1;
    let count = 0;
    for (let i = 0; i < made!.length; i += 4)
      if ([0, 1, 2].some((channel) => Math.abs(made![i + channel]! - shown![i + channel]!) > 48)) count++;
    return (4 * count) / made!.length;
  }, pictures);
  assert.ok(different <= MOST_DIFFERENT, `${different} of the pixels differ: cp ${MADE} docs/console.png, and commit it`);
  noErrors();
});
