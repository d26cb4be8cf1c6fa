// Finishes a build: renames `building/` to `built/`, unless the JavaScript that the browser needs before the first
// picture is larger than the limit.
import { readFileSync, renameSync, rmSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT = 250 * 1024;
const building = new URL("../building/", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL("manifest.json", building), "utf8"));

/** Add the file of a chunk, and those that it imports at once, to the set. */
function collect(key, files) {
  const chunk = manifest[key];
  if (files.has(chunk.file)) return;
  files.add(chunk.file);
  for (const imported of chunk.imports ?? []) collect(imported, files);
}

const files = new Set();
for (const [key, chunk] of Object.entries(manifest)) if (chunk.isEntry) collect(key, files);
let size = 0;
for (const file of files) size += gzipSync(readFileSync(new URL(file, building))).length;
console.log(
  `first load: ${(size / 1024).toFixed(1)} KiB of JavaScript after gzip in ${files.size} files, limit ${LIMIT / 1024}`,
);
if (size > LIMIT) {
  console.error("The first load is too large: import what only one page needs with React.lazy.");
  process.exit(1);
}
const built = new URL("../built/", import.meta.url);
rmSync(built, { recursive: true, force: true });
renameSync(building, built);
