export interface Sender {
  path: string;
  headers: { [name: string]: string };
  /** Whether `THREADKEEP_API_KEY` may authenticate this request. */
  mayUseEnvironment?: boolean;
}

export interface Identity {
  readonly id: string | undefined;
  readonly signedId: string | undefined;
  /**
   * Waits until the caller may send a request. Call the returned function after `handleResponse`, or if there is no
   * response. `ttlSeconds` is the TTL of the thread if the request creates it.
   */
  enter(signal: AbortSignal | undefined, ttlSeconds?: number): Promise<() => void>;
  sender(): Sender | Promise<Sender>;
  handleResponse(sender: Sender, response: Headers, expectsNew: boolean): void | Promise<void>;
  switchTo(signedId: string): void;
}

export const idOf = (signedId: string | undefined): string | undefined => signedId?.split(";")[0];
