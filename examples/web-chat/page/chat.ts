/** The state of a conversation. */
export interface Chat {
  /** Written by the page, and taken by the model. */
  questions: string[];
  /** Written by the model alone, like `draft`. */
  messages: { role: "user" | "assistant"; text: string }[];
  /** The beginning of the next answer. */
  draft: string;
}

const CHANNEL = "conversations";
const channel = new BroadcastChannel(CHANNEL);

/** Tells the sidebars of all tabs that a conversation changed. */
export function announce(): void {
  channel.postMessage("changed");
}

/** Calls a function at each change, and returns a function that ends this. */
export function onChange(listener: () => void): () => void {
  const listening = new BroadcastChannel(CHANNEL);
  listening.onmessage = listener;
  return () => listening.close();
}
