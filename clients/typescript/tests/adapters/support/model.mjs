import { once } from "node:events";
import { createServer } from "node:http";
import { openai } from "@inngest/agent-kit";

/**
 * Starts a model server that records requests. `answer(messages)` returns the answer: text, or a tool call
 * `{ name, arguments }`.
 */
export async function startModel(answer) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const { messages } = JSON.parse(text);
    requests.push(messages);
    const content = answer(messages);
    if (content === undefined) {
      response.writeHead(400, { "content-type": "application/json" });
      response.end('{"error":{"message":"The model is down."}}');
      return;
    }
    const call = { type: "function", id: `call_${requests.length}`, function: content };
    const message = typeof content === "string" ? { content } : { content: null, tool_calls: [call] };
    const finish_reason = typeof content === "string" ? "stop" : "tool_calls";
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ choices: [{ index: 0, message: { role: "assistant", ...message }, finish_reason }] }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const baseUrl = `http://127.0.0.1:${server.address().port}/v1/`;
  const stop = () => {
    server.close();
    server.closeAllConnections();
  };
  return { requests, stop, model: openai({ model: "stub", apiKey: "none", baseUrl }) };
}
