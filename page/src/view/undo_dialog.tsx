// What taking back the last turn would change, before it is done.

import type { JSX } from "preact";
import { crow } from "../connection";
import { relative } from "../paths";
import { DiffView, type UndoDialogProps } from "../widgets";
import { Dialog } from "./dialog";

export function UndoDialog({ session, preview, onClose }: UndoDialogProps): JSX.Element {
  const isNothing = preview.turn === null || preview.turn === undefined;
  const undo = () => {
    onClose();
    // Crow refuses if this is no longer the last turn: another client may begin one in this moment.
    session.send([{ type: "text", text: `/undo ${preview.turn}`.trim() }]);
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
        <button class="primary" disabled={isNothing || !crow.isUsable} onClick={undo}>
          Undo it
        </button>
        <button onClick={onClose}>Keep it</button>
      </div>
    </Dialog>
  );
}

function Prompt({ preview }: Pick<UndoDialogProps, "preview">): JSX.Element {
  const files = preview.files.length;
  return (
    <p>
      {preview.prompt && <q>{preview.prompt}</q>} {files ? `${files} ${files === 1 ? "file is" : "files are"} put back.` : "No file is changed."}{" "}
      The turn is taken out of the model's memory.
    </p>
  );
}
