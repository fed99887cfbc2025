// Bundles the page into the folder that is given: `node build.mjs OUT`. hatch_build.py runs it.
import { build } from "esbuild";
import { copyFile, readdir } from "node:fs/promises";
import { join } from "node:path";

const out = process.argv[2];
if (!out) throw new Error("usage: node build.mjs OUT");

const { warnings } = await build({
  entryPoints: { page: "src/main.tsx" },
  outdir: out,
  bundle: true,
  splitting: true, // what is imported with import() is fetched when first needed
  format: "esm",
  target: ["es2022"],
  minify: true,
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  // The server has one flat folder of files.
  chunkNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  loader: { ".svg": "file", ".woff2": "file" },
  logLevel: "warning",
});
if (warnings.length) process.exitCode = 1;

for (const name of await readdir("static")) await copyFile(join("static", name), join(out, name));
