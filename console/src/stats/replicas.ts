import { combinedSample, combinedSnapshot } from "./combined.js";
import { type Sample, type Snapshot, sampleOf } from "./samples.js";

/** Time without a response after which a replica is dropped, because it has stopped or is no longer reachable. */
const SILENT_MS = 60_000;
const REPLICAS_MAX = 100;
/** Minimum time between two snapshots of a replica. Responses that arrive sooner are ignored. */
const SPAN_MIN_MS = 900;

export interface Replica {
  /** Sequence number of the replica in this tab. Replicas are numbered in the order of their first responses. */
  number: number;
  snapshot: Snapshot;
  sample: Sample;
}

/** Keeps one series per replica, because a load balancer may send each request to a different replica. */
export class Replicas {
  #replicas = new Map<string, Replica>();
  #numbers = 0;

  add(snapshot: Snapshot): void {
    const before = this.#replicas.get(snapshot.replica);
    if (before && snapshot.at - before.snapshot.at < SPAN_MIN_MS) return;
    this.#replicas.delete(snapshot.replica);
    this.#replicas.set(snapshot.replica, {
      number: before?.number ?? ++this.#numbers,
      snapshot,
      sample: sampleOf(before?.snapshot, snapshot),
    });
    if (this.#replicas.size > REPLICAS_MAX) this.#replicas.delete(this.#replicas.keys().next().value!);
  }

  activeAt(at: number): Replica[] {
    for (const [id, { snapshot }] of this.#replicas) if (at - snapshot.at > SILENT_MS) this.#replicas.delete(id);
    return [...this.#replicas.values()].sort((a, b) => a.number - b.number);
  }

  snapshot(at: number): Snapshot | undefined {
    return combinedSnapshot(this.activeAt(at).map(({ snapshot }) => snapshot));
  }

  sample(at: number): Sample | undefined {
    return combinedSample(this.activeAt(at).map(({ sample }) => sample));
  }
}
