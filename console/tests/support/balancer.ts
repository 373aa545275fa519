import { once } from "node:events";
import { Agent, createServer, request } from "node:http";
import { after } from "node:test";
import type { Server } from "./console.js";

export interface Balancer {
  readonly url: string;
  remove(server: Server): void;
}

export async function startBalancer(...servers: Server[]): Promise<Balancer> {
  const backends = [...servers];
  const agent = new Agent({ keepAlive: true });
  let next = 0;
  const proxy = createServer((from, to) => {
    const { url } = backends[next++ % backends.length]!;
    const forwarded = request(url + from.url!, { method: from.method!, headers: from.headers, agent }, (response) => {
      to.writeHead(response.statusCode!, response.headers);
      response.pipe(to);
    });
    forwarded.on("error", () => to.destroy());
    to.on("close", () => forwarded.destroy());
    from.pipe(forwarded);
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  after(() => (proxy.closeAllConnections(), proxy.close(), agent.destroy()));
  return {
    url: `http://127.0.0.1:${(proxy.address() as { port: number }).port}`,
    remove: (server) => void backends.splice(backends.indexOf(server), 1),
  };
}
