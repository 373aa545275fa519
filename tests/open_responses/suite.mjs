// The tests of Open Responses' compliance suite, under the same names but with different requests. For the input `show:
// TEXT`, the scripted upstream answers with the request that it received, so that tests can check what reached the
// model.

import assert from "node:assert/strict";
import { checked, response as responseSchema } from "./schemas.mjs";
import { responseOf } from "./stream.mjs";

const message = (role, content, members) => ({ type: "message", role, content, ...members });
const user = (content) => message("user", content);
const assistant = (content, members) => message("assistant", content, members);
const NOT_FOUND = "previous_response_not_found";
const PIXEL =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

function textOf(response) {
  assert.equal(response.status, "completed");
  const { type, content } = response.output.at(-1);
  assert.equal(type, "message");
  return content[0].text;
}

// Checks that the request to the upstream contains all of `texts`. `response` repeats this request.
function assertShown(response, ...texts) {
  const request = textOf(response);
  for (const text of texts) assert.ok(request.includes(text), `${text} did not reach the model`);
}

export const HTTP = {
  async "basic-response"(client) {
    const response = await client.respond({ input: [user("Say hello.")] });
    assert.equal(textOf(response), "Say hello.");
    assert.equal(response.model, client.model);
  },

  async "assistant-phase"(client) {
    const input = [
      assistant("I look it up.", { phase: "commentary" }),
      assistant("It is four.", { phase: "final_answer" }),
      user("show: the number"),
    ];
    const response = await client.respond({ input });
    assertShown(response, "I look it up.", "It is four.");
    // upstreams of the other kinds do not support phases
    if (client.model === "responses") assertShown(response, "commentary", "final_answer");
  },

  async "response-output-phase-schema"(client) {
    const response = await client.respond({ input: [user("comment: I am looking.")] });
    assert.equal(textOf(response), "I am looking.");
    const [{ phase }] = response.output;
    assert.equal(phase, client.model === "responses" ? "commentary" : undefined);
    const [output] = response.output;
    assert.throws(() => checked(responseSchema, { ...response, output: [{ ...output, phase: null }] }));
  },

  async "system-prompt"(client) {
    const input = [message("system", "Speak like a pirate."), user("show: hello")];
    assertShown(await client.respond({ input }), "Speak like a pirate.");
  },

  async "image-input"(client) {
    const content = [
      { type: "input_text", text: "show: the image" },
      { type: "input_image", image_url: PIXEL },
    ];
    const [, base64] = PIXEL.split(",");
    assertShown(await client.respond({ input: [user(content)] }), base64);
  },

  async "multi-turn"(client) {
    const input = [user("My name is Alice."), assistant("Hello Alice!"), user("show: my name")];
    assertShown(await client.respond({ input }), "My name is Alice.", "Hello Alice!");
  },

  async "streaming-response"(client) {
    const events = await client.stream({ input: [user("One, two, three, four, five.")] });
    assert.equal(textOf(responseOf(events)), "One, two, three, four, five.");
    assert.ok(events.some(({ type }) => type === "response.output_text.delta"));
  },

  async "tool-calling"(client) {
    const city = JSON.stringify({ location: "Oslo" });
    const parameters = { type: "object", properties: { location: { type: "string" } }, required: ["location"] };
    const tools = [{ type: "function", name: "get_weather", description: "The weather", parameters }];
    const request = { input: [user(`call: get_weather ${city}`)], tools };
    const called = ({ output: [item] }) => [item.type, item.name, item.arguments];
    const call = ["function_call", "get_weather", city];
    assert.deepEqual(called(await client.respond(request)), call);
    assert.deepEqual(called(responseOf(await client.stream(request))), call);
  },

  async "compact-response"(client) {
    const input = [user("We launch on Tuesday."), assistant("On Tuesday then.")];
    const { output } = await client.compact({ input, prompt_cache_key: "launch" });
    assert.equal(output.filter(({ type }) => type === "compaction").length, 1);
  },

  async "compact-missing-model"(client) {
    assert.equal(await client.statusOfCompact({ input: [user("Compact this.")] }), 400);
  },
};

export const WEBSOCKET = {
  async "websocket-response"(client) {
    const response = await client.connected((socket) => socket.respond({ input: [user("One, two, three.")], store: true }));
    assert.equal(textOf(response), "One, two, three.");
  },

  async "websocket-sequential-responses"(client) {
    await client.connected(async (socket) => {
      for (const input of ["first", "second"]) assert.equal(textOf(await socket.respond({ input })), input);
    });
  },

  async "websocket-continuation"(client) {
    await client.connected(async (socket) => {
      const { id } = await socket.respond({ input: "The code word is cobalt." });
      const next = await socket.respond({ previous_response_id: id, input: "show: the code word" });
      assert.equal(next.previous_response_id, id);
      assertShown(next, "The code word is cobalt.");
    });
  },

  async "websocket-reconnect-store-false-recovery"(client) {
    const { id } = await client.connected((socket) => socket.respond({ input: "The code word is copper." }));
    await client.connected(async (socket) => {
      const { code } = await socket.respondWithError({ previous_response_id: id, input: "Go on." });
      assert.equal(code, NOT_FOUND);
      assert.equal(textOf(await socket.respond({ input: [user("recovered")] })), "recovered");
    });
  },

  async "websocket-previous-response-not-found"(client) {
    await client.connected(async (socket) => {
      const { code } = await socket.respondWithError({ previous_response_id: "resp_of_nobody", input: "Go on." });
      assert.equal(code, NOT_FOUND);
    });
  },

  async "websocket-failed-continuation-evicts-cache"(client) {
    await client.connected(async (socket) => {
      const { id } = await socket.respond({ input: "The code word is ember." });
      const output = { type: "function_call_output", call_id: "call_of_nobody", output: "none" };
      await socket.respondWithError({ previous_response_id: id, input: [output] });
      const { code } = await socket.respondWithError({ previous_response_id: id, input: "Go on." });
      assert.equal(code, NOT_FOUND);
    });
  },

  async "websocket-compact-new-chain"(client) {
    const typed = (type, text) => [{ type, text }];
    const input = [
      user(typed("input_text", "The code word is slate.")),
      assistant(typed("output_text", "Yes.")),
      user(typed("input_text", "Keep this.")),
    ];
    const { output } = await client.compact({ input });
    await client.connected(async (socket) => {
      const response = await socket.respond({ input: [...output, user("show: all")], tools: [] });
      assertShown(response, "The code word is slate.");
    });
  },
};
