import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import type { KeyValueBatch } from "../../types/kv.js";
import { type PlainEntry, putAll } from "../entries.js";
import type { Dumped } from "./values.js";

const PART_BYTES = 900_000;
const BATCH_BYTES = 1_000_000;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Splits values into entries. The first line of a value's first entry is JSON: the type and the number of entries. */
function* blobsOf(values: Map<string, Dumped>): Generator<PlainEntry> {
  for (const [key, { type, bytes }] of values) {
    const parts = Math.max(1, Math.ceil(bytes.length / PART_BYTES));
    const header = encoder.encode(JSON.stringify({ type, parts }) + "\n");
    for (let part = 0; part < parts; part++) {
      const piece = bytes.subarray(part * PART_BYTES, (part + 1) * PART_BYTES);
      yield { key: key + part, body: part === 0 ? concat([header, piece]) : piece };
    }
  }
}

export const putBlobs = (kv: KeyValueBatch, values: Map<string, Dumped>): Promise<void> =>
  putAll(kv, blobsOf(values), ({ body }) => (body as Uint8Array).length, BATCH_BYTES);

export async function readBlobs(
  serde: SerializerProtocol,
  kv: KeyValueBatch,
  keys: readonly string[],
): Promise<Map<string, unknown>> {
  const firsts = await kv.getMany(keys.map((key) => key + "0"));
  const found = keys.flatMap((key) => {
    const bytes = firsts.get(key + "0")?.bytes;
    if (!bytes) return [];
    const end = bytes.indexOf(10);
    const { type, parts } = JSON.parse(decoder.decode(bytes.subarray(0, end))) as { type: string; parts: number };
    const partKeys = Array.from({ length: parts - 1 }, (_, index) => key + (index + 1));
    return [{ key, type, firstPiece: bytes.subarray(end + 1), partKeys }];
  });
  const rest = await kv.getMany(found.flatMap(({ partKeys }) => partKeys));
  const values = new Map<string, unknown>();
  for (const { key, type, firstPiece, partKeys } of found) {
    const pieces = partKeys.map((partKey) => {
      const piece = rest.get(partKey);
      if (!piece) throw new Error("A part of a stored value is missing.");
      return piece.bytes;
    });
    values.set(key, await serde.loadsTyped(type, concat([firstPiece, ...pieces])));
  }
  return values;
}

function concat(pieces: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let offset = 0;
  for (const piece of pieces) {
    joined.set(piece, offset);
    offset += piece.length;
  }
  return joined;
}
