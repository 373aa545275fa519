import { sha256 } from "../bytes.js";
import { canonical } from "../canonical.js";
import { EffectFailed, EffectInDoubt } from "../http/errors.js";
import { sleep } from "../http/wait.js";
import type { Effect, EffectAttempt } from "../types/effect.js";
import type { CallOptions } from "../types/options.js";
import type { Turn } from "../types/turn.js";
import type { Calls } from "./calls.js";
import { effectOf, effectPath } from "./effects.js";
import { encode, objectText } from "./encode.js";
import { idempotencyKey } from "./idempotency-key.js";
import { NOT_DONE } from "./not-done.js";

const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1_000;

type Granted = Omit<Effect, "state"> & { state: "granted"; fence: string };

type Begun = Granted | (Effect & { fence?: undefined });

/** The beginning of an effect by this turn. */
interface Beginning {
  /** Idempotency key of the requests. The server grants a running attempt again to the key that began it. */
  readonly key: string;
  /** Whether the server may have granted an attempt that is not settled. */
  isOpen?: boolean;
  /** The attempt for which `run` was called. */
  ran?: number | undefined;
}

/** Returns `effect` of a turn. `calls` send the token of the turn. `lost` is aborted when the turn is lost. */
export function effectRunner(calls: Calls, lost: AbortSignal): Turn["effect"] {
  const { json } = calls.transport.settings;
  // for the server, this turn still runs an effect that a failed call left open, so a later call takes over its beginning
  const leftOpen = new Map<string, Beginning[]>();

  /** Waits while another call of this turn runs the effect. The effect is still `running` if that call leaves it open. */
  const begin = async (id: string, members: object, beginning: Beginning, o: CallOptions): Promise<Begun> => {
    const path = effectPath(id);
    beginning.isOpen = true;
    const part = { body: JSON.stringify(members) };
    let effect: Begun = effectOf(await calls.send("POST", path, part, { ...o, idempotencyKey: beginning.key }), json);
    beginning.isOpen = effect.state === "granted";
    for (let ms = FIRST_PAUSE_MS; effect.state === "running" && !leftOpen.get(id)?.length; ms = Math.min(2 * ms, MAX_PAUSE_MS)) {
      await sleep(ms, o.signal);
      lost.throwIfAborted();
      effect = effectOf(await calls.read(path, o), json);
    }
    return effect;
  };

  /** Returns the value that later calls will read. */
  const settle = async ({ id, fence }: Begun, name: "result" | "error", value: unknown, timeoutMs?: number) => {
    const text = encode(json, value ?? null);
    // without the caller's signal, because a tool has run
    await calls.send("PUT", effectPath(id), { body: objectText({ fence }, { [name]: text }) }, { timeoutMs });
    return json.parse(text) as any;
  };

  const perform = async (granted: Granted, run: (effect: EffectAttempt) => unknown, beginning: Beginning, timeoutMs?: number) => {
    const { id, idempotencyKey: key, attempt, fence } = granted;
    beginning.ran = attempt;
    try {
      return await settle(granted, "result", await run({ id, key, attempt, fence }), timeoutMs);
    } catch (error) {
      if (error instanceof EffectFailed) {
        await settle(granted, "error", error.error, timeoutMs);
        error.attempt = attempt;
        beginning.isOpen = false;
      }
      throw error;
    }
  };

  return async (id, tool, args = null, run, { check, idempotent, retry, ...o } = {}) => {
    const hash = await sha256(canonical(json === JSON ? args : JSON.parse(encode(json, args))));
    let beginning: Beginning = { key: idempotencyKey() };
    try {
      for (let retried: number | undefined; ; ) {
        beginning = leftOpen.get(id)?.pop() ?? beginning;
        const effect = await begin(id, { tool, hash, idempotent, retry: retried }, beginning, o);
        const { state, attempt, idempotencyKey: key } = effect;
        if (state === "running") continue;
        if (state === "done") return effect.result;
        if (state === "granted" && (idempotent || beginning.ran !== attempt)) {
          return await perform(effect, run, beginning, o.timeoutMs);
        }
        if (state === "failed") {
          if (!retry) throw new EffectFailed(effect.error, attempt);
        } else {
          // the tool may have run
          if (!check) throw new EffectInDoubt(id, key, attempt);
          const found = await check(key);
          if (found !== NOT_DONE) return await settle(effect, "result", found, o.timeoutMs);
          beginning.ran = undefined;
        }
        retried = attempt;
      }
    } catch (error) {
      // the server grants the running attempt only to one of the calls that lost a response, so each one is kept
      if (beginning.isOpen) leftOpen.set(id, [...(leftOpen.get(id) ?? []), beginning]);
      throw error;
    }
  };
}
