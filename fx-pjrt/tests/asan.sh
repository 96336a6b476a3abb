#!/usr/bin/env bash
# The tests of fx-pjrt with AddressSanitizer, their plugin too: bash fx-pjrt/tests/asan.sh
#
# Needs a nightly toolchain: rustup toolchain install nightly
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$(rustc -vV | sed -n 's/^host: //p')
RUSTC=$(rustup which --toolchain nightly rustc)
export RUSTC RUSTFLAGS="-Z sanitizer=address" CARGO_PROFILE_DEV_DEBUG=none CARGO_INCREMENTAL=0
export CARGO_TARGET_DIR=${FX_ASAN_TARGET:-target/asan}
# The plugin finds the sanitizer in the program that loads it.
cargo +nightly rustc --profile test -p fx-pjrt --test behaviour --target "$target" -- -C link-arg=-rdynamic
program=$(ls -t "$CARGO_TARGET_DIR/$target"/debug/deps/behaviour-* | grep -v '\.d$' | head -n 1)
# Plugins stay loaded for good, and so does what they hold.
cd fx-pjrt
FX_STUB_ASAN=1 ASAN_OPTIONS=detect_leaks=0 "$(realpath "$program" 2>/dev/null || realpath "../$program")"
