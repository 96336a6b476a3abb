// Compares what the models give here with what they gave on the machine: `node web.mjs BINDINGS DIR`.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const [bindings, folder] = process.argv.slice(2);
const fx = createRequire(import.meta.url)(resolve(bindings));

for (const name of ["resnet18", "gpt2"]) {
  const numbers = readFileSync(join(folder, `${name}.txt`), "utf8");
  console.log(fx.compare(name, readFileSync(join(folder, `${name}.fx`)), numbers));
}
console.log(fx.report());
