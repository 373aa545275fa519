import { createClient } from "threadkeep";

/** A first visit that reads, writes and listens at once. */
(globalThis as any).visit = async (text: string) => {
  const thread = createClient({}).current();
  const stream = thread.events();
  const opened = stream.next();
  const [, receipt] = await Promise.all([thread.read(), thread.push("messages", text)]);
  await thread.push("messages", `${text} again`);
  await opened;
  await stream.return!();
  return { messages: await thread.get("messages"), version: receipt.version, id: thread.id };
};
