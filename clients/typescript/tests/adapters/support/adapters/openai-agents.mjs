import { ThreadkeepSession } from "threadkeep/openai-agents";

/** The length of a text that does not fit. */
export const tooLarge = 1_100_000;

/** The adapter as a list of texts, so that one test can hold every adapter to the same promises. */
export function open(options, sessionId) {
  const session = new ThreadkeepSession({ ...options, sessionId });
  return {
    append: (content) => session.addItems([{ type: "message", role: "user", content }]),
    items: async () => (await session.getItems()).map((item) => item.content),
  };
}
