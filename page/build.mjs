// Bundles the page into the folder that is given: `node build.mjs OUT BUILD`. hatch_build.py runs it. BUILD names the sources:
// the server says the same, and a page that is still open after an upgrade sees that it is another one.
import { build } from "esbuild";
import { copyFile, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

const [out, name] = process.argv.slice(2);
if (!out || !name) throw new Error("usage: node build.mjs OUT BUILD");
const { version } = JSON.parse(await readFile("package.json", "utf8"));

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
  define: { PAGE_VERSION: JSON.stringify(version), PAGE_BUILD: JSON.stringify(name) },
  // The server has one flat folder of files.
  chunkNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  loader: { ".svg": "file", ".woff2": "file" },
  logLevel: "warning",
});
if (warnings.length) process.exitCode = 1;

for (const name of await readdir("static")) await copyFile(join("static", name), join(out, name));
