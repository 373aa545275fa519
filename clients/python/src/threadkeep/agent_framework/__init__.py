"""History provider and session store for Microsoft Agent Framework."""

from .._adapter import missing

try:
    import agent_framework  # noqa: F401
except ImportError as error:
    raise missing("agent-framework", error) from error

from .history import ThreadkeepHistoryProvider
from .sessions import ThreadkeepSessionStore

__all__ = ["ThreadkeepHistoryProvider", "ThreadkeepSessionStore"]
