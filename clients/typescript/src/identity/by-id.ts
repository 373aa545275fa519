import { segment } from "../http/request.js";
import { type Identity, idOf, type Sender } from "./identity.js";

const open = async (): Promise<() => void> => () => {};

export class ById implements Identity {
  #id: string;
  #signedId: string | undefined;
  readonly #authorize: (signedId: string | undefined, id: string) => Promise<{ [name: string]: string }>;

  constructor(
    id: string,
    authorize: (signedId: string | undefined, id: string) => Promise<{ [name: string]: string }>,
    signedId?: string,
  ) {
    this.#id = id;
    this.#authorize = authorize;
    this.#signedId = signedId;
  }

  get id(): string {
    return this.#id;
  }

  get signedId(): string | undefined {
    return this.#signedId;
  }

  readonly enter: Identity["enter"] = open;

  async sender(): Promise<Sender> {
    return { path: "/v1/threads/" + segment(this.#id), headers: await this.#authorize(this.#signedId, this.#id), mayUseEnvironment: true };
  }

  handleResponse(_: Sender, response: Headers): void {
    const signedId = response.get("x-thread-id");
    if (signedId && idOf(signedId) === this.#id) this.#signedId = signedId;
  }

  switchTo(signedId: string): void {
    this.#id = idOf(signedId)!;
    this.#signedId = signedId;
  }
}

/** Identity for requests that do not belong to a single thread. */
export class Service implements Identity {
  readonly id = undefined;
  readonly signedId = undefined;
  readonly enter: Identity["enter"] = open;
  readonly #headers: () => Promise<{ [name: string]: string }>;

  constructor(headers: () => Promise<{ [name: string]: string }>) {
    this.#headers = headers;
  }

  async sender(): Promise<Sender> {
    return { path: "", headers: await this.#headers(), mayUseEnvironment: true };
  }

  handleResponse(): void {}

  switchTo(): void {}
}
