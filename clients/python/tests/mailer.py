"""Dies in a tool call, before or after it sends a mail: mailer.py URL THREAD MAILBOX before|after."""

import os
import sys
from pathlib import Path

from support.server import API_KEY

from threadkeep import Effect, Threadkeep


def main(url: str, id: str, mailbox: str, dies: str) -> None:
    def send_and_die(effect: Effect) -> None:
        if dies == "after":
            (Path(mailbox) / effect.key).touch()
        os._exit(9)

    thread = Threadkeep(url, api_key=API_KEY).thread(id)
    with thread.turn(ttl_seconds=2) as turn:
        turn.effect("call_1", "send_mail", {"to": "ada"}, send_and_die)


if __name__ == "__main__":
    main(*sys.argv[1:])
