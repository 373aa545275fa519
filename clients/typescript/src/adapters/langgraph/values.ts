import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";

/** A serialized value within a JSON document: its type, and its bytes as a text or in base64. */
export type Packed = { type: string; text: string } | { type: string; base64: string };

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export async function dump(serde: SerializerProtocol, value: unknown): Promise<{ type: string; bytes: Uint8Array }> {
  const [type, bytes] = await serde.dumpsTyped(value);
  return { type, bytes };
}

export function pack({ type, bytes }: { type: string; bytes: Uint8Array }): Packed {
  try {
    return { type, text: decoder.decode(bytes) };
  } catch {
    let binary = "";
    for (const byte of bytes) binary += String.fromCharCode(byte);
    return { type, base64: btoa(binary) };
  }
}

export function unpack(serde: SerializerProtocol, packed: Packed): Promise<any> {
  const bytes =
    "text" in packed
      ? encoder.encode(packed.text)
      : Uint8Array.from(atob(packed.base64), (letter) => letter.charCodeAt(0));
  return serde.loadsTyped(packed.type, bytes);
}
