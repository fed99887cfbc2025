// Messages that wait for the connection: they can be seen, changed and withdrawn until they are sent.

import type { JSX } from "preact";
import { crow } from "../connection";
import { draftOf, giveBack } from "../model/composing";
import { isTooOld, type Outgoing, textOf, writtenAt } from "../model/outbox";
import { pieces } from "../pieces";
import { toComposer } from "../route";
import type { WaitingProps } from "../widgets";
import { Content } from "./content";

export function Waiting({ session, messages }: WaitingProps): JSX.Element {
  return (
    <>
      {messages.map((message) => (
        <article key={message.id} class="item is-user" aria-label="Waits to be sent">
          <div class="said is-waiting">
            <p>{pieces(textOf(message.content))}</p>
            <div class="attachments">
              {message.content.map((block, index) => block.type !== "text" && <Content key={index} block={block} />)}
            </div>
          </div>
          <Choices session={session} message={message} />
        </article>
      ))}
    </>
  );
}

function Choices({ session, message }: { session: WaitingProps["session"]; message: Outgoing }): JSX.Element {
  const isOld = isTooOld(message);
  const edit = () => {
    session.outbox.remove(message);
    giveBack(draftOf(session.id), [message.content]);
    toComposer();
  };
  const send = () => {
    session.outbox.confirm(message);
    void session.flush();
  };
  return (
    <div class="waiting-choices">
      <span class="quiet">{isOld ? `Written at ${new Date(writtenAt(message)).toLocaleString()}, but not sent. Send it now?` : "queued"}</span>
      {isOld && crow.isUsable && (
        <button class="link" onClick={send}>
          Send
        </button>
      )}
      <button class="link" onClick={edit}>
        Edit
      </button>
      <button class="link" onClick={() => session.outbox.remove(message)}>
        Remove
      </button>
    </div>
  );
}
