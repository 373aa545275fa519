// Checks rules for streams that a schema cannot express.

import assert from "node:assert/strict";
import { checked, event as eventSchema } from "./schemas.mjs";

const ENDS = ["response.completed", "response.failed", "response.incomplete"];

export const isEnd = ({ type }) => ENDS.includes(type);

// Concatenates the deltas of each part of an item.
class Texts {
  #texts = new Map();

  static partKey({ item_id, content_index, summary_index }) {
    return JSON.stringify([item_id, content_index, summary_index]);
  }

  add(event) {
    const key = Texts.partKey(event);
    this.#texts.set(key, (this.#texts.get(key) ?? "") + event.delta);
  }

  end(event) {
    const text = event.text ?? event.refusal ?? event.arguments;
    assert.equal(this.#texts.get(Texts.partKey(event)) ?? "", text, "deltas differ from the whole text");
  }
}

/** Checks the events of a stream. Returns the final response. */
export function responseOf(events) {
  for (const event of events) checked(eventSchema, event);
  assert.deepEqual(
    events.map((event) => event.sequence_number),
    events.map((_, number) => number),
  );
  const [created, inProgress] = events;
  assert.deepEqual([created.type, inProgress.type], ["response.created", "response.in_progress"]);
  const last = events.at(-1);
  assert.ok(isEnd(last), `the stream ends with ${last.type}`);

  const output = [];
  const texts = new Texts();
  let added = 0;
  for (const event of events) {
    const { type, output_index: index } = event;
    if (index !== undefined && type !== "response.output_item.added") {
      assert.ok(index < added, `${type} comes before its item`);
    }
    if (type === "response.output_item.added") assert.equal(index, added++);
    else if (type === "response.output_item.done") output[index] = event.item;
    else if (type.endsWith(".delta")) texts.add(event);
    else if (type.endsWith("_text.done") || /(refusal|arguments)\.done$/.test(type)) texts.end(event);
  }
  assert.deepEqual(last.response.output, output);
  return last.response;
}
