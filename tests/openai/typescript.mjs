// Uses conversations with openai's TypeScript package, and with OpenAIConversationsSession of @openai/agents. Run by
// openai.sh. Usage: typescript.mjs ADDRESS PACKAGES
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [address, packages] = process.argv.slice(2);
const require = createRequire(`${packages}/node_modules/`);
const { default: OpenAI, NotFoundError, BadRequestError, AuthenticationError } = require("openai");
const { OpenAIConversationsSession } = require("@openai/agents-openai");

const baseURL = `http://${address}/v1`;
const client = new OpenAI({ baseURL });
const { conversations } = client;
const message = (text) => ({ type: "message", role: "user", content: text });
const texts = (items) => items.map((item) => item.content[0].text);

async function itemsOf(list) {
  const items = [];
  for await (const item of list) items.push(item);
  return items;
}

async function checkRoutes() {
  const created = await conversations.create({ metadata: { topic: "demo" }, items: [message("hi")] });
  assert.deepEqual(await conversations.retrieve(created.id), created);
  const changed = await conversations.update(created.id, { metadata: { a: "b" } });
  assert.deepEqual(changed, { ...created, metadata: { a: "b" } });
  const include = ["reasoning.encrypted_content"];
  const added = await conversations.items.create(created.id, { items: [message("one"), message("two")], include });
  assert.deepEqual([texts(added.data), added.has_more], [["one", "two"], false]);
  const item = await conversations.items.retrieve(added.first_id, { conversation_id: created.id, include });
  assert.deepEqual(item, added.data[0]);
  assert.deepEqual(await conversations.items.delete(added.first_id, { conversation_id: created.id }), changed);
  assert.deepEqual(texts(await itemsOf(conversations.items.list(created.id, { order: "asc", include }))), ["hi", "two"]);
  const deleted = await conversations.delete(created.id);
  assert.deepEqual(deleted, { id: created.id, object: "conversation.deleted", deleted: true });
  await assert.rejects(conversations.retrieve(created.id), NotFoundError);
}

async function checkPages() {
  const { id } = await conversations.create();
  const expected = Array.from({ length: 250 }, (_, number) => String(number));
  for (let begin = 0; begin < 250; begin += 20) {
    await conversations.items.create(id, { items: expected.slice(begin, begin + 20).map(message) });
  }
  for (const limit of [undefined, 7, 50, 100]) {
    assert.deepEqual(texts(await itemsOf(conversations.items.list(id, { order: "asc", limit }))), expected);
    assert.deepEqual(texts(await itemsOf(conversations.items.list(id, { limit }))), expected.toReversed());
  }
}

async function checkErrors() {
  const { id } = await conversations.create();
  const refused = (call, kind, code, param) =>
    assert.rejects(call, (error) => {
      assert.ok(error instanceof kind && error.requestID, String(error));
      assert.deepEqual([error.code, error.param], [code, param]);
      return true;
    });
  const add = (items) => conversations.items.create(id, { items });
  await refused(add([{}]), BadRequestError, "missing_required_parameter", "items[0].type");
  await refused(add(Array(21).fill(message("a"))), BadRequestError, "array_above_max_length", "items");
  const after = itemsOf(conversations.items.list(id, { after: "never" }));
  await refused(after, NotFoundError, null, "after");
  const stranger = new OpenAI({ baseURL, apiKey: "wrong" });
  await refused(stranger.conversations.create(), AuthenticationError, "invalid_api_key", null);
  const chat = client.chat.completions.create({ model: "m", messages: [] });
  await refused(chat, NotFoundError, "unknown_url", null);
}

async function checkSession() {
  const session = new OpenAIConversationsSession({ client });
  const sent = Array.from({ length: 20 }, (_, number) => ({ role: "user", content: String(number) }));
  await session.addItems(sent);
  await session.addItems([{ role: "user", content: "last" }]);
  const found = await session.getItems();
  assert.deepEqual(texts(found), [...sent.map((item) => item.content), "last"]);
  assert.deepEqual(await session.getItems(5), found.slice(-5));
  assert.equal((await session.popItem()).content[0].text, "last");
  assert.equal((await session.getItems()).length, 20);
  const first = await session.getSessionId();
  await session.clearSession();
  assert.deepEqual(await session.getItems(), []);
  assert.notEqual(await session.getSessionId(), first);
}

const checks = [checkRoutes, checkPages, checkErrors, checkSession];
for (const check of checks) await check();
const version = (name) => JSON.parse(readFileSync(`${packages}/node_modules/${name}/package.json`, "utf8")).version;
const versions = ["openai", "@openai/agents-openai"].map((name) => `${name} ${version(name)}`);
console.log(`${versions.join(" and ")} in TypeScript: ${checks.length} passed`);
