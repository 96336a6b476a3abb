#!/usr/bin/env bash
# fx on XLA's plugin for CPUs, which PyPI has: bash fx-pjrt/tests/judge.sh [NAME ..]
#
# Runs the models of fx-nn on one device and over eight, beside what fx computes; then what a call costs beyond the C
# interface, what many runs and compiles leave in memory, and a text by GPT-2. With FX_PJRT_JAX=1, jax's own times beside.
# A Python is needed to download the plugin, and for jax alone: no Python runs with the programs.
set -euo pipefail
cd "$(dirname "$0")/../.."

venv=${FX_PJRT_VENV:-target/pjrt-venv}
packages() {
    [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet "$@"
}
if [ -z "${FX_PJRT_PLUGIN:-}" ]; then
    packages lammps-jax-pjrt-cpu==0.11.2
    FX_PJRT_PLUGIN=$(find "$(cd "$venv" && pwd)" -name pjrt_c_api_cpu_plugin.so | head -n 1)
fi
export FX_PJRT_PLUGIN TF_CPP_MIN_LOG_LEVEL=3

example() {
    cargo run --release -q -p fx-pjrt --example "$@" 2> >(grep -v -E '^(WARNING: All log|[IW][0-9]{4} )' >&2)
}

example pjrt_judge -- "$@"
[ $# -eq 0 ] || exit 0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
example pjrt_overhead -- "$folder"
example pjrt_leaks
example pjrt_generate
if [ "${FX_PJRT_JAX:-}" = 1 ]; then
    packages jax==0.10.2 safetensors numpy
    "$venv/bin/python" fx-pjrt/tests/jax_times.py "$folder"
fi
