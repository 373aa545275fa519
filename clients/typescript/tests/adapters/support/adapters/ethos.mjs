import { createKvStoreFactory } from "threadkeep/ethos";

export const tooLarge = 33_000;

export function open(options, name) {
  const store = createKvStoreFactory(options)("notes", `session:${name}`);
  return { append: (text) => store.set(text.slice(0, 20), text), items: () => store.list("") };
}
