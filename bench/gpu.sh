#!/bin/bash
# Checks and measures the engine on one GPU, in under eight minutes, with nothing but libtorch and the
# engine's small libraries:
#   bench/gpu.sh [TORCH_DIR]      TORCH_DIR: a Python environment, or the torch folder of one (.venv)
# It builds the engine alone with CUDA, runs the tests that compare the GPU with the CPU, and measures
# random weights in the shapes of Qwen3-4B and Llama-3.1-8B. Models go to build/gpu/models (24 GB).
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
torch=$(readlink -f "${1:-.venv}")
build=build/gpu
models=$build/models

cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DDOCMEM_ENGINE_ONLY=ON -DDOCMEM_CUDA=ON \
  -DDOCMEM_TORCH_DIR="$torch" >"$build.configure.log" || { tail -n 20 "$build.configure.log"; exit 1; }
ninja -C "$build" gpu_test engine_worker random_model

"$build/tests/gpu_test"

measure() {
  local model=$1
  printf '%s\n' \
    '{"measure": "ingest", "tokens": 400, "ratio_ppm": 900000}' \
    '{"measure": "ingest", "tokens": 2000, "ratio_ppm": 900000}' \
    '{"measure": "ingest", "tokens": 7800, "ratio_ppm": 900000}' \
    '{"measure": "ingest", "tokens": 7800, "ratio_ppm": 0}' \
    '{"measure": "first_token", "tokens": 2000, "cold": false}' \
    '{"measure": "first_token", "tokens": 2000, "cold": true}' \
    '{"measure": "decode", "streams": 1, "tokens": 128, "rank": 0}' \
    '{"measure": "decode", "streams": 1, "tokens": 128, "rank": 16}' \
    '{"measure": "decode", "streams": 8, "tokens": 128, "rank": 0}' \
    '{"measure": "decode", "streams": 8, "tokens": 128, "rank": 16}' \
    '{"measure": "decode", "streams": 32, "tokens": 128, "rank": 16}' \
    '{"measure": "bytes", "tokens": 7800, "rank": 16}' >"$build/requests"
  echo "== $model (requests and answers)"
  # The first run of each kind warms up and isn't shown.
  cat "$build/requests" "$build/requests" |
    "$build/bench/engine_worker" "$models/$model" bfloat16 0 cuda:0 |
    tail -n "$(wc -l <"$build/requests")" | paste -d ' ' "$build/requests" -
}

for model in qwen3-4b llama-3.1-8b-instruct; do
  [[ -e $models/$model/tokenizer_config.json ]] ||
    "$build/bench/random_model" "tests/reference/shapes/$model/config.json" \
      tests/reference/models/tiny-llama "$models/$model"
  measure "$model"
done
