from __future__ import annotations

import hashlib


def digest(*parts: bytes) -> str:
    """Returns 48 hex digits that identify `parts` in order: `(b"a", b"bc")` differs from `(b"ab", b"c")`."""
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(b"%d:" % len(part) + part)
    return hasher.hexdigest()[:48]


def thread_id_for(name: str, space: str = "") -> str:
    """Derives a thread ID from an application's own ID, such as a chat ID. Access requires an API key.

    The TypeScript package derives the same IDs. Equal names in different spaces have different IDs.
    """
    return f"thrd_{digest(_utf8(space), _utf8(name))}"


def _utf8(text: str) -> bytes:
    """Encodes text like browsers do. A lone surrogate becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
