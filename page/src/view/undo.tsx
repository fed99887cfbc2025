// Taking back the last turn: first what that would change, then `/undo`.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Methods } from "../acp";
import { crow } from "../connection";
import type { Session } from "../model/session";
import { relative } from "../paths";
import { messageOf, RpcError, UNKNOWN_METHOD } from "../rpc";
import { DiffView } from "../widgets";
import { Dialog } from "./dialog";
import { Icon } from "./icons";

type Preview = Methods["_crow/undo"]["result"];

/** What stands under the last turn once it has ended. */
export function TurnEnd({ session }: { session: Session }): JSX.Element {
  const [preview, setPreview] = useState<Preview | null>(null);
  const [problem, setProblem] = useState("");
  if (session.isBusy.value || !session.transcript.items.some((item) => item.is === "message")) return <></>;
  const look = async () => {
    setProblem("");
    try {
      setPreview(await crow.call("_crow/undo", { sessionId: session.id }));
    } catch (error) {
      // A Crow that has no previews can take back all the same; then it is said that nothing can be shown.
      if (error instanceof RpcError && error.code === UNKNOWN_METHOD) setPreview({ turn: "?", files: [] });
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

interface UndoProps {
  session: Session;
  preview: Preview;
  onClose: () => void;
}

function UndoDialog({ session, preview, onClose }: UndoProps): JSX.Element {
  const isNothing = preview.turn === null || preview.turn === undefined;
  const undo = () => {
    onClose();
    session.send([{ type: "text", text: "/undo" }]);
  };
  return (
    <Dialog label="Undo the last turn" class="wide" onClose={onClose}>
      <h2>Undo the last turn</h2>
      {isNothing ? <p>There is no turn to take back.</p> : <Prompt preview={preview} />}
      {preview.files.map((file) => (
        <section key={file.path} class="undo-file">
          <h3>
            <bdi>{relative(file.path, session.cwd)}</bdi> {file.kind && <span class="quiet">{file.kind}</span>}
          </h3>
          {file.blocked && <p class="bad">{file.blocked}</p>}
          {file.items && <DiffView items={file.items.map((item) => ({ ...item, path: relative(item.path, session.cwd) }))} />}
        </section>
      ))}
      {preview.remarks?.map((remark) => <p key={remark}>{remark}</p>)}
      <div class="buttons">
        <button class="primary" disabled={isNothing} onClick={undo}>
          Undo it
        </button>
        <button onClick={onClose}>Keep it</button>
      </div>
    </Dialog>
  );
}

function Prompt({ preview }: { preview: Preview }): JSX.Element {
  const files = preview.files.length;
  return (
    <p>
      {preview.prompt && <q>{preview.prompt}</q>} {files ? `${files} ${files === 1 ? "file is" : "files are"} put back.` : "No file is changed."}{" "}
      The turn is taken out of the model's memory.
    </p>
  );
}
