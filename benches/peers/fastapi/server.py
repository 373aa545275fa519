"""Stores each session's state as one JSON string in Redis, with FastAPI and redis-py.

    REDIS_URL=... uvicorn server:app
"""

import json
import os
import secrets
from typing import Annotated, Any

import redis.asyncio as redis
from fastapi import Cookie, Depends, FastAPI, Response

TTL_SECONDS = 3600

app = FastAPI()
store = redis.from_url(os.environ["REDIS_URL"], decode_responses=True)


def session_key(response: Response, session: Annotated[str | None, Cookie()] = None) -> str:
    """Returns the Redis key of the caller's session. Creates a session if the caller has none."""
    if session is None:
        session = secrets.token_hex(16)
        response.set_cookie("session", session, httponly=True, samesite="lax")
    return f"fastapi:{session}"


Key = Annotated[str, Depends(session_key)]


async def load(key: str) -> dict[str, Any]:
    text = await store.get(key)
    return json.loads(text) if text else {}


async def save(key: str, state: dict[str, Any]) -> None:
    await store.set(key, json.dumps(state), ex=TTL_SECONDS)


@app.put("/state")
async def replace(key: Key, state: dict[str, Any]) -> dict[str, int]:
    await save(key, state)
    return {"keys": len(state)}


@app.get("/state")
async def read(key: Key) -> Response:
    text = await store.getex(key, ex=TTL_SECONDS)
    return Response(text or "{}", media_type="application/json")


@app.patch("/state")
async def merge(key: Key, changes: dict[str, Any]) -> dict[str, int]:
    state = await load(key)
    state.update(changes)
    await save(key, state)
    return {"keys": len(state)}


@app.post("/state/messages")
async def push(key: Key, message: dict[str, Any], window: int) -> dict[str, int]:
    state = await load(key)
    messages = [*state.get("messages", []), message][-window:]
    state["messages"] = messages
    await save(key, state)
    return {"length": len(messages)}
