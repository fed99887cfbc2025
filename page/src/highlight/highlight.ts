// Colours code: highlight.js finds the tokens, and they become DOM nodes here, never a string of HTML.

import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

/** A coloured part of a line: where it starts, where it ends, and its classes. */
export type Token = [start: number, end: number, kind: string];

const LANGUAGES = { bash, cpp, css, go, ini, java, json, python, rust, typescript, xml, yaml };
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);

/** Other names, and the suffixes of files. JavaScript is read as TypeScript, and C as C++: each has all of the other's. */
const NAMES: Record<string, string> = {
  ...Object.fromEntries(Object.keys(LANGUAGES).map((name) => [name, name])),
  sh: "bash", shell: "bash", zsh: "bash", console: "bash", makefile: "bash", mk: "bash", dockerfile: "bash",
  c: "cpp", h: "cpp", hpp: "cpp", cc: "cpp", cxx: "cpp", "c++": "cpp", cs: "java", kt: "java", kotlin: "java", swift: "java",
  scss: "css", less: "css", golang: "go", toml: "ini", cfg: "ini", conf: "ini", properties: "ini", lock: "ini",
  jsonc: "json", json5: "json", jsonl: "json", ipynb: "json", webmanifest: "json", py: "python", pyi: "python", py3: "python", rs: "rust",
  ts: "typescript", tsx: "typescript", mts: "typescript", cts: "typescript", js: "typescript", jsx: "typescript",
  javascript: "typescript", mjs: "typescript", cjs: "typescript", html: "xml", htm: "xml", svg: "xml", vue: "xml",
  svelte: "xml", xhtml: "xml", plist: "xml", yml: "yaml",
};
hljs.registerAliases(["javascript", "js"], { languageName: "typescript" }); // inside of HTML

/** Characters that are coloured: above that the page would be held up. */
const MOST = 60_000;
const LONG_LINE = /[^\n]{2001}/;
/** Milliseconds after which a language is not tried again: some text can make a grammar slow. */
const TOO_SLOW = 250;
const slow = new Set<string>();

interface TokenNode {
  scope?: string;
  children: (TokenNode | string)[];
}

/** The language of a file, by its name; empty if none fits. */
export function languageOf(path: string): string {
  const name = (path.split("/").pop() ?? "").toLowerCase();
  return NAMES[name.split(".").pop() ?? ""] ?? "";
}

function treeOf(text: string, language: string): TokenNode | null {
  const name = NAMES[language.toLowerCase()];
  if (!name || slow.has(name) || text.length > MOST || LONG_LINE.test(text)) return null;
  const start = performance.now();
  const result = hljs.highlight(text, { language: name, ignoreIllegals: true });
  if (performance.now() - start > TOO_SLOW) slow.add(name);
  return (result._emitter as unknown as { rootNode: TokenNode }).rootNode;
}

function classesOf(scope: string): string {
  return scope.startsWith("language:")
    ? ""
    : scope.split(".").map((part, index) => (index ? `${part}_` : `hljs-${part}`)).join(" ");
}

/** The tokens of each line of a text; null if it cannot be coloured. */
export function tokensOfLines(text: string, language: string): Token[][] | null {
  const tree = treeOf(text, language);
  if (!tree) return null;
  const lines: Token[][] = [[]];
  let column = 0;
  const add = (part: string, kind: string) => {
    part.split("\n").forEach((piece, index) => {
      if (index) {
        lines.push([]);
        column = 0;
      }
      if (piece && kind) lines[lines.length - 1]?.push([column, column + piece.length, kind]);
      column += piece.length;
    });
  };
  const walk = (node: TokenNode, kind: string) => {
    const own = (node.scope && classesOf(node.scope)) || kind;
    for (const child of node.children) {
      if (typeof child === "string") add(child, own);
      else walk(child, own);
    }
  };
  walk(tree, "");
  return lines;
}

/** Colours the code in an element, in place. What it holds besides text is replaced by its text. */
export function highlight(element: HTMLElement, language: string): void {
  const text = element.textContent ?? "";
  const tree = treeOf(text, language);
  if (!tree) return;
  const nodes = (node: TokenNode): Node[] =>
    node.children.map((child) => {
      if (typeof child === "string") return document.createTextNode(child);
      const span = document.createElement("span");
      span.className = child.scope ? classesOf(child.scope) : "";
      span.append(...nodes(child));
      return span;
    });
  element.replaceChildren(...nodes(tree));
}
