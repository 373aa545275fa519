// Runs each test with each model. Fails if a test fails. Run by open-responses.sh. Usage: main.mjs URL API_KEY MODEL...

import { Client } from "./client.mjs";
import { HTTP, WEBSOCKET } from "./suite.mjs";

const [server, apiKey, ...models] = process.argv.slice(2);

async function runTests(tests, client) {
  let passed = 0;
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test(client);
      passed += 1;
    } catch (error) {
      console.error(`${client.model}, ${name}: ${error.stack}`);
    }
  }
  return { passed, total: Object.keys(tests).length };
}

async function comply(model) {
  const client = new Client(server, apiKey, model);
  const http = await runTests(HTTP, client);
  const webSocket = await runTests(WEBSOCKET, client);
  console.log(`${model}: ${http.passed} of ${http.total} without WebSocket, ${webSocket.passed} of ${webSocket.total} with it`);
  return http.passed === http.total && webSocket.passed === webSocket.total;
}

const results = await Promise.all(models.map(comply));
process.exitCode = results.length > 0 && results.every(Boolean) ? 0 : 1;
