#!/usr/bin/env python3
"""Estimates what a number of daily users needs: Redis masters, replicas of threadkeep, memory and connections.

Usage: load/cluster/model.py [--users 100e6] [--masters N] [--replicas N] [...]

Without --masters and --replicas, chooses the smallest numbers that fit. `check.py` compares the model with measurements
on this machine, and docs/capacity.md explains the results.
"""

import argparse
import bisect
import math
from dataclasses import dataclass, replace

BUCKETS = 256
"""Parts of the data, each with its own log. They are distributed evenly over the masters."""
DAY = 86_400

# Microseconds of Redis CPU per call if each call arrives alone, fitted to check.py on two shared cores. Calls that arrive
# together cost a fifth to a third as much (benches/README.md).
CREATE, PUSH, READ, END = 300, 95, 50, 150
POLL = 6
"""Microseconds to read the end of one bucket's log. A replica with readers of all events does this 17 times a second."""
POLLS_PER_SECOND = 17
HEADS = 10
"""Microseconds to find the end of one bucket's log, once a second per replica with readers of all events."""
REAP = 37
"""Microseconds to search one bucket for expired threads, once a second for all replicas together."""
BUS, DELIVERY = 3, 1
"""Microseconds to take part in one message between nodes, and to deliver one message to a subscriber. Redis sends each
published message to all nodes, and each replica with waiting callers subscribes to one node."""
NODE_IDLE = 0.0028
"""Share of a core that an idle master uses."""

# Microseconds of CPU of the server per request.
SERVER_WRITE, SERVER_READ = 17, 12
CONNECTION_BYTES = 20_000
"""Memory of Redis per connection."""
EXTRA_CONNECTIONS = 3
"""Connections of a replica to each master in addition to one per worker: background work, responses, administration."""
SCRIPT_REPLY_BYTES = 400
"""Bytes of a call and its reply without the message itself."""

CPU_MAX = 0.6
"""Highest share of a core that leaves room for bursts, failovers and resharding."""
MASTERS_MAX = 1_000
"""The largest cluster that Redis recommends (https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/)."""
CLIENTS_MAX = 10_000
"""Default of `maxclients`."""

STATE_BYTES = [15, 277, 4_500, 57_000]
THREAD_BYTES = [350, 645, 5_400, 63_900]
"""Redis memory of a thread with a state of `STATE_BYTES` and the recommended settings (docs/capacity.md)."""


@dataclass(frozen=True)
class Deployment:
    masters: int
    replicas: int
    workers: int = 4
    redis_bytes: float = 12e9


@dataclass(frozen=True)
class Load:
    """Rates per second over the whole deployment, and replicas with readers of all events."""

    creates: float = 0
    pushes: float = 0
    reads: float = 0
    ends: float = 0
    turn_waits: float = 0
    """Turns that end while another caller waits for them."""
    event_readers: int = 0

    def at_rate(self, rate: float) -> "Load":
        return replace(self, creates=self.creates * rate, pushes=self.pushes * rate, reads=self.reads * rate, ends=self.ends * rate)


@dataclass(frozen=True)
class Users:
    daily: float
    conversations: float
    messages: float
    message_bytes: float
    lifetime: float
    archive: float
    peak: float
    hottest: float
    waits: float

    @property
    def load(self) -> Load:
        conversations = self.daily * self.conversations * self.peak / DAY
        messages = conversations * self.messages
        return Load(creates=conversations, pushes=messages, reads=messages, ends=conversations, turn_waits=messages * self.waits)

    @property
    def threads(self) -> float:
        """Threads that exist at the same time, living and archived."""
        return self.daily * self.conversations * (self.lifetime + self.archive) / DAY

    @property
    def thread_bytes(self) -> float:
        # conversations are short, so most threads have their final size
        return interpolate(self.messages * self.message_bytes)


def interpolate(state_bytes: float) -> float:
    upper = min(max(bisect.bisect(STATE_BYTES, state_bytes), 1), len(STATE_BYTES) - 1)
    (x0, x1), (y0, y1) = STATE_BYTES[upper - 1 : upper + 1], THREAD_BYTES[upper - 1 : upper + 1]
    return y0 + (state_bytes - x0) * (y1 - y0) / (x1 - x0)


def redis_cpu(deployment: Deployment, load: Load) -> float:
    """Returns the share of a core that each master uses."""
    requests = load.creates * CREATE + load.pushes * PUSH + load.reads * READ + load.ends * END
    background = BUCKETS * (REAP + load.event_readers * (POLLS_PER_SECOND * POLL + HEADS))
    deliveries = load.turn_waits * deployment.replicas * DELIVERY
    per_master = (requests + background + deliveries) / deployment.masters + load.turn_waits * BUS
    return per_master / 1e6 + NODE_IDLE


def server_cpu(deployment: Deployment, load: Load) -> float:
    """Returns the share of a core that each worker uses."""
    writes = (load.creates + load.pushes) * SERVER_WRITE
    return (writes + load.reads * SERVER_READ) / 1e6 / (deployment.replicas * deployment.workers)


def connections(deployment: Deployment) -> int:
    """Returns the connections of each master."""
    return deployment.replicas * (deployment.workers + EXTRA_CONNECTIONS)


def limits(deployment: Deployment, users: Users) -> dict[str, tuple[str, float]]:
    """Returns the use of each resource, as text and as a share of its limit."""
    load = replace(users.load, event_readers=deployment.replicas)
    memory = users.threads * users.thread_bytes / deployment.masters + connections(deployment) * CONNECTION_BYTES
    cpu, workers = redis_cpu(deployment, load), server_cpu(deployment, load)
    shared = redis_cpu(deployment, Load(event_readers=deployment.replicas, turn_waits=load.turn_waits))
    hottest = users.hottest * PUSH / 1e6 + cpu
    return {
        "memory of a master": (f"{memory / 1e9:.1f} GB", memory / deployment.redis_bytes),
        "CPU of a master": (f"{cpu:.1%}", cpu / CPU_MAX),
        "of it, background work, polls and notifications": (f"{shared:.1%}", shared / CPU_MAX),
        "CPU of the master with the hottest thread": (f"{hottest:.1%}", hottest / CPU_MAX),
        "CPU of a worker": (f"{workers:.1%}", workers / CPU_MAX),
        "connections of a master": (f"{connections(deployment):,}", connections(deployment) / CLIENTS_MAX),
        "size of the cluster": (f"{deployment.masters:,}", deployment.masters / MASTERS_MAX),
    }


def smallest(users: Users, workers: int, redis_bytes: float) -> Deployment:
    load = users.load
    busy = server_cpu(Deployment(1, 1, workers), load)
    replicas = max(2, math.ceil(busy / CPU_MAX))
    masters = 1
    while max(share for _, share in limits(Deployment(masters, replicas, workers, redis_bytes), users).values()) > 1:
        if masters >= MASTERS_MAX:
            break
        masters += 1
    return Deployment(masters, replicas, workers, redis_bytes)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option = arguments.add_argument
    option("--users", type=float, default=100e6, help="users per day")
    option("--conversations", type=float, default=2, help="conversations of a user per day")
    option("--messages", type=float, default=10, help="messages of a conversation, each with one push and one read")
    option("--message-bytes", type=float, default=450, help="bytes of a message")
    option("--lifetime", type=float, default=3_600, help="seconds from the last use of a thread to its end")
    option("--archive", type=float, default=DAY, help="seconds that an ended thread is archived (archive_seconds)")
    option("--peak", type=float, default=3, help="requests per second at the peak, divided by the mean")
    option("--hottest", type=float, default=1_000, help="pushes per second to the busiest thread")
    option("--waits", type=float, default=0.01, help="share of messages that wait for the turn of an earlier message")
    option("--masters", type=int, help="Redis masters")
    option("--replicas", type=int, help="replicas of threadkeep")
    option("--workers", type=int, default=4, help="workers of a replica")
    option("--redis-gb", type=float, default=12, help="GB for data per master")
    given = arguments.parse_args()
    users = Users(
        given.users, given.conversations, given.messages, given.message_bytes, given.lifetime, given.archive, given.peak, given.hottest,
        given.waits,
    )
    chosen = smallest(users, given.workers, given.redis_gb * 1e9)
    deployment = replace(chosen, masters=given.masters or chosen.masters, replicas=given.replicas or chosen.replicas)
    load = users.load
    print(f"{users.daily:,.0f} users a day: at the peak, {load.pushes:,.0f} pushes, {load.reads:,.0f} reads and {load.creates:,.0f} new threads per second;")
    print(f"{users.threads:,.0f} threads of {users.thread_bytes:,.0f} bytes exist at the same time.")
    print(f"{deployment.masters:,} masters, {deployment.replicas:,} replicas with {deployment.workers} workers each:\n")
    shares = limits(deployment, users)
    for name, (text, share) in shares.items():
        print(f"  {name:50} {text:>10}  {share:8.1%} of the limit")
    first = max(shares, key=lambda name: shares[name][1])
    print(f"\nFirst to reach its limit: {first}.")
    failing = 1 / deployment.masters
    print(f"While a master fails over, {failing:.1%} of the threads are unavailable: cluster-node-timeout and about 2 s more.")
    print(f"Its successor then gets {connections(deployment):,} connections. Moving a master's data means copying {users.threads * users.thread_bytes / deployment.masters / 1e9:.1f} GB.")


if __name__ == "__main__":
    main()
