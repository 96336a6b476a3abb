#!/usr/bin/env bash
# The tests of fx-pjrt with AddressSanitizer, their plugin too: bash fx-pjrt/tests/asan.sh
#
# Needs a nightly toolchain: rustup toolchain install nightly
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$(rustc -vV | sed -n 's/^host: //p')
export RUSTFLAGS="-Z sanitizer=address" RUSTC="$(rustup which --toolchain nightly rustc)"
# The plugin's table and the names of loaded files stay for good.
export FX_STUB_ASAN=1 ASAN_OPTIONS=detect_leaks=0 CARGO_PROFILE_DEV_DEBUG=none CARGO_INCREMENTAL=0
CARGO_TARGET_DIR=${FX_ASAN_TARGET:-target/asan} cargo +nightly test -p fx-pjrt --test behaviour --target "$target"
