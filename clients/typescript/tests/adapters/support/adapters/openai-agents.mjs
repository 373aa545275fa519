import { ThreadkeepSession } from "threadkeep/openai-agents";

export const tooLarge = 1_100_000;

export function open(options, sessionId) {
  const session = new ThreadkeepSession({ ...options, sessionId });
  return {
    append: (content) => session.addItems([{ type: "message", role: "user", content }]),
    items: async () => (await session.getItems()).map((item) => item.content),
  };
}
