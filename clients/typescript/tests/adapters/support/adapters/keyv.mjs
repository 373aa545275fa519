import { KeyvThreadkeep } from "threadkeep/keyv";

/** The length of a text that does not fit. */
export const tooLarge = 1_100_000;

/** The adapter as a list of texts, so that one test can hold every adapter to the same promises. */
export function open(options, name) {
  const keyv = new KeyvThreadkeep(options);
  return {
    append: (text) => keyv.set(`${name}:${text.slice(0, 20)}`, text),
    async items() {
      const keys = [];
      for await (const [key] of keyv.iterator(name)) keys.push(key.slice(name.length + 1));
      return keys;
    },
  };
}
