import { randomUUID } from "node:crypto";
import { emptyCheckpoint, uuid6 } from "@langchain/langgraph-checkpoint";
import { ThreadkeepSaver } from "threadkeep/langgraph";

// a checkpoint without its values must fit into one entry, which has at most 1 MiB
export const tooLarge = 1_100_000;

export function open(options, thread_id) {
  const saver = new ThreadkeepSaver(options);
  return {
    append: (text) =>
      saver.put(
        { configurable: { thread_id, checkpoint_ns: "" } },
        { ...emptyCheckpoint(), id: uuid6(0), channel_values: { text }, channel_versions: { text: randomUUID() } },
        { source: "loop", step: 0, parents: {}, text },
        {},
      ),
    async items() {
      const texts = [];
      for await (const { metadata } of saver.list({ configurable: { thread_id } })) texts.unshift(metadata.text);
      return texts;
    },
  };
}
