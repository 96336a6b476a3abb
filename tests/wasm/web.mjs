// Compares what the models give here with what they gave on the machine: `node web.mjs BINDINGS DIR`.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const [bindings, folder] = process.argv.slice(2);
const fx = createRequire(import.meta.url)(resolve(bindings));

for (const name of ["resnet18", "gpt2"]) {
  const ours = fx.outputs(name, readFileSync(join(folder, `${name}.fx`)));
  const lines = readFileSync(join(folder, `${name}.txt`), "utf8").trim().split("\n");
  if (ours.length !== lines.length) throw new Error(`${ours.length} numbers instead of ${lines.length}`);
  let [difference, largest] = [0, 0];
  lines.map(Number).forEach((x, i) => {
    difference = Math.max(difference, Math.abs(x - ours[i]));
    largest = Math.max(largest, Math.abs(x));
  });
  if (!(difference <= 1e-5 * Math.max(1, largest))) throw new Error(`${name} is off by ${difference} of ${largest}`);
  console.log(`wasm.difference/${name} ${difference.toExponential(1)} of ${largest.toFixed(2)}, ${ours.length} numbers`);
}
console.log(`wasm.level ${fx.level()}`);
console.log(`wasm.own_difference ${fx.own_difference().toExponential(1)}`);
console.log(`wasm.gradient [${fx.gradient().join(", ")}]`);
fx.refused().forEach((line) => console.log(`wasm.refused ${line}`));
