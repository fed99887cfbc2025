// Taking back the last turn: first what that would change, then `/undo`.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { crow } from "../connection";
import type { Session } from "../model/session";
import { messageOf, RpcError, UNKNOWN_METHOD } from "../rpc";
import { UndoDialog, type UndoDialogProps } from "../widgets";
import { Icon } from "./icons";

/** What stands under the last turn once it has ended. */
export function TurnEnd({ session }: { session: Session }): JSX.Element {
  const [preview, setPreview] = useState<UndoDialogProps["preview"] | null>(null);
  const [problem, setProblem] = useState("");
  const isBusy = session.isBusy.value;
  const turns = useRef(0);
  // What was shown belongs to the turn that was the last one then: another one has begun, wherever, and it is over.
  useEffect(() => {
    turns.current++;
    setPreview(null);
    setProblem("");
  }, [isBusy]);
  void session.transcript.version.value; // also what is loaded has a last turn
  if (isBusy || !session.transcript.items.some((item) => item.is === "message")) return <></>;
  const look = async () => {
    setProblem("");
    const before = turns.current;
    try {
      const answer = await crow.call("_crow/undo", { sessionId: session.id });
      if (turns.current === before) setPreview(answer);
    } catch (error) {
      // A Crow that has no previews can take back all the same; then it is said that nothing can be shown.
      if (error instanceof RpcError && error.code === UNKNOWN_METHOD) setPreview({ turn: "", files: [] });
      else setProblem(messageOf(error));
    }
  };
  return (
    <div class="turn-end">
      <button class="link" onClick={look}>
        <Icon name="undo" /> Undo turn…
      </button>
      {problem && <span class="bad">{problem}</span>}
      {preview && <UndoDialog session={session} preview={preview} onClose={() => setPreview(null)} />}
    </div>
  );
}
