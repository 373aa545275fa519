"""Writes to a thread in another process: writer.py URL THREAD NAME. URL may refer to a faulty proxy."""

import sys

from support.server import API_KEY

from threadkeep import Threadkeep, VersionMismatch

WRITES = 40


def main(url: str, id: str, name: str) -> None:
    with Threadkeep(url, api_key=API_KEY, max_retries=5) as client:
        thread = client.thread(id)
        for n in range(WRITES):
            thread.push("pushed", f"{name}{n}")
            thread.increment("counted")
            thread.history.append(f"{name}{n}")
            while True:
                info = thread.info()
                try:
                    thread.set("guarded", thread.get("guarded", 0) + 1, if_match=info.version)
                    break
                except VersionMismatch:
                    continue
            with thread.turn(wait_seconds=30) as turn:
                turn.thread.set("turned", turn.thread.get("turned", 0) + 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
