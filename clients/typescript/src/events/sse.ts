export interface Message {
  type: string;
  data: string;
  id?: string;
  retry?: number;
}

export class SseParser {
  #line = "";
  #endsWithReturn = false;
  #message: Message | undefined;

  *push(text: string): Generator<Message> {
    if (!text) return;
    const lines = (this.#endsWithReturn && text[0] === "\n" ? text.slice(1) : text).split(/\r\n|\r|\n/);
    this.#endsWithReturn = text.endsWith("\r");
    lines[0] = this.#line + lines[0];
    this.#line = lines.pop()!;
    for (const line of lines) {
      if (line) this.#field(line);
      else if (this.#message) {
        yield this.#message;
        this.#message = undefined;
      }
    }
  }

  #field(line: string): void {
    const colon = line.indexOf(":");
    if (!colon) return; // a comment
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    const message = (this.#message ??= { type: "", data: "" });
    if (name === "event") message.type = value;
    if (name === "data") message.data += (message.data && "\n") + value;
    if (name === "id") message.id = value;
    if (name === "retry" && /^\d+$/.test(value)) message.retry = Number(value);
  }
}
