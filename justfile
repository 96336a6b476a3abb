# The commands of a contributor: `just NAME` (`cargo install just`). `just` alone lists them.

_default:
    @just --list

# The gate, as it runs on a clean clone.
check:
    .ci/run

# Records every text again, and the samples of the operations that are named. Read the changes before you keep them.
bless names="":
    .ci/bless {{names}}

# All benches, or those of one name: `just bench trace`.
bench name="*":
    cargo bench -p fx-core -p fx-nn --bench '{{name}}'

# The rustdoc, with the guides, in a browser.
docs:
    cargo doc -p fx-nn -p fx-core -p fx-macros --no-deps --open

# A fuzz target, for so many seconds: parse_graph, load_file or emit_file.
fuzz target="load_file" seconds="60":
    cargo +nightly fuzz run {{target}} -- -max_total_time={{seconds}}

# Layers, circles, long files, copies.
layers:
    .ci/layers

# The examples in a crate outside of the workspace.
examples-outside:
    .ci/examples-outside

# Compile time and binary size beside candle.
compile-time:
    .ci/compile-time

# Models in WebAssembly, by node and wasmtime, beside this machine.
wasm:
    .ci/wasm

# Models as crates without `std`, here and on a Cortex-M4 in QEMU.
static:
    .ci/static

# The guides as a book (`cargo install mdbook`).
book:
    .ci/book

# The size of the build folder after the README's commands, from nothing.
target-size:
    .ci/target-size

# The crates as packages.
package:
    cargo package -p fx-macros -p fx-core -p fx-kernels -p fx-candle-kernels -p fx-nn -p fx-onnx

# Licences, advisories and sources of the dependencies (`cargo install cargo-deny`).
deny:
    cargo deny check
