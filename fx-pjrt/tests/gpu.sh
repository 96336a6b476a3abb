#!/usr/bin/env bash
# fx on a GPU by jax's CUDA plugin, without a network: bash fx-pjrt/tests/gpu.sh BINARY [PYTHON]
#
# BINARY is the example pjrt_gpu, built where there is a compiler:
#
#   cargo build --release -p fx-pjrt --example pjrt_gpu && strip target/release/examples/pjrt_gpu
#
# PYTHON has jax with its plugin for CUDA (`python3` unless it is named); it only times jax beside fx. Prints the driver, the
# plugin and its API, then ResNet-50 at batch 32 and GPT-2's decoding: numbers beside the CPU's, and times.
set -euo pipefail

binary=$1
python=${2:-python3}
[ "$(stat -c %s "$binary")" -lt $((40 << 20)) ] || echo "$binary has more than 40 MiB: strip it" >&2
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || echo "no nvidia-smi"
if [ -z "${FX_PJRT_PLUGIN:-}" ]; then
    packages=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
    FX_PJRT_PLUGIN=$(ls "$packages"/jax_plugins/xla_cuda1[23]/xla_cuda_plugin.so | tail -n 1)
fi
export FX_PJRT_PLUGIN TF_CPP_MIN_LOG_LEVEL=3
# The libraries of CUDA that packages carry.
libraries=$(find "$(dirname "$FX_PJRT_PLUGIN")/../../nvidia" -maxdepth 3 -name lib -type d 2>/dev/null | paste -sd: -)
export LD_LIBRARY_PATH="${libraries:-}${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
timeout 200 "$binary" "$folder"
timeout 90 "$python" "$(dirname "$0")/jax_times.py" "$folder"
