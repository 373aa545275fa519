import { randomUUID } from "node:crypto";
import { createState } from "@inngest/agent-kit";
import { createHistory } from "threadkeep/agentkit";

export const tooLarge = 3_000_000;

export function open(options, threadId) {
  const history = createHistory(options);
  return {
    append: (content) =>
      history.appendUserMessage({
        state: createState(),
        threadId,
        userMessage: { id: randomUUID(), role: "user", content, timestamp: new Date() },
      }),
    items: async () =>
      (await history.get({ state: createState(), threadId })).map((result) => result.output[0].content),
  };
}
