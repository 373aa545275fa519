import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import type { KeyValueBatch } from "../../types/kv.js";
import { type PlainEntry, putAll } from "../entries.js";
import { dump } from "./values.js";

const PART_BYTES = 900_000;
/** One request has at most this many bytes of values. */
const BATCH_BYTES = 1_000_000;

const encoder = new TextEncoder();

/** The entries for values of any size. The first part of each begins with a line about the whole. */
export async function blobsOf(serde: SerializerProtocol, values: Map<string, unknown>): Promise<PlainEntry[]> {
  const entries: PlainEntry[] = [];
  for (const [key, value] of values) {
    const { type, bytes } = await dump(serde, value);
    const parts = Math.max(1, Math.ceil(bytes.length / PART_BYTES));
    const head = encoder.encode(JSON.stringify({ type, parts }) + "\n");
    for (let part = 0; part < parts; part++) {
      const piece = bytes.subarray(part * PART_BYTES, (part + 1) * PART_BYTES);
      entries.push({ key: key + part, body: part === 0 ? concat([head, piece]) : piece });
    }
  }
  return entries;
}

/** Puts all entries, in as few requests as possible. */
export const putBlobs = (kv: KeyValueBatch, entries: readonly PlainEntry[]): Promise<void> =>
  putAll(kv, entries, ({ body }) => (body as Uint8Array).length, BATCH_BYTES);

/** The values that exist, by the keys of their blobs. */
export async function readBlobs(
  serde: SerializerProtocol,
  kv: KeyValueBatch,
  keys: readonly string[],
): Promise<Map<string, unknown>> {
  const values = new Map<string, unknown>();
  if (!keys.length) return values;
  const firsts = await kv.getMany(keys.map((key) => key + "0"));
  for (const key of keys) {
    const first = firsts.get(key + "0");
    if (!first) continue;
    const end = first.bytes.indexOf(10);
    const { type, parts } = JSON.parse(new TextDecoder().decode(first.bytes.subarray(0, end)));
    const names = Array.from({ length: parts - 1 }, (_, index) => key + (index + 1));
    const rest = names.length ? await kv.getMany(names) : new Map();
    const pieces = names.map((name) => {
      const piece = rest.get(name);
      if (!piece) throw new Error("A part of a stored value is missing.");
      return piece.bytes as Uint8Array;
    });
    values.set(key, await serde.loadsTyped(type, concat([first.bytes.subarray(end + 1), ...pieces])));
  }
  return values;
}

function concat(pieces: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
