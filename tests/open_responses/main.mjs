// Runs each test with each model. Fails if a test fails. Run by open-responses.sh. Usage: main.mjs URL API_KEY MODEL...

import { Client } from "./client.mjs";
import { HTTP, WEBSOCKET } from "./suite.mjs";

const [server, apiKey, ...models] = process.argv.slice(2);

async function count(tests, client) {
  let passed = 0;
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test(client);
      passed += 1;
    } catch (error) {
      console.error(`${client.model}, ${name}: ${error.stack}`);
    }
  }
  return { passed, all: Object.keys(tests).length };
}

async function comply(model) {
  const client = new Client(server, apiKey, model);
  const http = await count(HTTP, client);
  const webSocket = await count(WEBSOCKET, client);
  console.log(`${model}: ${http.passed} of ${http.all} without WebSocket, ${webSocket.passed} of ${webSocket.all} with it`);
  return http.passed === http.all && webSocket.passed === webSocket.all;
}

const results = await Promise.all(models.map(comply));
process.exitCode = results.length > 0 && results.every(Boolean) ? 0 : 1;
