import { once } from "node:events";
import { Agent, createServer, request } from "node:http";
import { after } from "node:test";
import type { Server } from "./console.js";

export interface Balancer {
  readonly url: string;
  remove(server: Server): void;
}

export async function startBalancer(...servers: Server[]): Promise<Balancer> {
  const left = [...servers];
  const agent = new Agent({ keepAlive: true });
  let turn = 0;
  const proxy = createServer((from, to) => {
    const { url } = left[turn++ % left.length]!;
    const onward = request(url + from.url!, { method: from.method!, headers: from.headers, agent }, (answer) => {
      to.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(to);
    });
    onward.on("error", () => to.destroy());
    to.on("close", () => onward.destroy());
    from.pipe(onward);
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  after(() => (proxy.closeAllConnections(), proxy.close(), agent.destroy()));
  return {
    url: `http://127.0.0.1:${(proxy.address() as { port: number }).port}`,
    remove: (server) => void left.splice(left.indexOf(server), 1),
  };
}
