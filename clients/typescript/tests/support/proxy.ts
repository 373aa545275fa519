import { once } from "node:events";
import { createServer, type IncomingMessage, request as send, type Server, type ServerResponse } from "node:http";
import { after } from "node:test";

const tagChanges = {
  weakened: (etag: string) => `W/${etag}`,
  suffixed: (etag: string) => etag.replace(/"$/, '-gzip"'),
  replaced: () => '"another-1-tag"',
  removed: () => undefined,
};

export interface Fault {
  delayMs?: number;
  after?: Promise<void>;
  /** Closes the connection without forwarding the request. */
  drop?: boolean;
  /** Forwards the request, and closes the connection instead of answering. */
  loseResponse?: boolean;
  /** Forwards the request, but never answers. */
  hang?: boolean;
  status?: number;
  headers?: { [name: string]: string };
  body?: string;
  /** Closes the connection inside a multi-byte character of the body. */
  cutInCharacter?: boolean;
  etag?: keyof typeof tagChanges;
  delayResponseMs?: number;
  respondAfter?: Promise<void>;
}

export interface ProxiedRequest {
  method: string;
  path: string;
  headers: IncomingMessage["headers"];
}

export interface Proxy {
  readonly url: string;
  readonly requests: ProxiedRequest[];
  readonly answeredRequests: ProxiedRequest[];
  fault: (request: ProxiedRequest) => Fault | undefined;
  /** Proxies a request that was received by a different HTTP server. */
  handle(incoming: IncomingMessage, response: ServerResponse): void;
  cut(): void;
  readonly open: number;
}

const started = new Set<Server>();
after(() => {
  for (const server of started) {
    server.closeAllConnections();
    server.close();
  }
});

export async function startProxy(target: string): Promise<Proxy> {
  const requests: ProxiedRequest[] = [];
  const answeredRequests: ProxiedRequest[] = [];
  let open = 0;
  const handle = (incoming: IncomingMessage, response: ServerResponse) => {
    const request = { method: incoming.method!, path: incoming.url!, headers: incoming.headers };
    requests.push(request);
    open++;
    response.on("close", () => open--);
    const fault = proxy.fault(request) ?? {};
    if (fault.drop) return void incoming.socket.destroy();
    if (fault.status) {
      incoming.resume();
      response.writeHead(fault.status, fault.headers);
      return void response.end(fault.body);
    }
    const pass = () => forward(target, incoming, response, fault, () => answeredRequests.push(request));
    if (fault.after) return void fault.after.then(pass);
    setTimeout(pass, fault.delayMs ?? 0);
  };
  const server = createServer(handle);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  started.add(server);
  const { port } = server.address() as { port: number };
  const proxy: Proxy = {
    url: `http://127.0.0.1:${port}`,
    requests,
    answeredRequests,
    handle,
    fault: () => undefined,
    cut: () => server.closeAllConnections(),
    get open() {
      return open;
    },
  };
  return proxy;
}

function forward(target: string, incoming: IncomingMessage, response: ServerResponse, fault: Fault, onResponse: () => void): void {
  const outgoing = send(target + incoming.url!, { method: incoming.method!, headers: incoming.headers, agent: false });
  outgoing.on("error", () => response.destroy());
  if (!fault.hang) response.on("close", () => outgoing.destroy());
  incoming.pipe(outgoing);
  outgoing.on("response", async (upstream) => {
    upstream.on("error", () => response.destroy());
    onResponse();
    if (fault.loseResponse) return void incoming.socket.destroy();
    if (fault.hang) return;
    await fault.respondAfter;
    if (fault.delayResponseMs) await new Promise((resolve) => setTimeout(resolve, fault.delayResponseMs));
    const { etag, ...headers } = upstream.headers;
    const tag = etag && fault.etag ? tagChanges[fault.etag](etag) : etag;
    if (tag) headers.etag = tag;
    response.writeHead(upstream.statusCode!, headers);
    response.flushHeaders();
    for await (const chunk of chunks(upstream)) {
      const start = fault.cutInCharacter ? chunk.findIndex((byte) => byte >= 0xc0) : -1;
      if (start >= 0) {
        response.write(chunk.subarray(0, start + 1), () => setTimeout(() => response.destroy(), 20));
        return;
      }
      response.write(chunk);
    }
    response.end();
  });
}

async function* chunks(upstream: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    yield* upstream as AsyncIterable<Buffer>;
  } catch {
  }
}
