import { useState } from "react";
import { createRoot } from "react-dom/client";
import { type Client, createClient } from "threadkeep";
import { ThreadProvider } from "threadkeep/react";
import { Conversation, NewConversation } from "./conversation";
import { Sidebar } from "./sidebar";

const root = createRoot(document.getElementById("root")!);
const name = localStorage.getItem("name");

if (name) {
  const { token, threadkeep } = await (await fetch("/login", { method: "POST", body: name })).json();
  const headers = { authorization: `Bearer ${token}` };
  const client = createClient({ baseUrl: threadkeep, identity: "header", headers });
  root.render(<ThreadProvider client={client}><Chats client={client} /></ThreadProvider>);
} else {
  root.render(<Login />);
}

function Login() {
  const login = (form: FormData) => {
    localStorage.setItem("name", String(form.get("name")));
    location.reload();
  };
  return <form className="login" action={login}><input name="name" placeholder="Your name" required autoFocus /></form>;
}

function Chats({ client }: { client: Client }) {
  const [signedId, open] = useState<string>();
  return (
    <div className="chat">
      <Sidebar client={client} signedId={signedId} open={open} />
      {signedId ? <Conversation key={signedId} signedId={signedId} /> : <NewConversation client={client} open={open} />}
    </div>
  );
}
