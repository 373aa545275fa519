import type { CallOptions, WriteOptions } from "./options.js";
import type { ThreadInfo } from "./receipt.js";

export interface Checkpoint {
  checkpoint: number;
  name?: string | null;
  version: number;
  sizeBytes: number;
  createdAt: string | null;
}

export interface CheckpointWithState<S> extends Checkpoint {
  state: Partial<S>;
  metadata: { [key: string]: any };
}

/** Options for writes that never create a thread. */
export type ExistingWriteOptions = Omit<WriteOptions, "ttlSeconds">;

/** Numbered checkpoints of a thread's state and metadata. */
export interface Checkpoints<S> {
  create(o?: ExistingWriteOptions & { name?: string | undefined }): Promise<Checkpoint>;
  /** Returns the checkpoints without states, newest first. */
  list(o?: CallOptions): Promise<Checkpoint[]>;
  get(checkpoint: number, o?: CallOptions): Promise<CheckpointWithState<S>>;
  restore(checkpoint: number, o?: ExistingWriteOptions): Promise<ThreadInfo>;
  delete(checkpoint: number, o?: ExistingWriteOptions): Promise<void>;
}
