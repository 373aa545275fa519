"""Uses conversations with the published Python package openai: client.py sync|async PART ADDRESS [ARGUMENT...]"""

import sys
import threading
import uuid

import kinds
import openai
from blocking import async_client
from links import CuttingProxy
from openai import OpenAI

KIND, PART, ADDRESS, *REST = sys.argv[1:]
make_client = {"sync": OpenAI, "async": async_client}[KIND]
BASE_URL = f"http://{ADDRESS}/v1"
client = make_client(base_url=BASE_URL)
conversations = client.conversations


def message(text, **more):
    return {"type": "message", "role": "user", "content": text, **more}


def idempotency_key():
    return {"Idempotency-Key": uuid.uuid4().hex}


def texts(items):
    return [item.content[0].text for item in items]


def refused(error, code, param, call):
    """Asserts that `call` raises `error` with this `code` and `param`. Returns the error message."""
    try:
        call()
    except error as raised:
        assert (raised.code, raised.param) == (code, param), raised
        assert raised.request_id, raised
        return str(raised)
    raise AssertionError(f"no {error.__name__}: {code}")


def check_objects():
    created = conversations.create(metadata={"topic": "demo"}, items=[message("hi")])
    assert created.object == "conversation" and created.metadata == {"topic": "demo"}
    assert created == conversations.retrieve(created.id)
    assert conversations.create().metadata == {}
    assert conversations.create(metadata=None, items=None).metadata == {}
    changed = conversations.update(created.id, metadata={"a": "b"})
    assert changed.metadata == {"a": "b"} and changed.created_at == created.created_at
    added = conversations.items.create(
        created.id, items=[message("one"), message("two")], include=["reasoning.encrypted_content"]
    )
    assert texts(added.data) == ["one", "two"] and added.has_more is False
    item = conversations.items.retrieve(added.first_id, conversation_id=created.id)
    assert item == added.data[0] and item.status == "completed"
    after_delete = conversations.items.delete(added.first_id, conversation_id=created.id)
    assert after_delete == changed
    assert texts(conversations.items.list(created.id, order="asc")) == ["hi", "two"]
    deletion = conversations.delete(created.id)
    assert deletion.deleted and deletion.object == "conversation.deleted" and deletion.id == created.id
    refused(openai.NotFoundError, None, None, lambda: conversations.retrieve(created.id))


def check_items():
    """Checks that items of all kinds are returned unchanged, that only one of six concurrent deletions succeeds, and that
    the id of a deleted item can be used again.
    """
    conversation = conversations.create().id
    sent, added = kinds.items(), []
    for begin in range(0, len(sent), 20):
        new = conversations.items.create(conversation, items=sent[begin : begin + 20])
        assert new.first_id == new.data[0].id and new.last_id == new.data[-1].id
        added += new.data
    for item, stored in zip(sent, added, strict=True):
        assert stored.id == item["id"] if item["id"] else stored.id
        assert stored.to_dict() == {**item, "id": stored.id}, stored
        assert conversations.items.retrieve(stored.id, conversation_id=conversation) == stored
    assert list(conversations.items.list(conversation, order="asc")) == added
    conversations.items.create(conversation, items=[{"role": "assistant", "content": "a"}])
    [assistant] = conversations.items.list(conversation, limit=1).data
    assert assistant.to_dict() == {
        "role": "assistant", "id": assistant.id, "type": "message", "status": "completed",
        "content": [{"type": "output_text", "text": "a", "annotations": [], "logprobs": []}],
    }

    outcomes = []

    def delete():
        try:
            OpenAI(base_url=BASE_URL).conversations.items.delete("rs_1", conversation_id=conversation)
            outcomes.append("done")
        except openai.NotFoundError:
            outcomes.append("gone")

    callers = [threading.Thread(target=delete) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert sorted(outcomes) == ["done"] + ["gone"] * 5, outcomes
    again = {"type": "reasoning", "id": "rs_1", "summary": []}
    conversations.items.create(conversation, items=[again])
    assert conversations.items.list(conversation, limit=1).data[0].id == "rs_1"


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
    first = conversations.items.list(conversation, order="asc", limit=10)
    conversations.items.delete(first.last_id, conversation_id=conversation)
    rest = conversations.items.list(conversation, order="asc", after=first.last_id)
    assert texts(rest) == all_texts[10:], "the id of a deleted item remains a valid cursor"


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
        (None, None, lambda: client.post("/conversations", content=b"[]", cast_to=object)),
    ]:
        refused(bad, code, param, call)
    assert texts(items.list(conversation)) == []
    missing = "conv_" + uuid.uuid4().hex
    for code, param, call in [
        (None, None, lambda: conversations.retrieve(missing)),
        (None, None, lambda: conversations.retrieve("x")),
        (None, None, lambda: items.list(missing)),
        (None, None, lambda: items.retrieve("i", conversation_id=conversation)),
        (None, None, lambda: items.delete("i", conversation_id=conversation)),
        (None, "after", lambda: items.list(conversation, after="i")),
        ("unknown_url", None, lambda: client.files.list()),
        ("unknown_url", None, lambda: client.embeddings.create(model="m", input="a")),
        ("model_not_found", "model", lambda: client.responses.create(model="m", input="hi")),
    ]:
        refused(openai.NotFoundError, code, param, call)
    stranger = make_client(base_url=BASE_URL, api_key="wrong").conversations
    refused(openai.AuthenticationError, "invalid_api_key", None, lambda: stranger.create())
    status = openai.APIStatusError
    wrong_method = lambda: client.put("/conversations", body={}, cast_to=object)
    refused(status, "method_not_allowed", None, wrong_method)
    large = add(message("x" * (8 * 1024 * 1024)))
    assert "8388608" in refused(status, "request_too_large", None, large)
    add(message("x" * (5 * 1024 * 1024)))()
    too_much = add(message("x" * (5 * 1024 * 1024)))
    assert "8388608" in refused(status, "conversation_too_large", None, too_much)
    key = idempotency_key()
    created = create(extra_headers=key)
    assert create(extra_headers=key) == created
    reused = lambda: create(metadata={"a": "b"}, extra_headers=key)
    refused(openai.UnprocessableEntityError, "idempotency_key_reused", None, reused)


def check_unavailable(address):
    """Checks the errors of a server whose store is unavailable."""
    away = make_client(base_url=f"http://{address}/v1", max_retries=0).conversations
    for call in (lambda: away.create(), lambda: away.retrieve("conv_" + uuid.uuid4().hex)):
        try:
            call()
        except openai.InternalServerError as found:
            assert (found.status_code, found.code, found.type) == (503, "store_unavailable", "server_error")
            assert found.response.headers["retry-after"] and found.request_id
            assert found.response.headers["x-should-retry"] == "true", "nothing was sent to the store"
        else:
            raise AssertionError("the call did not fail")


def check_limited(address):
    """Checks the error that the client raises when a server allows only two writes per hour."""
    limited = make_client(base_url=f"http://{address}/v1", max_retries=0).conversations
    conversation = limited.create().id
    try:
        for _ in range(3):
            limited.update(conversation, metadata={})
    except openai.RateLimitError as found:
        assert (found.code, found.type) == ("rate_limit_exceeded", "requests"), found
        assert int(found.response.headers["retry-after"]) > 0 and found.request_id
    else:
        raise AssertionError("too many writes were allowed")
    assert limited.retrieve(conversation).id == conversation


def check_broken_links():
    """Checks that the client retries a request when the connection breaks before the answer arrives."""
    proxy = CuttingProxy(ADDRESS)
    link = make_client(base_url=f"http://{proxy.address}/v1").conversations

    proxy.cut_next()
    created = link.create(items=[message("yes")], extra_headers=idempotency_key())
    assert texts(conversations.items.list(created.id)) == ["yes"]
    key = idempotency_key()
    proxy.cut_next(2)
    again = link.items.create(created.id, items=[message("yes")], extra_headers=key)
    assert texts(conversations.items.list(created.id)) == ["yes"] * 2
    assert again.data[0].id == conversations.items.list(created.id, limit=1).data[0].id
    assert link.items.create(created.id, items=[message("yes")], extra_headers=key) == again
    proxy.cut_next()
    link.items.create(created.id, items=[message("own", id="own")])
    assert texts(conversations.items.list(created.id)) == ["own", "yes", "yes"]
    proxy.cut_next()
    link.update(created.id, metadata={"a": "b"})
    proxy.cut_next()
    deleted = lambda: link.items.delete("own", conversation_id=created.id)
    refused(openai.NotFoundError, None, None, deleted)
    proxy.cut_next()
    link.delete(created.id, extra_headers=idempotency_key())
    assert proxy.cuts == 0, "not all links were cut"


def check_added(conversation):
    stored = texts(conversations.items.list(conversation, order="asc", limit=100))
    assert len(stored) == 200
    for name in ("even", "odd"):
        own = [text for text in stored if text.startswith(name)]
        assert own == [f"{name} {number}" for number in range(100)]


match PART, REST:
    case "create", []:
        print(conversations.create().id)
    case "add", [conversation, name]:
        for number in range(0, 100, 2):
            both = [message(f"{name} {number}"), message(f"{name} {number + 1}")]
            conversations.items.create(conversation, items=both)
    case "added", [conversation]:
        check_added(conversation)
        print(f"openai {openai.__version__}, {KIND} client: two processes added 200 items concurrently")
    case "all", [away, limited]:
        for check in [check_objects, check_items, check_pages, check_errors, check_broken_links]:
            check()
        check_unavailable(away)
        check_limited(limited)
        print(f"openai {openai.__version__}, {KIND} client: 7 checks passed")
