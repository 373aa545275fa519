import { Gate } from "./gate.js";
import { type Identity, idOf, type Sender } from "./identity.js";

export const CURRENT = "/v1/threads/current";

export class ByHeader implements Identity {
  signedId: string | undefined;
  readonly #gate = new Gate();

  constructor(signedId: string | undefined) {
    this.signedId = signedId;
  }

  get id(): string | undefined {
    return idOf(this.signedId);
  }

  enter(signal: AbortSignal | undefined): Promise<() => void> {
    return this.#gate.enter(() => this.signedId !== undefined, signal);
  }

  sender(): Sender {
    return { path: CURRENT, headers: this.signedId === undefined ? {} : { "x-thread-id": this.signedId } };
  }

  handleResponse(sender: Sender, response: Headers): void {
    const signedId = response.get("x-thread-id");
    // a late response to a request with an earlier ID must not bring that ID back
    if (signedId && sender.headers["x-thread-id"] === this.signedId) this.signedId = signedId;
  }

  switchTo(signedId: string): void {
    this.signedId = signedId;
  }
}
