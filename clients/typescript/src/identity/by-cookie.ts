import { ThreadkeepError } from "../http/errors.js";
import { CURRENT } from "./by-header.js";
import { Gate } from "./gate.js";
import { type Identity, idOf, type Sender } from "./identity.js";
import { acquire, locks } from "./lock.js";

const LOST =
  "cookie_lost: The browser does not return the cookie. Serve threadkeep from the site of the page, or set " +
  'cookie_same_site = "none" and credentials: "include", or use identity: "header".';

export class ByCookie implements Identity {
  signedId: string | undefined;
  readonly #gate = new Gate();
  readonly #fetchSignedId: () => Promise<string | undefined>;
  readonly #lockName: string;
  readonly #lockTimeoutMs: number;
  #fetching: Promise<string | undefined> | undefined;
  #isLost = false;

  constructor(fetchSignedId: () => Promise<string | undefined>, baseUrl: string | undefined, lockTimeoutMs: number) {
    this.#fetchSignedId = fetchSignedId;
    this.#lockName = `threadkeep first visit ${baseUrl}`;
    this.#lockTimeoutMs = lockTimeoutMs;
  }

  get id(): string | undefined {
    return idOf(this.signedId);
  }

  async enter(signal: AbortSignal | undefined): Promise<() => void> {
    const isKnown = () => this.#isLost || this.signedId !== undefined;
    const leave = await this.#gate.enter(isKnown, signal);
    if (this.#isLost) throw lost();
    if (!locks || isKnown()) return leave;
    // the lock prevents the first requests of two tabs from creating two threads
    const waiting = AbortSignal.any([AbortSignal.timeout(this.#lockTimeoutMs), ...(signal ? [signal] : [])]);
    const unlock = await acquire(locks, this.#lockName, waiting).catch(() => () => {});
    const done = () => {
      unlock();
      leave();
    };
    if (!signal?.aborted) return done;
    done();
    throw signal.reason;
  }

  sender(): Sender {
    return { path: CURRENT, headers: {} };
  }

  async handleResponse(_: Sender, response: Headers, expectsNew: boolean): Promise<void> {
    const signedId = response.get("x-thread-id");
    if (!signedId) return;
    if (!this.id || expectsNew || idOf(signedId) === this.id) {
      this.signedId = signedId;
      return;
    }
    // either another tab has started a new thread, or this response is outdated; a second request shows which
    const second = await this.#refetch();
    if (!second || idOf(second) === this.id) return;
    if (idOf(second) !== idOf(signedId)) {
      const third = await this.#refetch(); // a third ID means that the browser does not keep the cookie
      if (!third) return;
      if (idOf(third) !== idOf(second)) this.#isLost = true;
    }
    if (this.#isLost) throw lost();
    this.signedId = second;
  }

  switchTo(signedId: string): void {
    this.signedId = signedId;
  }

  #refetch(): Promise<string | undefined> {
    return (this.#fetching ??= this.#fetchSignedId().finally(() => (this.#fetching = undefined)));
  }
}

const lost = () => new ThreadkeepError("cookie_lost", LOST);
