"""A Strands agent that stores its snapshots in threadkeep. The scripted model needs no API key."""

import uuid

from strands import Agent
from strands.models import Model
from strands.session import SnapshotSessionManager

from threadkeep.strands import ThreadkeepStorage


class Script(Model):
    """Answers with the number of messages in the request."""

    async def stream(self, messages, *args, **kwargs):
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": f"I read {len(messages)} messages."}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}

    def get_config(self):
        return {}

    def update_config(self, **config):
        pass

    def structured_output(self, *args, **kwargs):
        raise NotImplementedError


def agent(session_id):
    manager = SnapshotSessionManager(session_id, storage=ThreadkeepStorage())
    return Agent(agent_id="assistant", model=Script(), session_manager=manager, callback_handler=None)


session_id = f"ada-{uuid.uuid4()}"
for question in ("Hello", "How many messages did you read?"):
    print(str(agent(session_id)(question)).strip())
print(len(agent(session_id).messages), "messages are stored")
