import { createServer, request } from "node:http";
import { once } from "node:events";

/**
 * Starts a proxy. `fault(request)` returns one of these faults, or undefined, possibly as a promise:
 * - "lose": forwards the request, and closes the connection instead of answering
 * - "hang": never answers
 * - "refuse": answers 503 without forwarding the request
 */
export async function startProxy(target, fault = () => undefined) {
  const { hostname, port } = new URL(target);
  const proxy = { requests: [], fault };
  const server = createServer(async (incoming, outgoing) => {
    const chunks = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const { method, url, headers } = incoming;
    const body = Buffer.concat(chunks);
    const received = { method, url, headers, body: body.toString() };
    proxy.requests.push(received);
    const faultName = await proxy.fault(received);
    if (faultName === "hang") return;
    if (faultName === "refuse") {
      outgoing.writeHead(503, { "content-type": "application/problem+json" });
      outgoing.end('{"code":"store_unavailable","status":503,"detail":"The store is unavailable."}');
      return;
    }
    const forwarded = request({ hostname, port, method, path: url, headers }, async (response) => {
      const parts = [];
      for await (const part of response) parts.push(part);
      if (faultName === "lose") return incoming.socket.destroy();
      outgoing.writeHead(response.statusCode, response.headers);
      outgoing.end(Buffer.concat(parts));
    });
    forwarded.on("error", () => incoming.socket.destroy());
    forwarded.end(body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  proxy.url = `http://127.0.0.1:${server.address().port}`;
  proxy.stop = () => {
    server.close();
    server.closeAllConnections();
  };
  return proxy;
}

export function firstWrite(kind) {
  let isFirst = true;
  return ({ method, url }) => {
    if (method === "GET" || !isFirst || /\/kv\/[^/]+\/get$/.test(url)) return undefined;
    isFirst = false;
    return kind;
  };
}
