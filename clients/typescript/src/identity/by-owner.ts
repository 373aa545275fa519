import { orAbort } from "../http/wait.js";
import { ById } from "./by-id.js";
import type { Identity } from "./identity.js";

/** Checks the owner of a thread before the first request. */
export class ByOwner extends ById {
  #checked: Promise<void> | undefined;
  readonly #check: (ttlSeconds: number | undefined) => Promise<void>;

  constructor(id: string, authorize: ConstructorParameters<typeof ById>[1], check: (ttlSeconds: number | undefined) => Promise<void>) {
    super(id, authorize);
    this.#check = check;
  }

  override readonly enter: Identity["enter"] = async (signal, ttlSeconds) => {
    this.#checked ??= this.#check(ttlSeconds).catch((error) => {
      this.#checked = undefined;
      throw error;
    });
    await orAbort(this.#checked, signal);
    return () => {};
  };
}
