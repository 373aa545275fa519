export interface Chat {
  /** The page adds questions; the model removes them. */
  questions: string[];
  /** Only the model writes `messages` and `draft`. */
  messages: { role: "user" | "assistant"; text: string }[];
  /** The part of the next answer that the model has written so far. */
  draft: string;
}

const CHANNEL = "conversations";
const channel = new BroadcastChannel(CHANNEL);

/** Notifies the sidebars of all tabs that a conversation changed. */
export function announce(): void {
  channel.postMessage("changed");
}

/** Calls `listener` after each change. Returns a function that removes the listener. */
export function onChange(listener: () => void): () => void {
  const listening = new BroadcastChannel(CHANNEL);
  listening.onmessage = listener;
  return () => listening.close();
}
