"""Adds messages and sets values in another process: writer.py SESSION_ID PREFIX NAME. Sleeps if NAME is `hang`."""

from __future__ import annotations

import sys
import time

from langchain_core.messages import AIMessage, HumanMessage

from threadkeep.langchain import ThreadkeepByteStore, ThreadkeepChatMessageHistory

TURNS = 40


def main(session_id: str, prefix: str, name: str) -> None:
    with ThreadkeepChatMessageHistory(session_id) as history, ThreadkeepByteStore(prefix=prefix) as store:
        for n in range(TURNS):
            history.add_messages([HumanMessage(f"{name}{n}"), AIMessage(f"{name}{n}")])
            store.mset([(f"{name}{n}", name.encode()), ("shared", name.encode())])
            if name == "hang":
                print("waiting", flush=True)
                time.sleep(600)


if __name__ == "__main__":
    main(*sys.argv[1:])
