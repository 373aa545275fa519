import type { IncomingRequest } from "../types/client.js";
import { ByHeader } from "./by-header.js";
import type { Sender } from "./identity.js";

export class ByRequest extends ByHeader {
  readonly login: { authorization?: string };
  readonly #cookie: string | undefined;
  readonly #setCookies = new Map<string, string>();

  constructor({ headers }: IncomingRequest, cookieName: string) {
    const signedId = header(headers, "x-thread-id");
    super(signedId);
    const authorization = header(headers, "authorization");
    this.login = authorization ? { authorization } : {};
    const pairs = header(headers, "cookie")?.split(";") ?? [];
    const isOurs = (pair: string) => pair.startsWith(cookieName + "=") || pair.startsWith(cookieName + "_next=");
    this.#cookie = pairs.map((pair) => pair.trim()).filter(isOurs).join("; ") || undefined;
  }

  override sender(): Sender {
    const sender = super.sender();
    const name = this.signedId === undefined && this.#cookie ? { cookie: this.#cookie } : sender.headers;
    return { ...sender, headers: { ...name, ...this.login } };
  }

  override handleResponse(sender: Sender, response: Headers): void {
    super.handleResponse(sender, response);
    for (const cookie of response.getSetCookie()) this.#setCookies.set(cookie.split("=")[0]!, cookie);
  }

  responseHeaders(): Headers {
    const headers = new Headers();
    if (this.signedId) headers.set("x-thread-id", this.signedId);
    for (const cookie of this.#setCookies.values()) headers.append("set-cookie", cookie);
    return headers;
  }
}

function header(headers: IncomingRequest["headers"], name: string): string | undefined {
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  return (Array.isArray(value) ? value.join(name === "cookie" ? "; " : ", ") : value) ?? undefined;
}
