"""Measures the client's CPU time per push: pushes.py [PUSHES].

THREADKEEP_URL and THREADKEEP_API_KEY name the server. Prints this process's CPU time per push, for blocking calls and
with 64 calls in flight. Also prints the rate that the client could reach on one core, and the measured rate, which also
depends on the server.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
import time

from threadkeep import AsyncThreadkeep, Threadkeep

IN_FLIGHT = 64
MESSAGE = {"role": "user", "content": "How long does green tea have to steep, and how hot is the water?"}
MAX_RECORDS = 50


def blocking(pushes: int) -> None:
    with Threadkeep() as client:
        thread = client.threads.create()
        for _ in range(pushes // 10):
            thread.push("messages", MESSAGE, MAX_RECORDS)
        cpu, clock = time.process_time(), time.perf_counter()
        for _ in range(pushes):
            thread.push("messages", MESSAGE, MAX_RECORDS)
        show("blocking", pushes, cpu, clock)


async def in_flight(pushes: int) -> None:
    async with AsyncThreadkeep() as client:
        threads = [client.thread(f"thrd_{secrets.token_hex(16)}") for _ in range(IN_FLIGHT)]
        await asyncio.gather(*(thread.push("messages", MESSAGE, MAX_RECORDS) for thread in threads))

        async def work(n: int) -> None:
            for _ in range(pushes // IN_FLIGHT):
                await threads[n].push("messages", MESSAGE, MAX_RECORDS)

        cpu, clock = time.process_time(), time.perf_counter()
        await asyncio.gather(*map(work, range(IN_FLIGHT)))
        show(f"{IN_FLIGHT} in flight", pushes // IN_FLIGHT * IN_FLIGHT, cpu, clock)


def show(name: str, pushes: int, cpu: float, clock: float) -> None:
    seconds, elapsed = time.process_time() - cpu, time.perf_counter() - clock
    print(
        f"{name}: {seconds / pushes * 1e6:.0f} us of CPU for a push, so {pushes / seconds:,.0f}/s on one core;"
        f" measured {pushes / elapsed:,.0f}/s"
    )


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    blocking(count)
    asyncio.run(in_flight(count))
