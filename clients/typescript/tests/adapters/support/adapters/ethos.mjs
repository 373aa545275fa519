import { createKvStoreFactory } from "threadkeep/ethos";

/** The length of a text that does not fit. */
export const tooLarge = 33_000;

/** The adapter as a list of texts, so that one test can hold every adapter to the same promises. */
export function open(options, name) {
  const store = createKvStoreFactory(options)("notes", `session:${name}`);
  return { append: (text) => store.set(text.slice(0, 20), text), items: () => store.list("") };
}
