import { camel } from "../http/camel.js";
import { segment } from "../http/request.js";
import type { History, HistoryItem, HistorySegment } from "../types/history.js";
import type { Calls } from "./calls.js";
import { encode, objectText } from "./encode.js";

export function historyOf(calls: Calls): History {
  const { json } = calls.transport.settings;
  const arrayText = (items: readonly { id?: string | undefined; value: unknown }[]) =>
    `[${items.map(({ id, value }) => objectText({ id }, { value: encode(json, value) })).join()}]`;

  return {
    async append(item, o) {
      return (await this.appendMany([item], o))[0]!;
    },

    async appendMany(items, o) {
      return (await calls.write("POST", "/history", { body: `{"items":${arrayText(items)}}` }, o)).body.items;
    },

    async page({ after, before, order, limit, tail, originals, ...o } = {}) {
      return pageOf((await calls.value("/history", o, { after, before, order, limit, tail, originals })).body);
    },

    async *items(o = {}) {
      let { after } = o;
      do {
        const { items, next } = await this.page({ ...o, after, limit: 100 });
        yield* items;
        after = next;
      } while (after !== undefined);
    },

    async latest(count, o) {
      const found: HistoryItem[] = [];
      // a page holds at most 2 MiB, so several pages may be necessary
      for (let before: number | undefined; found.length < count; ) {
        const { items, next } = await this.page({ ...o, order: "desc", before, limit: Math.min(count - found.length, 1_000) });
        found.push(...items);
        if (next === undefined) break;
        before = next;
      }
      return found.reverse();
    },

    async take(count, o = {}) {
      const request = calls.writeRequest("POST", "/history/take", { body: JSON.stringify({ count }) }, o);
      const { body } = await calls.queue.run(() => calls.transport.value(request), o.signal);
      return body.items.map(itemOf);
    },

    async compact({ through, count, items, keepSeconds }, o) {
      const body = objectText({ through, count, keep_seconds: keepSeconds }, { items: arrayText(items) });
      const { body: receipt } = await calls.write("POST", "/history/compact", { body }, o);
      return { segment: Number(receipt.segment), droppedSegments: Number(receipt.dropped_segments) };
    },

    async segments(o = {}) {
      const { body } = await calls.value("/history/segments", o, {});
      return body.segments.map((one: object) => camel<HistorySegment>(one));
    },

    async segment(number, { after, before, order, limit, ...o } = {}) {
      return pageOf((await calls.value("/history/segments/" + number, o, { after, before, order, limit })).body);
    },

    async delete(id, o) {
      await calls.write("DELETE", "/history/" + segment(id), {}, o);
    },

    async clear(o) {
      await calls.write("DELETE", "/history", {}, o);
    },
  };
}

/** Converts a page. `next_cursor` may be of any type, because it was parsed by the application's `JsonFormat`. */
export const pageOf = ({ items, next_cursor }: any): { items: HistoryItem[]; next?: number | undefined } => ({
  items: items.map(itemOf),
  next: next_cursor == null ? undefined : Number(next_cursor),
});

const itemOf = (item: { seq: unknown }): HistoryItem => ({ ...camel<HistoryItem>(item), seq: Number(item.seq) });
