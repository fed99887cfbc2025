// Markdown as it arrives: each piece of text is parsed once and becomes nodes, nothing is drawn again.
//
// The text is a model's, or a file's that a model read, so it is hostile. No HTML is made of it, links lead to the web or to
// mail only, and an image is a link: fetching it would tell its server what the text says.

import * as smd from "streaming-markdown";
import { highlight } from "./widgets";

const GOOD_LINK = /^(https?:\/\/|mailto:)/i;
/** Blocks of code that are longer stay plain: colouring them would hold up the page. */
const LONGEST_CODE = 50_000;

interface Data {
  nodes: HTMLElement[];
  index: number;
}

export interface MarkdownStream {
  write(text: string): void;
  /** The text is complete: what was held back, because it could have become something else, is drawn. */
  end(): void;
}

/** Draws Markdown into an element, piece by piece. */
export function markdownInto(root: HTMLElement): MarkdownStream {
  const renderer = smd.default_renderer(root);
  const parser = smd.parser({ ...renderer, add_token: addToken, end_token: endToken, set_attr: setAttribute });
  return {
    write: (text) => smd.parser_write(parser, text),
    end: () => smd.parser_end(parser),
  };
}

function addToken(data: Data, type: smd.Token): void {
  if (type === smd.Token.Image) {
    data.nodes[data.index + 1] = data.nodes[data.index]!.appendChild(document.createElement("a"));
    data.index += 1;
    return;
  }
  smd.default_add_token(data, type);
  const made = data.nodes[data.index];
  if (made?.parentElement?.tagName === "PRE") made.parentElement.tabIndex = 0; // so that keys can scroll it
  if (made?.tagName === "INPUT") made.setAttribute("aria-label", "Task");
}

function endToken(data: Data): void {
  const node = data.nodes[data.index];
  const language = node?.dataset.language;
  if (node && language && (node.textContent?.length ?? 0) < LONGEST_CODE) highlight(node, language);
  smd.default_end_token(data);
}

function setAttribute(data: Data, type: smd.Attr, value: string): void {
  const node = data.nodes[data.index];
  if (!node) return;
  switch (type) {
    case smd.Attr.Href:
    case smd.Attr.Src:
      linkTo(node, value);
      break;
    case smd.Attr.Lang:
      node.dataset.language = value.slice(0, 40);
      break;
    case smd.Attr.Start:
    case smd.Attr.Checked:
      smd.default_set_attr(data, type, value);
  }
}

/** An address of another kind leads nowhere; it can be read in the title. */
function linkTo(node: HTMLElement, address: string): void {
  node.title = address;
  if (!GOOD_LINK.test(address)) return;
  node.setAttribute("href", address);
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer");
}
