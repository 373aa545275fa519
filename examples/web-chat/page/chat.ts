export interface Chat {
  /** The page adds questions; the model removes them. */
  questions: string[];
  /** Only the model writes these, and `draft`. */
  messages: { role: "user" | "assistant"; text: string }[];
  /** Beginning of the next answer. */
  draft: string;
}

const CHANNEL = "conversations";
const channel = new BroadcastChannel(CHANNEL);

/** Notifies the sidebars of all tabs that a conversation changed. */
export function announce(): void {
  channel.postMessage("changed");
}

/** Calls `listener` after each change. Returns a function that stops the calls. */
export function onChange(listener: () => void): () => void {
  const listening = new BroadcastChannel(CHANNEL);
  listening.onmessage = listener;
  return () => listening.close();
}
