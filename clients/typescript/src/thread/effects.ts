import { camel } from "../http/camel.js";
import { segment } from "../http/request.js";
import type { Effect, Effects } from "../types/effect.js";
import type { JsonFormat } from "../types/json.js";
import type { Calls, ParsedResponse } from "./calls.js";

type Outcome = Pick<Effect, "result" | "error">;

export const effectPath = (id: string): string => "/effects/" + segment(id);

export function effectsOf(calls: Calls): Effects {
  return {
    async get(id, o) {
      return effectOf<Effect>(await calls.read(effectPath(id), o), calls.transport.settings.json);
    },

    async *list({ state, ...o } = {}) {
      let cursor: string | undefined;
      do {
        const query = { state, limit: 100, cursor };
        const { body } = await calls.read("/effects", o, query);
        yield* body.effects.map(camel<Effect>);
        cursor = body.next_cursor ?? undefined;
      } while (cursor);
    },
  };
}

/** Converts an effect. Parses its result or error with the application's `JsonFormat`. */
export function effectOf<E extends Outcome>({ body, text }: ParsedResponse, json: JsonFormat): E {
  const effect = camel<E>(body);
  for (const name of ["result", "error"] as const) {
    if (name in effect) effect[name] = (json.parse(text) as Outcome)[name];
  }
  return effect;
}
