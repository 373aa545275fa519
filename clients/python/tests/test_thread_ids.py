from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from threadkeep import Threadkeep, thread_id_for

REPOSITORY = Path(os.environ.get("REPOSITORY", Path(__file__).parents[3]))
VECTORS = json.loads((REPOSITORY / "clients/thread-ids.json").read_text("utf-8"))


@pytest.mark.parametrize("vector", VECTORS)
def test_a_name_has_the_same_id_in_both_clients(vector: dict[str, str]) -> None:
    assert thread_id_for(vector["name"], vector["space"]) == vector["id"]


def test_a_name_needs_no_space(tk: Threadkeep) -> None:
    id = thread_id_for("ticket 7")

    assert id == thread_id_for("ticket 7", "")
    assert tk.thread(id).info().id == id
