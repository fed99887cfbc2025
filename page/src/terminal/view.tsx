// Shows a command as a terminal.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { TerminalViewProps } from "../widgets";

export function TerminalView({ feed, title }: TerminalViewProps): JSX.Element {
  const [text, setText] = useState(feed.text);
  useEffect(() => feed.subscribe(() => setText(feed.text)), [feed]);
  return (
    <pre class="plain" aria-label={title}>
      {text}
    </pre>
  );
}
