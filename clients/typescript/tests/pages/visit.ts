import { createClient } from "threadkeep";

(globalThis as any).createClient = createClient;

(globalThis as any).visit = async (text: string) => {
  const thread = createClient({}).current();
  let opened = () => {};
  const isOpen = new Promise<void>((resolve) => (opened = resolve));
  const stream = thread.events({ onOpen: opened });
  const event = stream.next();
  const [, receipt] = await Promise.all([thread.read(), thread.push("messages", text), isOpen]);
  await thread.push("messages", `${text} again`);
  await event;
  await stream.return!();
  return { messages: await thread.get("messages"), version: receipt.version, id: thread.id };
};
