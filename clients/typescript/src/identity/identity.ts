/** What a request says about its sender. */
export interface Sender {
  /** The path of the sender's thread. */
  path: string;
  headers: { [name: string]: string };
  /** Whether `THREADKEEP_API_KEY` may authenticate this request. */
  mayUseEnvironment?: boolean;
}

/** How requests name the thread that they are about. */
export interface Identity {
  readonly id: string | undefined;
  readonly signedId: string | undefined;
  /**
   * Waits until the next request may be sent. The result must be called when its response has been learned from, or
   * when there is none. `ttlSeconds` is that of a thread which the request would create.
   */
  enter(signal: AbortSignal | undefined, ttlSeconds?: number): Promise<() => void>;
  sender(): Sender | Promise<Sender>;
  /** Learns from the response to a request of `sender`. */
  learn(sender: Sender, response: Headers, expectsNew: boolean): void | Promise<void>;
  /** Follows a thread to its new ID. */
  move(signedId: string): void;
}

export const idOf = (signedId: string | undefined): string | undefined => signedId?.split(";")[0];
