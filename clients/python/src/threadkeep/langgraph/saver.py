from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from .._adapter import checked_prefix
from .._dual import DualAdapter, DualConnection
from .._flow import Flow, Items
from ..aclient import AsyncThreadkeep
from ..client import Threadkeep
from . import _reading, _removing, _writing
from ._thread import SavedThread, SavedThreads


class ThreadkeepSaver(DualAdapter, BaseCheckpointSaver[str]):
    """Stores the checkpoints of graphs. One object serves blocking and async callers, in any thread and event loop.

    With `ttl_seconds` (minimum: 60), a LangGraph thread expires `ttl_seconds` after its last read or write. Otherwise
    checkpoints never expire. Use a different `prefix` for each framework. Without `client`, the saver creates its own
    connections, and `close` closes them.
    """

    def __init__(
        self,
        *,
        client: Threadkeep | AsyncThreadkeep | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        prefix: str = "langgraph",
        ttl_seconds: int | None = None,
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._connection = DualConnection(client, base_url, api_key)
        self._threads = SavedThreads(self._connection, checked_prefix(prefix))
        self._ttl_seconds = ttl_seconds

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Returns the checkpoint that `config` names. Without a checkpoint ID, returns the latest checkpoint."""
        return self._connection.run(self._read(config))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Returns the checkpoint that `config` names. Without a checkpoint ID, returns the latest checkpoint."""
        return await self._connection.arun(self._read(config))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yields the checkpoints of a thread, or of all threads with the saver's prefix, newest first.

        `filter` selects checkpoints by metadata. `before` names a checkpoint, and selects older checkpoints.
        """
        return self._connection.iterate(self._listed(config, filter, before, limit))

    def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yields checkpoints like `list`, but with `async for`."""
        return self._connection.aiterate(self._listed(config, filter, before, limit))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint. `config` names its parent. Readers see the checkpoint only once it is complete."""
        return self._connection.run(self._save(config, checkpoint, metadata, new_versions))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Stores a checkpoint. `config` names its parent. Readers see the checkpoint only once it is complete."""
        return await self._connection.arun(self._save(config, checkpoint, metadata, new_versions))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Stores writes of a task atomically."""
        self._connection.run(self._save_writes(config, writes, task_id, task_path))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Stores writes of a task atomically."""
        await self._connection.arun(self._save_writes(config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        """Deletes a thread with all its data."""
        self._connection.run(self._delete([thread_id]))

    async def adelete_thread(self, thread_id: str) -> None:
        """Deletes a thread with all its data."""
        await self._connection.arun(self._delete([thread_id]))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes all checkpoints of these runs, with their writes."""
        self._connection.run(self._delete_for_runs(run_ids))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes all checkpoints of these runs, with their writes."""
        await self._connection.arun(self._delete_for_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints of a thread, with their writes, to another thread."""
        self._connection.run(self._copy(source_thread_id, target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints of a thread, with their writes, to another thread."""
        await self._connection.arun(self._copy(source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Deletes checkpoints. `keep_latest` keeps each namespace's latest checkpoint and the ancestors it needs."""
        self._connection.run(self._prune(thread_ids, strategy))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Prunes threads like `prune`."""
        await self._connection.arun(self._prune(thread_ids, strategy))

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Returns a unique channel version that is greater than `current`."""
        number = int(str(current).partition(".")[0]) + 1 if current is not None else 1
        return f"{number:032}.{random.random():016}"

    def _thread(self, thread_id: str) -> SavedThread:
        return self._threads.thread(thread_id, self.serde)

    def _read(self, config: RunnableConfig) -> Flow[CheckpointTuple | None]:
        return _reading.read(self._thread(_thread_id(config)), _ns(config), _id(config))

    def _listed(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Items[CheckpointTuple]:
        threads = [self._thread(_thread_id(config))] if config else (yield from self._threads.all(self.serde))
        ns = config["configurable"].get("checkpoint_ns") if config else None
        id = _id(config)
        yield from _reading.listed(threads, ns, id, _id(before), filter, limit)

    def _save(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Flow[RunnableConfig]:
        thread_id, ns = _thread_id(config), _ns(config)
        yield from _writing.save(
            self._thread(thread_id),
            self._threads.runs,
            self._ttl_seconds,
            thread_id,
            ns,
            _id(config),
            checkpoint,
            get_checkpoint_metadata(config, metadata),
            new_versions,
        )
        return _reading.config_of(thread_id, ns, checkpoint["id"])

    def _save_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> Flow[None]:
        id = config["configurable"]["checkpoint_id"]
        return _writing.save_writes(self._thread(_thread_id(config)), _ns(config), id, writes, task_id, task_path)

    def _delete(self, thread_ids: Sequence[str]) -> Flow[None]:
        for thread_id in thread_ids:
            yield from _removing.delete_thread(self._thread(str(thread_id)), self._threads.runs)

    def _delete_for_runs(self, run_ids: Sequence[str]) -> Flow[None]:
        for run_id in run_ids:
            yield from _removing.delete_run(self._threads, self.serde, str(run_id))

    def _copy(self, source: str, target: str) -> Flow[None]:
        if str(source) == str(target):
            raise ValueError("A thread cannot be copied into itself.")
        threads = self._thread(str(source)), self._thread(str(target))
        yield from _removing.copy(*threads, str(target), self._threads.runs, self._ttl_seconds)

    def _prune(self, thread_ids: Sequence[str], strategy: str) -> Flow[None]:
        if strategy not in ("keep_latest", "delete"):
            raise ValueError(f"The strategy {strategy!r} is unknown. Allowed: keep_latest, delete.")
        for thread_id in thread_ids:
            if strategy == "delete":
                yield from self._delete([thread_id])
            else:
                yield from _removing.keep_latest(self._thread(str(thread_id)))


def _thread_id(config: RunnableConfig) -> str:
    return str(config["configurable"]["thread_id"])


def _ns(config: RunnableConfig) -> str:
    return str(config["configurable"].get("checkpoint_ns", ""))


def _id(config: RunnableConfig | None) -> str | None:
    return (config and config["configurable"].get("checkpoint_id")) or None
