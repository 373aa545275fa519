import { once } from "node:events";
import { createServer, type IncomingMessage, request as send, type Server, type ServerResponse } from "node:http";
import { after } from "node:test";

const tagChanges = {
  weakened: (etag: string) => `W/${etag}`,
  suffixed: (etag: string) => etag.replace(/"$/, '-gzip"'),
  replaced: () => '"another-1-tag"',
  removed: () => undefined,
};

/** How the proxy treats one request. */
export interface Fault {
  /** Passes it on late. */
  delayMs?: number;
  /** Passes it on when this is resolved. */
  after?: Promise<void>;
  /** Closes the connection without passing it on. */
  drop?: boolean;
  /** Passes it on, and closes the connection instead of answering. */
  loseResponse?: boolean;
  /** Passes it on, and never answers. */
  hang?: boolean;
  /** Answers itself. */
  status?: number;
  headers?: { [name: string]: string };
  body?: string;
  /** Closes the connection after a byte of the body that begins a character of several bytes. */
  cutInCharacter?: boolean;
  /** Changes the ETag of the response. */
  etag?: keyof typeof tagChanges;
  /** Delays the answer. */
  delayResponseMs?: number;
  /** Delays the answer until this promise resolves. */
  answerAfter?: Promise<void>;
}

export interface Seen {
  method: string;
  path: string;
  headers: IncomingMessage["headers"];
}

export interface Proxy {
  readonly url: string;
  /** The requests so far. */
  readonly seen: Seen[];
  /** The requests that the server has answered. */
  readonly answered: Seen[];
  /** Chooses the fault for a request, if there is one. */
  fault: (request: Seen) => Fault | undefined;
  /** Treats a request that came to another server. */
  handle(incoming: IncomingMessage, response: ServerResponse): void;
  /** Closes all connections. */
  cut(): void;
  /** The number of requests that are not answered in full. */
  readonly open: number;
}

const started = new Set<Server>();
after(() => {
  for (const server of started) {
    server.closeAllConnections();
    server.close();
  }
});

/** Starts a proxy in front of a server. */
export async function startProxy(target: string): Promise<Proxy> {
  const seen: Seen[] = [];
  const answered: Seen[] = [];
  let open = 0;
  const handle = (incoming: IncomingMessage, response: ServerResponse) => {
    const request = { method: incoming.method!, path: incoming.url!, headers: incoming.headers };
    seen.push(request);
    open++;
    response.on("close", () => open--);
    const fault = proxy.fault(request) ?? {};
    if (fault.drop) return void incoming.socket.destroy();
    if (fault.status) {
      incoming.resume();
      response.writeHead(fault.status, fault.headers);
      return void response.end(fault.body);
    }
    const pass = () => forward(target, incoming, response, fault, () => answered.push(request));
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
    seen,
    answered,
    handle,
    fault: () => undefined,
    cut: () => server.closeAllConnections(),
    get open() {
      return open;
    },
  };
  return proxy;
}

function forward(target: string, incoming: IncomingMessage, response: ServerResponse, fault: Fault, onAnswer: () => void): void {
  const outgoing = send(target + incoming.url!, { method: incoming.method!, headers: incoming.headers, agent: false });
  outgoing.on("error", () => response.destroy());
  if (!fault.hang) response.on("close", () => outgoing.destroy());
  incoming.pipe(outgoing);
  outgoing.on("response", async (answer) => {
    answer.on("error", () => response.destroy());
    onAnswer();
    if (fault.loseResponse) return void incoming.socket.destroy();
    if (fault.hang) return;
    await fault.answerAfter;
    if (fault.delayResponseMs) await new Promise((resolve) => setTimeout(resolve, fault.delayResponseMs));
    const { etag, ...headers } = answer.headers;
    const tag = etag && fault.etag ? tagChanges[fault.etag](etag) : etag;
    if (tag) headers.etag = tag;
    response.writeHead(answer.statusCode!, headers);
    response.flushHeaders();
    for await (const chunk of chunks(answer)) {
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

async function* chunks(answer: IncomingMessage): AsyncGenerator<Buffer> {
  try {
    yield* answer as AsyncIterable<Buffer>;
  } catch {
    // one of the two sides is gone
  }
}
