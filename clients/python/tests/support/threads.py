from __future__ import annotations

from collections.abc import Iterable
from threading import Thread


def run_all(threads: Iterable[Thread]) -> None:
    threads = list(threads)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
