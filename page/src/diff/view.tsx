// Shows what an edit changes.

import type { JSX } from "preact";
import type { DiffViewProps } from "../widgets";

export function DiffView({ items }: DiffViewProps): JSX.Element {
  return (
    <div class="diff">
      {items.map((item, index) => (
        <pre class="plain" key={index}>
          {item.path + "\n" + prefixed(item.oldText ?? "", "- ") + prefixed(item.newText, "+ ")}
        </pre>
      ))}
    </div>
  );
}

function prefixed(text: string, prefix: string): string {
  return text ? text.replace(/^/gm, prefix) + "\n" : "";
}
