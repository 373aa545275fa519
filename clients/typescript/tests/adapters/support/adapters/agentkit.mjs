import { randomUUID } from "node:crypto";
import { createState } from "@inngest/agent-kit";
import { createHistory } from "threadkeep/agentkit";

/** The length of a text that does not fit. */
export const tooLarge = 3_000_000;

/** The adapter as a list of texts, so that one test can hold every adapter to the same promises. */
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
