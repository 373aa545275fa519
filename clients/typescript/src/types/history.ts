import type { Json } from "./json.js";
import type { CallOptions, WriteOptions } from "./options.js";

export interface HistoryItem {
  id: string;
  /** The place of the item, from 1. No place is used twice. */
  seq: number;
  /** When it was appended, in RFC 3339. */
  at: string;
  value: any;
}

export interface NewHistoryItem {
  id: string;
  value: Json;
}

export interface AppendedItem {
  id: string;
  seq: number;
  /** Whether the history already had this item. */
  repeated: boolean;
}

/** The options of writes to a history, which have no conditions. */
export type HistoryWriteOptions = Omit<WriteOptions, "ifMatch" | "life">;

export interface PageOptions extends CallOptions {
  /** Only items after this place. */
  after?: number | undefined;
  /** Only items before this place. */
  before?: number | undefined;
  order?: "asc" | "desc" | undefined;
  limit?: number | undefined;
  /** The newest items only, oldest first. */
  tail?: number | undefined;
}

/** A list that grows at the end, beside the state. */
export interface History {
  append(items: NewHistoryItem | readonly NewHistoryItem[], o?: HistoryWriteOptions): Promise<AppendedItem[]>;
  page(o?: PageOptions): Promise<{ items: HistoryItem[]; next?: number | undefined }>;
  /** All items, page by page. */
  items(o?: CallOptions & { after?: number | undefined }): AsyncIterableIterator<HistoryItem>;
  /** Removes the newest items and returns them, oldest first. */
  take(count?: number, o?: HistoryWriteOptions): Promise<HistoryItem[]>;
  delete(id: string, o?: HistoryWriteOptions): Promise<void>;
  clear(o?: HistoryWriteOptions): Promise<void>;
}
