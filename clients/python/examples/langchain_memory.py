"""A LangChain model with a cache in threadkeep, and a chat that stores its messages in threadkeep."""

import uuid

from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import HumanMessage

from threadkeep.langchain import ThreadkeepCache, ThreadkeepChatMessageHistory


class Script(SimpleChatModel):
    """Answers with the number of messages in the request. Needs no API key."""

    calls: int = 0

    @property
    def _llm_type(self):
        return "script"

    def _call(self, messages, stop=None, run_manager=None, **kwargs):
        self.calls += 1
        return f"I read {len(messages)} messages."


with ThreadkeepCache(prefix=uuid.uuid4().hex[:20]) as cache:
    model = Script(cache=cache)
    with ThreadkeepChatMessageHistory(f"ada/{uuid.uuid4()}") as history:
        for question in ("Hello", "How many messages did you read?"):
            answer = model.invoke([*history.messages, HumanMessage(question)])
            history.add_messages([HumanMessage(question), answer])
            print(answer.content)

    answer = model.invoke([HumanMessage("Hello")])
    print(answer.content, "(from the cache)" if model.calls == 2 else "(from the model)")
