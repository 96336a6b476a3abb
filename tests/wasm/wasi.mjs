// Runs a program for WASI on a folder: `node wasi.mjs PROGRAM DIR`.
import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";

const [program, folder] = process.argv.slice(2);
const wasi = new WASI({
  version: "preview1",
  args: ["models", "compare", "/models"],
  preopens: { "/models": folder },
});
const module = await WebAssembly.compile(await readFile(program));
wasi.start(await WebAssembly.instantiate(module, wasi.getImportObject()));
