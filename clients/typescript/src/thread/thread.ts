import { checkDefined } from "../defined.js";
import { listen } from "../events/listen.js";
import { camel } from "../http/camel.js";
import { NotFoundError } from "../http/errors.js";
import { exactIntegers, integer } from "../http/integers.js";
import type { Transport } from "../http/send.js";
import { withRotationLock } from "../identity/lock.js";
import type { Operation, OperationResult } from "../types/operation.js";
import type { WriteOptions } from "../types/options.js";
import type { Receipt, ThreadInfo } from "../types/receipt.js";
import type { StandardSchemaV1 } from "../types/standard-schema.js";
import type { Thread } from "../types/thread.js";
import { callsOf, type ParsedResponse, type Part } from "./calls.js";
import { checkpointsOf } from "./checkpoints.js";
import { effectsOf } from "./effects.js";
import { encode, mergeText, objectText } from "./encode.js";
import { historyOf } from "./history.js";
import { etagOf, receiptOf, versionOf } from "./responses.js";
import { takeTurn } from "./turn.js";
import { updateLoop } from "./update.js";
import { validate } from "./validate.js";

export type Schema = StandardSchemaV1<unknown, any> | undefined;

export type ThreadById = (id: string, signedId: string | undefined, schema: Schema) => Thread;

const keyPath = (key: string) => "/state/" + encodeURIComponent(key);

// a path cannot contain an empty key, `.` or `..`, but the body of a merge request can
const isUnsafeInPath = (key: string) => /^\.{0,2}$/.test(key);

export function threadOf(transport: Transport, schema: Schema, byId: ThreadById, turnToken?: string): Thread {
  const calls = callsOf(transport, turnToken);
  const { identity, settings } = transport;
  const { json } = settings;

  const mergeReceipt = (response: ParsedResponse): Receipt & { results: OperationResult[] } => {
    const { results } = response.body as { results: OperationResult[] };
    let exactResults: any[] | undefined;
    let parsedResults: any[] | undefined;
    results.forEach((result, index) => {
      if (result.value !== undefined) {
        exactResults ??= exactIntegers(response.text).results as any[];
        result.value = integer(exactResults[index].value)!;
      }
      if (result.values && json !== JSON) {
        parsedResults ??= (json.parse(response.text) as any).results as any[];
        result.values = parsedResults[index].values;
      }
    });
    return receiptOf(response);
  };

  const write = async (operation: Operation & { key: string }, method: string, path: string, part: Part, o?: WriteOptions) => {
    const { key } = operation;
    if (!isUnsafeInPath(key)) {
      const response = await calls.write(method, keyPath(key) + path, part, o);
      if (response.body.value !== undefined) response.body.value = integer(exactIntegers(response.text).value);
      return receiptOf(response);
    }
    const { results, ...receipt } = await thread.merge([operation], o);
    return { ...receipt, ...results[0] } as any;
  };

  const thread: Thread = {
    checkpoints: checkpointsOf(calls),
    history: historyOf(calls),
    effects: effectsOf(calls),

    get id() {
      return identity.id;
    },

    get signedId() {
      return identity.signedId;
    },

    async info(o) {
      return camel<ThreadInfo>((await calls.read("", o)).body);
    },

    async read({ keys, ...o } = {}) {
      const method = keys && !keys.length ? "HEAD" : "GET";
      const { body, headers } = await transport.value(calls.request(method, "/state", { query: { key: keys } }, o));
      const etag = etagOf(headers);
      return { state: schema && !keys ? await validate(body, schema) : body || {}, version: versionOf(etag), etag };
    },

    async get(key, o = {}) {
      const { tail, offset, limit, ...rest } = o;
      if (isUnsafeInPath(key)) return sliceOf((await thread.read({ ...rest, keys: [key] })).state[key], o);
      try {
        return (await calls.value(keyPath(key), rest, { tail, offset, limit })).body;
      } catch (error) {
        if (error instanceof NotFoundError && error.code === "key_not_found") return undefined;
        throw error;
      }
    },

    async has(key, o) {
      if (isUnsafeInPath(key)) return key in (await thread.read({ ...o, keys: [key] })).state;
      try {
        return !!(await transport.send(calls.request("HEAD", keyPath(key), {}, o)));
      } catch (error) {
        if (error instanceof NotFoundError) return false;
        throw error;
      }
    },

    async keys(o) {
      return (await calls.read("/keys", o)).body;
    },

    async set(key, value, o) {
      return write({ op: "set", key, value }, "PUT", "", { body: encode(json, value) }, o);
    },

    async delete(key, o) {
      return write({ op: "delete", key }, "DELETE", "", {}, o);
    },

    async push(key, value, { maxRecords, ...o } = {}) {
      const part = { body: encode(json, value), query: { max_records: maxRecords } };
      return write({ op: "push", key, value, maxRecords }, "POST", "/push", part, o);
    },

    async increment(key, by = 1, o) {
      const body = objectText({}, { by: by + "" });
      return write({ op: "increment", key, by }, "POST", "/increment", { body }, o);
    },

    async merge(operations, o) {
      return mergeReceipt(await calls.write("PATCH", "/state", { body: mergeText(json, operations) }, o));
    },

    async patch(mergePatch, o) {
      const contentType = "application/merge-patch+json";
      return receiptOf(await calls.write("PATCH", "/state", { body: encode(json, mergePatch), contentType }, o));
    },

    async replace(state, o) {
      return receiptOf(await calls.write("PUT", "/state", { body: encode(json, state) }, o));
    },

    async clear(o) {
      return receiptOf(await calls.write("DELETE", "/state", {}, o));
    },

    async update(keys, change, o = {}) {
      const { signal, timeoutMs } = o;
      const read = () => thread.read({ keys: [keys].flat(), signal, timeoutMs });
      const merge = async (operations: readonly Operation[], ifMatch: string | number) => {
        const body = mergeText(json, operations);
        return mergeReceipt(await calls.send("PATCH", "/state", { body }, { ...o, ifMatch }));
      };
      return calls.queue.run(() => updateLoop(read, change as any, merge, signal), signal);
    },

    async configure({ metadata, ttlSeconds }, o) {
      const body = JSON.stringify({ metadata, ttl_seconds: ttlSeconds });
      return camel<ThreadInfo>((await calls.write("PATCH", "", { body }, o)).body);
    },

    async destroy(o) {
      await calls.write("DELETE", "", { responseThread: "new" }, o);
    },

    async turn(o = {}) {
      return takeTurn(calls, o, (token) => threadOf(transport, schema, byId, token));
    },

    async turnState(o) {
      return camel((await calls.read("/turn", o)).body);
    },

    async fork(init = {}) {
      checkDefined(init, "id", "owner", "fromCheckpoint");
      const { id, owner, metadata, fromCheckpoint, include, ...o } = init;
      const body = JSON.stringify({ id, owner, metadata, from_checkpoint: fromCheckpoint, include });
      const info = camel<ThreadInfo>((await calls.write("POST", "/fork", { body, responseThread: "other" }, o)).body);
      return byId(info.id, info.signedId ?? undefined, schema) as Thread<any>;
    },

    async rotate(o) {
      const rotated = await withRotationLock(() => calls.write("POST", "/rotate", { responseThread: "new" }, o));
      const info = camel<ThreadInfo>(rotated.body);
      if (info.signedId) identity.switchTo(info.signedId);
      return info;
    },

    events: (o) => listen(transport, o),
  };

  return thread;
}

/** Slices an array like the server does. */
function sliceOf(value: any, { tail, offset = 0, limit = Infinity }: { tail?: number | undefined; offset?: number | undefined; limit?: number | undefined }) {
  if (!Array.isArray(value)) return value;
  return tail === undefined ? value.slice(offset, offset + limit) : value.slice(Math.max(0, value.length - tail));
}
