// Reads the JSON messages in one direction of a WebSocket connection (RFC 6455, 5.2). Ignores connections whose first
// request is not for /thread/ws.

const TEXT = 1;
const CONTINUATION = 0;

export class Messages {
  #onMessage;
  #bytes = Buffer.alloc(0);
  #parts = [];
  #state = "head";

  constructor(onMessage) {
    this.#onMessage = onMessage;
  }

  read(chunk) {
    if (this.#state === "other") return;
    this.#bytes = Buffer.concat([this.#bytes, chunk]);
    if (this.#state === "head") this.#readHead();
    if (this.#state === "frames") while (this.#readFrame());
  }

  #readHead() {
    const end = this.#bytes.indexOf("\r\n\r\n");
    if (end < 0) return;
    const head = this.#bytes.toString("latin1", 0, end);
    this.#state = /^(GET \/thread\/ws |HTTP\/1.1 101 )/.test(head) ? "frames" : "other";
    this.#bytes = this.#bytes.subarray(end + 4);
  }

  // Reads one frame. Returns false if the frame is incomplete.
  #readFrame() {
    const bytes = this.#bytes;
    if (bytes.length < 2) return false;
    if (bytes[0] & 0x70) throw new Error("a compressed frame, but no compression was negotiated");
    const masked = bytes[1] >> 7;
    let length = bytes[1] & 0x7f;
    let at = 2;
    if (length >= 126) {
      at = length === 126 ? 4 : 10;
      if (bytes.length < at) return false;
      length = at === 4 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    }
    const mask = bytes.subarray(at, at + 4 * masked);
    at += mask.length;
    if (bytes.length < at + length) return false;
    const payload = Buffer.from(bytes.subarray(at, at + length));
    if (masked) payload.forEach((byte, i) => (payload[i] = byte ^ mask[i & 3]));
    this.#bytes = bytes.subarray(at + length);
    this.#addFrame(bytes[0] & 0x0f, Boolean(bytes[0] & 0x80), payload);
    return true;
  }

  #addFrame(opcode, isLast, payload) {
    if (opcode !== TEXT && opcode !== CONTINUATION) return;
    this.#parts.push(payload);
    if (!isLast) return;
    const text = Buffer.concat(this.#parts).toString();
    this.#parts = [];
    this.#onMessage(JSON.parse(text));
  }
}
