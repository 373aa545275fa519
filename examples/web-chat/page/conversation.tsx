import { useEffect } from "react";
import type { Client } from "threadkeep";
import { useThread } from "threadkeep/react";
import { announce, type Chat } from "./chat";

/** A conversation that all tabs and the model write to. */
export function Conversation({ signedId }: { signedId: string }) {
  const { state, status, error, push } = useThread<Chat>({ signedId });
  const { messages = [], draft, questions = [] } = state;
  useEffect(announce, [messages.length]);
  return (
    <main>
      <ol>
        {messages.map(({ role, text }, index) => <li key={index} className={role}>{text}</li>)}
        {draft && <li className="assistant">{draft}</li>}
        {questions.map((text, index) => <li key={`question ${index}`} className="user">{text}</li>)}
      </ol>
      {status !== "live" && <p role="status">{status}</p>}
      {error && <p role="alert">{error.detail ?? error.message}</p>}
      <Composer disabled={status === "destroyed"} send={(text) => push("questions", text)} />
    </main>
  );
}

/** A form whose first question creates a conversation. */
export function NewConversation({ client, open }: { client: Client; open(signedId: string): void }) {
  const begin = async (text: string) => {
    const conversation = await client.threads.create<Chat>({ metadata: { title: text.slice(0, 60) } });
    await conversation.push("questions", text);
    open(conversation.signedId!);
  };
  return <main><ol /><Composer send={begin} /></main>;
}

function Composer({ disabled, send }: { disabled?: boolean; send(text: string): unknown }) {
  const submit = (form: FormData) => void send(String(form.get("text")));
  return (
    <form action={submit}>
      <input name="text" placeholder="Message" required disabled={disabled} autoFocus autoComplete="off" />
    </form>
  );
}
