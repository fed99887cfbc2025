// Blocks of content other than a message's text: pictures, files, links.

import type { JSX } from "preact";
import type { ContentBlock } from "../acp";
import { plainly } from "../hidden";
import { nameInAddress } from "../paths";
import { Icon } from "./icons";
import { Markdown } from "./markdown";

/** Kinds of pictures that are drawn. SVG is not among them: it is a document. */
const PICTURES = /^image\/(png|jpeg|gif|webp|avif|bmp)$/;

export function Content({ block }: { block: ContentBlock }): JSX.Element {
  switch (block.type) {
    case "text":
      return <Markdown text={block.text} />;
    case "image":
      if (!PICTURES.test(block.mimeType)) return <Chip name={block.mimeType} />;
      return <img class="picture" src={`data:${block.mimeType};base64,${block.data}`} alt="Attached picture" />;
    case "audio":
      return <Chip name={block.mimeType} />;
    case "resource_link":
      return <Chip name={block.name || block.uri} title={block.uri} />;
    case "resource":
      return (
        <details class="resource">
          <summary>
            <Icon name="file" /> <bdi>{plainly(nameInAddress(block.resource.uri))}</bdi>
          </summary>
          <pre class="plain" tabIndex={0}>
            {block.resource.text ?? ""}
          </pre>
        </details>
      );
    default:
      return <></>;
  }
}

function Chip({ name, title }: { name: string; title?: string }): JSX.Element {
  return (
    <span class="attachment" title={title}>
      <Icon name="file" /> <bdi>{plainly(name)}</bdi>
    </span>
  );
}

/** A sentence of Crow's, in which what stands between backticks is code. */
export function Words({ text }: { text: string }): JSX.Element {
  const parts = text.split("`");
  if (parts.length % 2 === 0) return <>{text}</>; // a backtick that stands for itself
  return <>{parts.map((part, index) => (index % 2 ? <code key={index}>{part}</code> : part))}</>;
}
