import { camel } from "../http/camel.js";
import { segment } from "../http/request.js";
import type { History, HistoryItem, HistoryWriteOptions, NewHistoryItem, PageOptions } from "../types/history.js";
import type { CallOptions } from "../types/options.js";
import type { Calls } from "./calls.js";
import { encode, objectText } from "./encode.js";

export class HistoryOf implements History {
  readonly #calls: Calls;

  constructor(calls: Calls) {
    this.#calls = calls;
  }

  async append(items: NewHistoryItem | readonly NewHistoryItem[], o?: HistoryWriteOptions) {
    const texts = [items]
      .flat()
      .map(({ id, value }) => objectText({ id: JSON.stringify(id), value: encode(this.#calls.json, value) }));
    const { body } = await this.#calls.write("POST", "/history", { body: `{"items":[${texts.join()}]}` }, o);
    return body.items;
  }

  async page({ after, before, order, limit, tail, ...o }: PageOptions = {}) {
    const { body } = await this.#calls.value("/history", o, { after, before, order, limit, tail });
    const next = body.next_cursor === null ? undefined : Number(body.next_cursor);
    return { items: body.items.map(itemOf), ...(next === undefined ? {} : { next }) };
  }

  async *items(o: CallOptions & { after?: number | undefined } = {}): AsyncIterableIterator<HistoryItem> {
    let after = o.after;
    do {
      const page: { items: HistoryItem[]; next?: number } = await this.page({ ...o, after, limit: 100 });
      yield* page.items;
      after = page.next;
    } while (after !== undefined);
  }

  async take(count?: number, o: HistoryWriteOptions = {}) {
    const request = this.#calls.writeRequest("POST", "/history/take", { body: JSON.stringify({ count }) }, o);
    const { body } = await this.#calls.queue.run(() => this.#calls.sending.value(request), o.signal);
    return body.items.map(itemOf);
  }

  async delete(id: string, o?: HistoryWriteOptions) {
    await this.#calls.write("DELETE", "/history/" + segment(id), {}, o);
  }

  async clear(o?: HistoryWriteOptions) {
    await this.#calls.write("DELETE", "/history", {}, o);
  }
}

const itemOf = (item: { seq: unknown }): HistoryItem => ({ ...camel<HistoryItem>(item), seq: Number(item.seq) });
