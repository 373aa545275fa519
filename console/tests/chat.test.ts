import assert from "node:assert/strict";
import { afterEach, before, test } from "node:test";
import { API_KEY, type Server, api, newThread, noErrors, openConsole, pageOf, push, startServer, until } from "./support/console.js";

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

test("a conversation stays scrolled to its end when its box is resized, unless the user has scrolled up", async () => {
  const messages = Array.from({ length: 40 }, (_, i) => ({ role: "user", content: `Message ${i} `.repeat(20) }));
  const page = await openConsole(server, pageOf(await newThread(server, { state: { messages } })));
  const chat = page.getByRole("log");
  await chat.getByText("Message 39").waitFor();
  const fromEnd = () => chat.evaluate((element) => element.scrollHeight - element.clientHeight - element.scrollTop);
  const heightOf = () => chat.evaluate((element) => element.clientHeight);
  await until("the end is in view", async () => (await fromEnd()) < 5);

  for (const [width, height] of [[1280, 700], [700, 620], [1280, 900]] as const) {
    const before = await heightOf();
    await page.setViewportSize({ width, height });
    await until("the box has another size", async () => (await heightOf()) !== before);
    await until("the end is in view again", async () => (await fromEnd()) < 5);
  }

  await chat.evaluate((element) => element.scrollTo(0, 300));
  await until("another part is in view", async () => (await fromEnd()) > 200);
  const before = await heightOf();
  await page.setViewportSize({ width: 1280, height: 660 });
  await until("the box has another size", async () => (await heightOf()) !== before);
  assert.ok((await fromEnd()) > 200);
});

test("a message is pushed", async () => {
  const id = await newThread(server, { state: {} });
  const page = await openConsole(server, pageOf(id, "chat"));
  await page.getByText("Neither a key nor the history of this thread holds messages.").waitFor();

  await page.getByLabel("Role").selectOption("assistant");
  await page.getByLabel("Message").fill('Quotes " and \\ stay');
  await page.keyboard.press("Enter");

  await page.getByRole("log").getByText('Quotes " and \\ stay').waitFor();
  assert.deepEqual(await api(server, "GET", `/v1/threads/${id}/state/messages`), [{ role: "assistant", content: 'Quotes " and \\ stay' }]);
});

test("message formats of providers and frameworks are recognized", async () => {
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

async function withHistory(...values: unknown[]): Promise<string> {
  const id = await newThread(server);
  for (const [i, value] of values.entries()) await api(server, "POST", `/v1/threads/${id}/history`, { id: `h${i}`, value });
  return id;
}

async function openChat(id: string) {
  const page = await openConsole(server, pageOf(id));
  const chat = page.getByRole("log");
  await chat.waitFor();
  return { page, chat, bubble: (text: string) => chat.getByRole("listitem").filter({ hasText: text }) };
}

test("messages that LangChain stores are shown with their text, and a thread with such a history opens on it", async () => {
  const stored = (type: string, content: unknown, members = {}) => ({
    type,
    data: { content, additional_kwargs: {}, response_metadata: {}, type, name: null, id: null, ...members },
  });
  const call = { name: "weather", args: { city: "Oslo" }, id: "call_1", type: "tool_call" };
  const id = await withHistory(
    stored("human", "How is Oslo?"),
    stored("ai", "", { tool_calls: [call], invalid_tool_calls: [] }),
    stored("tool", "Sunny", { tool_call_id: "call_1" }),
    stored("ai", [{ type: "text", text: "It is sunny." }], { tool_calls: [] }),
  );

  const { chat, bubble } = await openChat(id);

  for (const [text, side] of [["How is Oslo?", "user"], ["tool_calls", "assistant"], ["Sunny", "other"], ["It is sunny.", "assistant"]] as const)
    await bubble(text).and(chat.locator(`.bubble.${side}`)).first().waitFor();
  assert.equal(await chat.getByRole("listitem").count(), 4);
  assert.equal(await chat.locator("summary", { hasText: "invalid_tool_calls" }).count(), 0);
});

test("items of the Responses API are shown as calls and results between the messages", async () => {
  const items = [
    { type: "message", role: "user", content: [{ type: "input_text", text: "Book the train" }] },
    { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "The user wants a train." }], encrypted_content: "gAAAA" },
    { type: "function_call", id: "fc_1", call_id: "call_1", name: "book", arguments: '{"train": "R20"}', status: "completed" },
    { type: "function_call_output", id: "fco_1", call_id: "call_1", output: "Booked, seat 12", status: "completed" },
    { type: "mcp_call", id: "mcp_1", server_label: "memory", name: "kv_write", arguments: '{"key":"seat"}', output: "written", error: null, status: "completed" },
    { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "trains to Oslo" } },
    { type: "image_generation_call", id: "ig_1", status: "completed", result: "aW1hZ2U=" },
    { type: "message", role: "assistant", content: [{ type: "output_text", text: "You have seat 12." }] },
  ];
  for (const id of [await withHistory(...items), await newThread(server, { state: { items } })]) {
    const { page, chat, bubble } = await openChat(id);

    await bubble("You have seat 12.").waitFor();
    assert.equal(await chat.getByRole("listitem").count(), items.length);
    await bubble("reasoning").getByText("The user wants a train.").waitFor();
    await bubble("call of book, call_1").getByText('{"train": "R20"}').waitFor();
    await bubble("result of call_1").getByText("Booked, seat 12").waitFor();
    await bubble("call of kv_write").getByText('{"key":"seat"}').waitFor();
    await bubble("call of kv_write").getByText("written").waitFor();
    await bubble("web search call").getByText('"query": "trains to Oslo"').waitFor();
    await bubble("image generation call").locator("summary", { hasText: "result" }).waitFor();
    await page.close();
  }
});

test("messages that end with a call are a conversation, and tool definitions are not", async () => {
  const calls = [
    { type: "function_call", call_id: "call_1", name: "book", arguments: "{}" },
    { type: "function_call_output", call_id: "call_1", output: [{ type: "input_text", text: "Booked" }] },
  ];
  const tools = [{ type: "function", function: { name: "book", parameters: {} } }];
  const id = await newThread(server, { state: { calls: [{ role: "user", content: "Book" }, ...calls], tools } });

  const { page, bubble } = await openChat(id);

  await bubble("result of call_1").getByText("Booked").waitFor();
  assert.equal(await page.getByLabel("Conversation").count(), 0);
});

test("histories of agent frameworks are conversations", async () => {
  const agents = [
    { role: "user", content: "Is it open?" },
    { type: "function_call", callId: "call_7", name: "hours", arguments: "{}", status: "completed" },
    { type: "function_call_result", callId: "call_7", name: "hours", output: { type: "text", text: "Until six" }, status: "completed" },
  ];
  const adk = [
    { number: 1, event: { author: "user", content: { role: "user", parts: [{ text: "Is it open?" }] } } },
    { number: 2, event: { author: "guide", content: { role: "model", parts: [{ functionCall: { name: "hours", args: {} } }, { text: "Until six" }] } } },
  ];
  const framework = [
    { type: "message", role: "user", contents: [{ type: "text", text: "Is it open?" }] },
    { type: "message", role: "assistant", contents: [{ type: "text", text: "Until six" }] },
  ];
  for (const values of [agents, adk, framework]) {
    const { page, chat, bubble } = await openChat(await withHistory(...values));

    await bubble("Is it open?").and(chat.locator(".bubble.user")).waitFor();
    await bubble("Until six").waitFor();
    assert.equal(await chat.getByRole("listitem").count(), values.length);
    await page.close();
  }
});

test("a history of AgentKit is a conversation", async () => {
  const id = await withHistory(
    { kind: "user", id: "u1", content: "Is it raining?", timestamp: "2026-01-01T00:00:00.000Z" },
    {
      kind: "agent",
      result: {
        agentName: "Forecaster",
        output: [
          { type: "tool_call", role: "assistant", stop_reason: "tool", tools: [{ type: "tool", id: "t1", name: "radar", input: { city: "Oslo" } }] },
          { type: "text", role: "assistant", content: "No, it is dry.", stop_reason: "stop" },
        ],
        toolCalls: [{ type: "tool_result", role: "tool_result", tool: { type: "tool", id: "t1", name: "radar", input: {} }, content: { data: "dry" }, stop_reason: "tool" }],
        createdAt: "2026-01-01T00:00:01.000Z",
      },
    },
    { kind: "step", note: "another item" },
  );

  const { chat, bubble } = await openChat(id);

  await bubble("Is it raining?").and(chat.locator(".bubble.user")).waitFor();
  const agent = bubble("No, it is dry.").and(chat.locator(".bubble.assistant"));
  await agent.getByText("agent Forecaster").waitFor();
  await agent.locator("summary", { hasText: "tool_call" }).first().click();
  await agent.getByText('"name": "radar"').waitFor();
  await agent.locator("summary", { hasText: "toolCalls" }).waitFor();
  await bubble("value").waitFor();
});

test("a thread without messages opens on its state, and stays there", async () => {
  const id = await newThread(server, { state: { n: 1 } });
  await api(server, "POST", `/v1/threads/${id}/history`, { id: "a", value: { step: 1 } });
  const page = await openConsole(server, pageOf(id));
  await page.getByRole("treeitem").filter({ hasText: '"n"' }).waitFor();

  await push(server, id, "user", "A first message");

  await page.getByRole("treeitem").filter({ hasText: '"messages"' }).waitFor();
  assert.equal(await page.getByRole("log").count(), 0);
});

test("messages are found by their text", async () => {
  const id = await newThread(server, { state: { messages: [{ role: "user", content: "An apple" }, { role: "assistant", content: "A pear" }] } });
  const { page, chat } = await openChat(id);
  await page.keyboard.press("/");
  await page.keyboard.type("PEAR");

  await until("one is left", async () => (await chat.getByRole("listitem").count()) === 1);
  await chat.getByText("A pear").waitFor();
  await page.getByLabel("Find a message").fill("plum");
  await page.getByText("No message contains this text.").waitFor();
});

test("text that is stored as escapes is shown as characters, and edited as escapes", async () => {
  const stored = '{"greeting":"\\u4f60\\u597d","quoted":"\\u0022\\u005c","pair":"\\ud83d\\ude00"}';
  const id = await newThread(server, '{"metadata":{"title":"\\u4f60\\u597d"}}');
  await api(server, "PUT", `/v1/threads/${id}/state/text`, stored);
  const page = await openConsole(server, pageOf(id, "state"));
  await page.locator(".chip", { hasText: 'title: "你好"' }).waitFor();
  await page.getByRole("treeitem").filter({ hasText: '"text"' }).click();
  for (const text of ['"你好"', '"\\u0022\\u005c"', '"😀"']) await page.locator(".tree-value", { hasText: text }).waitFor();

  await page.getByRole("button", { name: "Edit text" }).click();
  const box = page.getByRole("dialog").getByRole("textbox");
  assert.equal((await box.inputValue()).replaceAll(/\s/g, ""), stored);
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  const response = await fetch(`${server.url}/v1/threads/${id}/state/text`, { headers: { authorization: `Bearer ${API_KEY}` } });
  assert.equal(await response.text(), stored);
});
