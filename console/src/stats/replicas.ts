import { combinedSample, combinedSnapshot } from "./combined.js";
import { type Sample, type Snapshot, sampleOf } from "./samples.js";

/** A replica that has not answered for that long is left out: it has stopped, or the balancer no longer sends requests to it. */
const SILENT_MS = 60_000;
/** Replicas that are remembered, those that answered last. */
const REPLICAS_MAX = 100;
/** The shortest time that a rate is about. A replica that answers again before is not counted again. */
const SPAN_MIN_MS = 900;

/** What one replica has said. */
export interface Replica {
  /** Its number among those that this tab has heard. */
  number: number;
  snapshot: Snapshot;
  /** The rates between its last two answers. */
  sample: Sample;
}

/** The series of each replica that answers. A load balancer sends each request to another one. */
export class Replicas {
  #heard = new Map<string, Replica>();
  #numbers = 0;

  take(snapshot: Snapshot): void {
    const before = this.#heard.get(snapshot.replica);
    if (before && snapshot.at - before.snapshot.at < SPAN_MIN_MS) return;
    this.#heard.delete(snapshot.replica);
    this.#heard.set(snapshot.replica, {
      number: before?.number ?? ++this.#numbers,
      snapshot,
      sample: sampleOf(before?.snapshot, snapshot),
    });
    if (this.#heard.size > REPLICAS_MAX) this.#heard.delete(this.#heard.keys().next().value!);
  }

  /** Those that have answered lately, by their numbers. */
  heard(at: number): Replica[] {
    for (const [id, { snapshot }] of this.#heard) if (at - snapshot.at > SILENT_MS) this.#heard.delete(id);
    return [...this.#heard.values()].sort((a, b) => a.number - b.number);
  }

  snapshot(at: number): Snapshot | undefined {
    return combinedSnapshot(this.heard(at).map(({ snapshot }) => snapshot));
  }

  sample(at: number): Sample | undefined {
    return combinedSample(this.heard(at).map(({ sample }) => sample));
  }
}
