"""Uses conversations by the published Python packages.
Called by openai.sh: openai_client.py PART http://server/openai/v1 [CONVERSATION [NAME]]"""

import asyncio
import sys
import uuid

import httpx2
import openai
from agents import OpenAIConversationsSession
from openai import AsyncOpenAI, OpenAI

PART, BASE_URL, *REST = sys.argv[1:]
client = OpenAI(base_url=BASE_URL)
conversations = client.conversations


def message(text, **more):
    return {"type": "message", "role": "user", "content": text, **more}


def texts(items):
    return [item.content[0].text for item in items]


def refused(error, code, param, call):
    """Expects that error of a call, and returns its text."""
    try:
        call()
    except error as found:
        assert (found.code, found.param) == (code, param), found
        assert found.request_id, found
        return str(found)
    raise AssertionError(f"no {error.__name__}: {code}")


def check_objects():
    made = conversations.create(metadata={"topic": "demo"}, items=[message("hi")])
    assert made.object == "conversation" and made.metadata == {"topic": "demo"}
    assert made == conversations.retrieve(made.id)
    assert conversations.create().metadata == {}
    assert conversations.create(metadata=None, items=None).metadata == {}
    changed = conversations.update(made.id, metadata={"a": "b"})
    assert changed.metadata == {"a": "b"} and changed.created_at == made.created_at
    added = conversations.items.create(
        made.id, items=[message("one"), message("two")], include=["reasoning.encrypted_content"]
    )
    assert texts(added.data) == ["one", "two"] and added.has_more is False
    item = conversations.items.retrieve(added.first_id, conversation_id=made.id)
    assert item == added.data[0] and item.status == "completed"
    left = conversations.items.delete(added.first_id, conversation_id=made.id)
    assert left == changed
    assert texts(conversations.items.list(made.id, order="asc")) == ["hi", "two"]
    gone = conversations.delete(made.id)
    assert gone.deleted and gone.object == "conversation.deleted" and gone.id == made.id
    refused(openai.NotFoundError, None, None, lambda: conversations.retrieve(made.id))


def check_pages():
    conversation = conversations.create().id
    all_texts = [str(number) for number in range(250)]
    for begin in range(0, 250, 20):
        items = [message(text) for text in all_texts[begin : begin + 20]]
        conversations.items.create(conversation, items=items)
    for limit in (openai.NOT_GIVEN, 7, 50, 100):
        ascending = conversations.items.list(conversation, order="asc", limit=limit)
        assert texts(ascending) == all_texts
        descending = conversations.items.list(conversation, limit=limit)
        assert texts(descending) == all_texts[::-1]
    full = conversations.items.list(conversation, limit=50)
    pages = list(full.iter_pages())
    assert [page.has_more for page in pages] == [True] * 4 + [False]


def check_errors():
    conversation = conversations.create().id
    create, items = conversations.create, conversations.items
    bad = openai.BadRequestError

    def add(*new):
        return lambda: items.create(conversation, items=list(new))

    for code, param, call in [
        ("missing_required_parameter", "items[0].type", add({})),
        ("missing_required_parameter", "items[1].content", add(message("a"), {"role": "user"})),
        ("missing_required_parameter", "metadata", lambda: client.post(
            f"/conversations/{conversation}", body={}, cast_to=object)),
        ("invalid_type", "items[0].type", add({"type": 7})),
        ("invalid_value", "items[0].type", add({"type": "item_reference", "id": "m"})),
        ("array_above_max_length", "items", add(*[message("a")] * 21)),
        ("integer_below_min_value", "limit", lambda: items.list(conversation, limit=0)),
        ("integer_above_max_value", "limit", lambda: items.list(conversation, limit=101)),
        ("object_above_max_properties", "metadata", lambda: create(
            metadata={str(number): "" for number in range(17)})),
        ("string_above_max_length", "metadata.a", lambda: create(metadata={"a": "é" * 513})),
        ("invalid_key", "metadata", lambda: create(metadata={"k" * 65: ""})),
        ("item_id_reused", "items[1].id", add(message("a", id="i"), message("b", id="i"))),
        (None, None, lambda: client.post("/conversations", content=b"{", cast_to=object)),
    ]:
        refused(bad, code, param, call)
    assert texts(items.list(conversation)) == []
    never = "conv_" + uuid.uuid4().hex
    for code, param, call in [
        (None, None, lambda: conversations.retrieve(never)),
        (None, None, lambda: conversations.retrieve("x")),
        (None, None, lambda: items.list(never)),
        (None, None, lambda: items.retrieve("i", conversation_id=conversation)),
        (None, None, lambda: items.delete("i", conversation_id=conversation)),
        (None, "after", lambda: items.list(conversation, after="i")),
        ("unknown_url", None, lambda: client.models.list()),
        ("unknown_url", None, lambda: client.responses.create(model="m", input="hi")),
    ]:
        refused(openai.NotFoundError, code, param, call)
    stranger = OpenAI(base_url=BASE_URL, api_key="wrong").conversations
    refused(openai.AuthenticationError, "invalid_api_key", None, lambda: stranger.create())
    status = openai.APIStatusError
    wrong_method = lambda: client.put("/conversations", body={}, cast_to=object)
    refused(status, "method_not_allowed", None, wrong_method)
    large = add(message("x" * (8 * 1024 * 1024)))
    assert "8388608" in refused(status, "request_too_large", None, large)
    add(message("x" * (5 * 1024 * 1024)))()
    too_much = add(message("x" * (5 * 1024 * 1024)))
    assert "8388608" in refused(status, "conversation_too_large", None, too_much)
    key = {"Idempotency-Key": uuid.uuid4().hex}
    made = create(extra_headers=key)
    assert create(extra_headers=key) == made
    reused = lambda: create(metadata={"a": "b"}, extra_headers=key)
    refused(openai.UnprocessableEntityError, "idempotency_key_reused", None, reused)


class Breaking(httpx2.HTTPTransport):
    """Sends each POST, and loses its first answers."""

    lost = 1

    def handle_request(self, request):
        response = super().handle_request(request)
        if request.method == "POST" and self.lost > 0:
            self.lost -= 1
            response.close()
            raise httpx2.ReadError("the connection was cut", request=request)
        return response


def check_broken_links():
    """The client sends a POST again by itself when the answer is lost."""

    def breaking():
        return OpenAI(base_url=BASE_URL, http_client=httpx2.Client(transport=Breaking())).conversations

    key = {"Idempotency-Key": uuid.uuid4().hex}
    made = breaking().create(items=[message("yes")], extra_headers=key)
    assert texts(conversations.items.list(made.id)) == ["yes"]
    key = {"Idempotency-Key": uuid.uuid4().hex}
    again = breaking().items.create(made.id, items=[message("yes")], extra_headers=key)
    assert texts(conversations.items.list(made.id)) == ["yes"] * 2
    assert again.data[0].id == conversations.items.list(made.id, limit=1).data[0].id
    breaking().items.create(made.id, items=[message("own", id="own")])
    assert texts(conversations.items.list(made.id)) == ["own", "yes", "yes"]


async def check_session():
    session = OpenAIConversationsSession(openai_client=AsyncOpenAI(base_url=BASE_URL))
    sent = [{"role": "user", "content": str(number)} for number in range(45)]
    await session.add_items(sent)
    found = await session.get_items()
    assert [item["content"][0]["text"] for item in found] == [str(number) for number in range(45)]
    newest = await session.get_items(limit=30)
    assert newest == found[-30:]
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "1"}
    await session.add_items([call, output])
    popped = await session.pop_item()
    assert popped["output"] == "1" and popped["call_id"] == "c"
    assert (await session.pop_item())["name"] == "f"
    assert len(await session.get_items()) == 45
    await session.clear_session()
    assert await session.get_items() == []


def check_added(conversation):
    found = texts(conversations.items.list(conversation, order="asc", limit=100))
    assert len(found) == 200
    for name in ("even", "odd"):
        own = [text for text in found if text.startswith(name)]
        assert own == [f"{name} {number}" for number in range(100)]


match PART, REST:
    case "all", []:
        check_objects()
        check_pages()
        check_errors()
        check_broken_links()
        asyncio.run(check_session())
    case "create", []:
        print(conversations.create().id)
    case "add", [conversation, name]:
        for number in range(0, 100, 2):
            both = [message(f"{name} {number}"), message(f"{name} {number + 1}")]
            conversations.items.create(conversation, items=both)
    case "added", [conversation]:
        check_added(conversation)
