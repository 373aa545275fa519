import { EffectFailed } from "../../http/errors.js";
import type { EffectAttempt, EffectOptions } from "../../types/effect.js";
import type { Turn } from "../../types/turn.js";

type CallOptions = { toolCallId: string; abortSignal?: AbortSignal | undefined; effect?: EffectAttempt };

interface AnyTool {
  execute?: (input: any, options: CallOptions) => unknown;
}

/** Options for some of the tools, by name. */
export type OnceOptions<T> = { [K in keyof T]?: Omit<EffectOptions<any>, "signal"> | undefined };

/**
 * Returns tools that run each call once. `turn` records the results by `toolCallId`. The options of `execute` contain
 * `effect`, with the key for the system that the tool calls. Tools without `execute` remain unchanged.
 */
export function once<T extends { [name: string]: object }>(
  tools: T,
  turn: Pick<Turn, "effect">,
  options: OnceOptions<T> = {},
): T {
  const wrapped = Object.entries<AnyTool>(tools).map(([name, tool]) => [
    name,
    tool.execute ? { ...tool, execute: executeOf(name, tool, turn, options[name as keyof T]) } : tool,
  ]);
  return Object.fromEntries(wrapped) as T;
}

function executeOf(
  name: string,
  tool: AnyTool,
  turn: Pick<Turn, "effect">,
  o: EffectOptions<any> = {},
): NonNullable<AnyTool["execute"]> {
  return async (input, options) => {
    const run = async (effect: EffectAttempt) => lastOf(tool.execute!(input, { ...options, effect }));
    try {
      return await turn.effect<unknown>(options.toolCallId, name, input, run, { ...o, signal: options.abortSignal });
    } catch (error) {
      // the SDK sends the message to the model, and the message of `EffectFailed` omits the recorded error
      throw error instanceof EffectFailed ? new Error(textOf(error.error), { cause: error }) : error;
    }
  };
}

/** Returns the output of a tool. If the tool streams its output, returns the last part. */
async function lastOf(output: unknown): Promise<unknown> {
  if (!isAsyncIterable(output)) return output;
  let last: unknown;
  for await (last of output);
  return last;
}

const isAsyncIterable = (value: unknown): value is AsyncIterable<unknown> =>
  typeof value === "object" && value !== null && Symbol.asyncIterator in value;

const textOf = (error: unknown): string => (typeof error === "string" ? error : JSON.stringify(error));
