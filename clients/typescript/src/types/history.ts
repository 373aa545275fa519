import type { Json } from "./json.js";
import type { CallOptions, WriteOptions } from "./options.js";

export interface HistoryItem {
  id: string;
  /** The place of the item, from 1. No place is used twice. */
  seq: number;
  /** When it was appended, in RFC 3339. */
  at: string;
  value: any;
  /** For a summary, the segment with its originals, while they are kept. */
  segment?: number;
}

/** Originals that a compaction replaced. */
export interface HistorySegment {
  segment: number;
  /** The place of the first original. */
  firstSeq: number;
  /** The last place that was replaced. */
  through: number;
  count: number;
  sizeBytes: number;
  /** The ids of the summary. */
  items: string[];
  compactedAt: string;
  expiresAt: string;
}

export interface Compaction {
  /** The last place to replace. */
  through: number;
  /** The number of items up to that place that the summary was made of. */
  count: number;
  /** 1 to 100 items, at most `count`. The server makes missing ids. */
  items: readonly { id?: string | undefined; value: Json }[];
  /** How long the originals are kept: a week by default, 0 for not at all. */
  keepSeconds?: number | undefined;
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
  /** The originals instead of their summaries, while they are kept. */
  originals?: boolean | undefined;
}

/** A list that grows at the end, beside the state. */
export interface History {
  append(item: NewHistoryItem, o?: HistoryWriteOptions): Promise<AppendedItem>;
  /** Appends up to 1,000 items in one step. */
  appendMany(items: readonly NewHistoryItem[], o?: HistoryWriteOptions): Promise<AppendedItem[]>;
  page(o?: PageOptions): Promise<{ items: HistoryItem[]; next?: number | undefined }>;
  /** All items, page by page. */
  items(o?: CallOptions & { after?: number | undefined }): AsyncIterableIterator<HistoryItem>;
  /** The newest items, oldest first. */
  latest(count: number, o?: CallOptions): Promise<HistoryItem[]>;
  /** Removes the newest items and returns them, oldest first. */
  take(count?: number, o?: HistoryWriteOptions): Promise<HistoryItem[]>;
  /**
   * Replaces the oldest items, if they are still those that the summary was made of; otherwise an `ApiError` with the code
   * `prefix_changed`.
   */
  compact(compaction: Compaction, o?: HistoryWriteOptions): Promise<{ segment: number; droppedSegments: number }>;
  /** The compactions whose originals are kept, newest first. */
  segments(o?: CallOptions): Promise<HistorySegment[]>;
  /** A page of the originals of one. */
  segment(
    segment: number,
    o?: Omit<PageOptions, "tail" | "originals">,
  ): Promise<{ items: HistoryItem[]; next?: number | undefined }>;
  delete(id: string, o?: HistoryWriteOptions): Promise<void>;
  clear(o?: HistoryWriteOptions): Promise<void>;
}
