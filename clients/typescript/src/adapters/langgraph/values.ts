import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { base64, fromBase64 } from "../../bytes.js";

export type Packed = { type: string; text: string } | { type: string; base64: string };

export type Dumped = { type: string; bytes: Uint8Array };

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export async function dump(serde: SerializerProtocol, value: unknown): Promise<Dumped> {
  const [type, bytes] = await serde.dumpsTyped(value);
  return { type, bytes };
}

export function pack({ type, bytes }: Dumped): Packed {
  try {
    return { type, text: decoder.decode(bytes) };
  } catch {
    return { type, base64: base64(bytes) };
  }
}

export function unpack(serde: SerializerProtocol, packed: Packed): Promise<any> {
  const bytes = "text" in packed ? encoder.encode(packed.text) : fromBase64(packed.base64);
  return serde.loadsTyped(packed.type, bytes);
}
