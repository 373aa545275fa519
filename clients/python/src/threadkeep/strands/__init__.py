"""Storage and session repository for Strands Agents."""

from .._adapter import missing

try:
    import strands  # noqa: F401
except ImportError as error:
    raise missing("strands", error) from error

from .repository import ThreadkeepSessionRepository
from .storage import ThreadkeepStorage

__all__ = ["ThreadkeepSessionRepository", "ThreadkeepStorage"]
