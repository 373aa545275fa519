import type { ServerRequest } from "../http/request.js";
import type { Transport } from "../http/send.js";
import type { CallOptions, WriteOptions } from "../types/options.js";
import { idempotencyKey } from "./idempotency-key.js";
import { Queue } from "./queue.js";
import { ifMatchOf } from "./responses.js";

export type Part = Pick<ServerRequest, "query" | "body" | "contentType" | "responseThread" | "headers">;

export type ParsedResponse = { body: any; text: string; headers: Headers };

export interface Calls {
  readonly transport: Transport;
  readonly queue: Queue;
  request(method: string, path: string, part: Part, options: CallOptions | undefined): ServerRequest;
  writeRequest(method: string, path: string, part: Part, o: WriteOptions): ServerRequest;
  /** Parses the response with the platform's `JSON`. */
  read(path: string, o: CallOptions | undefined, query?: ServerRequest["query"]): Promise<ParsedResponse>;
  /** Parses the response with the application's `JsonFormat`. */
  value(path: string, o: CallOptions | undefined, query?: ServerRequest["query"]): Promise<ParsedResponse>;
  /** Writes after all earlier writes. */
  write(method: string, path: string, part?: Part, o?: WriteOptions): Promise<ParsedResponse>;
  /** Writes at once. */
  send(method: string, path: string, part: Part, o: WriteOptions): Promise<ParsedResponse>;
}

export function callsOf(transport: Transport, turnToken?: string): Calls {
  const queue = new Queue();

  const request: Calls["request"] = (method, path, part, options) => ({
    method,
    path: (thread) => thread + path,
    ...part,
    options,
  });

  const writeRequest: Calls["writeRequest"] = (method, path, part, o) => ({
    ...request(method, path, part, o),
    query: { ...part.query, ttl_seconds: o.ttlSeconds },
    headers: {
      "idempotency-key": o.idempotencyKey ?? idempotencyKey(),
      "if-match": ifMatchOf(o.ifMatch),
      "x-thread-life": o.life,
      "x-turn-token": turnToken,
    },
  });

  return {
    transport,
    queue,
    request,
    writeRequest,

    read: (path, o, query) => transport.json(request("GET", path, { query }, o)),

    value: (path, o, query) => transport.value(request("GET", path, { query }, o)),

    async write(method, path, part = {}, o = {}) {
      const prepared = writeRequest(method, path, part, o);
      return queue.run(() => transport.json(prepared), o.signal);
    },

    send: (method, path, part, o) => transport.json(writeRequest(method, path, part, o)),
  };
}
