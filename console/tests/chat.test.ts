import assert from "node:assert/strict";
import { afterEach, before, test } from "node:test";
import { type Server, api, newThread, noErrors, openConsole, pageOf, push, startServer, until } from "./support/console.js";

let server: Server;
before(async () => {
  server = await startServer();
});
afterEach(noErrors);

test("a thread with messages opens as a conversation, which follows new messages", async () => {
  const messages = Array.from({ length: 200 }, (_, i) => ({ role: i % 2 ? "assistant" : "user", content: `Message ${i}` }));
  const id = await newThread(server, { state: { messages, other: [{ role: "system", content: "Another conversation" }], plain: [1] } });
  const page = await openConsole(server, pageOf(id));
  const chat = page.getByRole("log");
  await chat.getByText("Message 199", { exact: true }).waitFor();

  assert.ok((await chat.getByRole("listitem").count()) <= 60);
  await push(server, id, "assistant", "The newest one");
  await chat.getByText("The newest one").waitFor();
  await until("the end is in view", () => chat.evaluate((element) => element.scrollTop + element.clientHeight > element.scrollHeight - 5));

  await chat.getByRole("button", { name: /Show 60 earlier/ }).click();
  await chat.getByText("Message 100", { exact: true }).waitFor();
  await page.getByLabel("Conversation").selectOption("other");
  await page.getByRole("log").getByText("Another conversation").waitFor();
  assert.equal(await page.getByLabel("Conversation").locator("option").count(), 2);
});

test("a message is pushed", async () => {
  const id = await newThread(server, { state: {} });
  const page = await openConsole(server, pageOf(id, "chat"));
  await page.getByText("No key of this thread holds messages.").waitFor();

  await page.getByLabel("Role").selectOption("assistant");
  await page.getByLabel("Message").fill('Quotes " and \\ stay');
  await page.keyboard.press("Enter");

  await page.getByRole("log").getByText('Quotes " and \\ stay').waitFor();
  assert.deepEqual(await api(server, "GET", `/v1/threads/${id}/state/messages`), [{ role: "assistant", content: 'Quotes " and \\ stay' }]);
});

test("forms of providers and frameworks are read", async () => {
  const messages = [
    { role: "user", content: [{ type: "text", text: "Anthropic text" }, { type: "image", source: { data: "abc" } }] },
    { role: "assistant", content: [{ type: "tool_use", name: "weather", input: { city: "Oslo" } }] },
    { role: "assistant", content: null, tool_calls: [{ id: "1", type: "function", function: { name: "time", arguments: "{}" } }] },
    { role: "tool", tool_call_id: "1", content: "12:00" },
    { type: "human", content: "LangChain text" },
    { role: "assistant", parts: [{ type: "text", text: "AI SDK text" }] },
    { type: "message", role: "user", content: [{ type: "input_text", text: "Responses text" }] },
  ];
  const id = await newThread(server, { state: { messages } });
  const page = await openConsole(server, pageOf(id));
  const chat = page.getByRole("log");

  for (const text of ["Anthropic text", "12:00", "LangChain text", "AI SDK text", "Responses text"]) await chat.getByText(text, { exact: true }).waitFor();
  await chat.getByText("tool_use").click();
  await chat.getByText('"city": "Oslo"').waitFor();
  await chat.locator("summary", { hasText: "tool_calls" }).click();
  await chat.getByText('"name": "time"').waitFor();
});

test("a history of messages is a conversation", async () => {
  const id = await newThread(server);
  for (const [i, role] of ["user", "assistant"].entries())
    await api(server, "POST", `/v1/threads/${id}/history`, { id: `m${i}`, value: { role, content: `Item of ${role}` } });
  const page = await openConsole(server, pageOf(id, "chat"));
  await page.getByRole("log").getByText("Item of assistant").waitFor();

  await api(server, "POST", `/v1/threads/${id}/history`, { id: "m2", value: { role: "user", content: "A later item" } });
  await page.getByRole("log").getByText("A later item").waitFor();
});
