// The TypeScript counterpart of clients.py. Run by model-clients.sh. Usage: clients.mjs ADDRESS KEY PACKAGES
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [address, apiKey, packages] = process.argv.slice(2);
const require = createRequire(`${packages}/node_modules/`);
const moduleOf = (name) => import(pathToFileURL(`${packages}/node_modules/${name}/dist/index.js`));
const { default: OpenAI } = require("openai");
const { zodTextFormat } = require("openai/helpers/zod");
const agents = require("@openai/agents");
const { z } = require("zod");
const { generateText, streamText, tool, isStepCount, Output } = await moduleOf("ai");
const { createOpenAI } = await moduleOf("@ai-sdk/openai");
const { createOpenResponses } = await moduleOf("@ai-sdk/open-responses");

const baseURL = `${address}/v1`;
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const MODELS = ["chat", "responses", "messages"];
const THOUGHT = "I think about it.";
const TEXT = "1, 2, 3";
const WEATHER = '{"city": "Oslo"}';
const OSLO = { city: "Oslo" };
const placeSchema = z.object({ city: z.string() });
const weather = { name: "weather", description: "Tells the weather of a city." };
const rain = async ({ city }) => `It rains in ${city}.`;

// Collects a stream of [kind, delta] pairs. Checks that reasoning precedes the text.
async function collect(deltas) {
  const collected = { thought: "", text: "" };
  for await (const [kind, delta] of deltas) {
    assert.ok(kind === "text" || !collected.text, "reasoning comes first");
    collected[kind] += delta;
  }
  return collected;
}

async function* deltasOf(events) {
  for await (const { type, delta } of events) {
    if (/^response\.reasoning_(summary_)?text\.delta$/.test(type)) yield ["thought", delta];
    if (type === "response.output_text.delta") yield ["text", delta];
  }
}

const openai = {
  packages: ["openai"],
  async answers(model) {
    assert.equal((await client.responses.create({ model, input: TEXT })).output_text, TEXT);
  },
  async streamsReasoning(model) {
    const stream = client.responses.stream({ model, input: `think: ${TEXT}` });
    assert.deepEqual(await collect(deltasOf(stream)), { thought: THOUGHT, text: TEXT });
    const { output } = await stream.finalResponse();
    assert.deepEqual(output.map(({ type }) => type), ["reasoning", "message"]);
  },
  async calls(model) {
    const parameters = z.toJSONSchema(placeSchema);
    const tools = [{ type: "function", ...weather, parameters, strict: false }];
    const ask = { role: "user", content: `think: call: weather ${WEATHER}` };
    const { output } = await client.responses.create({ model, input: [ask], tools });
    const { call_id } = output.find(({ type }) => type === "function_call");
    const result = { type: "function_call_output", call_id, output: "It rains." };
    const second = await client.responses.create({ model, input: [ask, ...output, result], tools });
    assert.equal(second.output_text, "It rains.");
  },
  async structures(model) {
    const text = { format: zodTextFormat(placeSchema, "place") };
    const answer = await client.responses.parse({ model, input: `json: ${WEATHER}`, text });
    assert.deepEqual(answer.output_parsed, OSLO);
  },
};

agents.setTracingDisabled(true);

const openaiAgents = {
  packages: ["@openai/agents"],
  agent(model, options) {
    return new agents.Agent({ name: "helper", model: new agents.OpenAIResponsesModel(client, model), ...options });
  },
  async answers(model) {
    assert.equal((await agents.run(this.agent(model), TEXT)).finalOutput, TEXT);
  },
  async streamsReasoning(model) {
    const run = await agents.run(this.agent(model), `think: ${TEXT}`, { stream: true });
    async function* raw() {
      for await (const { data } of run) if (data?.type === "model") yield data.event;
    }
    assert.deepEqual(await collect(deltasOf(raw())), { thought: THOUGHT, text: TEXT });
    assert.equal(run.finalOutput, TEXT);
  },
  async calls(model) {
    const tools = [agents.tool({ ...weather, parameters: placeSchema, execute: rain })];
    const { finalOutput } = await agents.run(this.agent(model, { tools }), `think: call: weather ${WEATHER}`);
    assert.equal(finalOutput, "It rains in Oslo.");
  },
  async structures(model) {
    const { finalOutput } = await agents.run(this.agent(model, { outputType: placeSchema }), `json: ${WEATHER}`);
    assert.deepEqual(finalOutput, OSLO);
  },
};

const aiSdk = (name, provider) => ({
  packages: ["ai", name],
  async answers(model) {
    assert.equal((await generateText({ model: provider(model), prompt: TEXT })).text, TEXT);
  },
  async streamsReasoning(model) {
    const { fullStream } = streamText({ model: provider(model), prompt: `think: ${TEXT}` });
    async function* deltas() {
      for await (const { type, text, error } of fullStream) {
        if (error) throw error;
        if (type === "reasoning-delta") yield ["thought", text];
        if (type === "text-delta") yield ["text", text];
      }
    }
    assert.deepEqual(await collect(deltas()), { thought: THOUGHT, text: TEXT });
  },
  async calls(model) {
    const common = { model: provider(model), tools: { weather: tool({ ...weather, inputSchema: placeSchema, execute: rain }) } };
    const ask = { role: "user", content: `think: call: weather ${WEATHER}` };
    const answer = await generateText({ ...common, messages: [ask], stopWhen: isStepCount(2) });
    assert.equal(answer.text, "It rains in Oslo.");
    const messages = [ask, ...answer.responseMessages, { role: "user", content: TEXT }];
    assert.equal((await generateText({ ...common, messages })).text, TEXT);
  },
  async structures(model) {
    const output = Output.object({ schema: placeSchema });
    const answer = await generateText({ model: provider(model), output, prompt: `json: ${WEATHER}` });
    assert.deepEqual(answer.output, OSLO);
  },
});

const CLIENTS = [
  openai,
  openaiAgents,
  aiSdk("@ai-sdk/openai", createOpenAI({ baseURL, apiKey })),
  aiSdk("@ai-sdk/open-responses", createOpenResponses({ name: "threadkeep", url: `${baseURL}/responses`, apiKey })),
];
const FEATURES = ["answers", "streamsReasoning", "calls", "structures"];

async function cellOf(each, feature) {
  const working = [];
  for (const model of MODELS) {
    try {
      await each[feature](model);
      working.push(model);
    } catch (error) {
      console.error(`${each.packages.at(-1)}, ${model}, ${feature}: ${String(error).slice(0, 600)}`);
    }
  }
  if (working.length === MODELS.length) return "yes";
  return working.join(", ") || "no";
}

const versionOf = (name) => JSON.parse(readFileSync(`${packages}/node_modules/${name}/package.json`, "utf8")).version;

for (const each of CLIENTS) {
  const cells = [];
  for (const feature of FEATURES) cells.push(await cellOf(each, feature));
  const names = each.packages.map((name) => `\`${name}\` ${versionOf(name)}`);
  console.log(`| ${names.join(" with ")} | TypeScript | ${cells.join(" | ")} |`);
}
