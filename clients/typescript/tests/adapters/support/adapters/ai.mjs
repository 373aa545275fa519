import { randomUUID } from "node:crypto";
import { createChatStore } from "threadkeep/ai";

export const tooLarge = 1_100_000;

export function open(options, chatId) {
  const store = createChatStore(options);
  const open = store.open(chatId);
  open.catch(() => {});
  return {
    append: async (text) => (await open).append({ id: randomUUID(), role: "user", parts: [{ type: "text", text }] }),
    items: async () => (await store.load(chatId)).map((message) => message.parts[0].text),
  };
}
