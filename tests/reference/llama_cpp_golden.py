#!/usr/bin/env python3
"""Makes smollm2/llama_cpp.json: greedy answers of llama.cpp on SmolLM2's weights in fp32.

    python3 -m venv llama && llama/bin/pip install --no-deps -r requirements-llama-cpp.txt
    llama/bin/python llama_cpp_golden.py

An environment of its own, because pip has to compile llama-cpp-python. scripts/make_smollm2.py
makes the model's folder first.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from gguf_file import write_gguf
from tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parent
FOLDER = ROOT.parent.parent / "build/models/smollm2-135m-instruct"
TARGET = ROOT / "smollm2/llama_cpp.json"
TOKENS = 64
SYSTEM = "You answer briefly and stay with the facts."
QUESTIONS = [
    "What should I look at before I buy a used bicycle?",
    "Write four lines about a lighthouse in the fog.",
    "A train leaves at 9:40 and the ride takes 75 minutes. When does it arrive?",
]


def load(path: Path):
    """llama.cpp's context with nothing below fp32: no fp16 keys and values, no fused attention."""
    import llama_cpp as api

    api.llama_backend_init()
    model = api.llama_model_load_from_file(str(path).encode(), api.llama_model_default_params())
    options = api.llama_context_default_params()
    options.n_ctx = options.n_batch = options.n_ubatch = 512
    options.n_threads = options.n_threads_batch = 1
    options.type_k = options.type_v = api.GGML_TYPE_F32
    options.flash_attn_type = api.LLAMA_FLASH_ATTN_TYPE_DISABLED
    return api, api.llama_init_from_model(model, options)


def greedy(api, context, prompt: list[int], vocabulary: int, end: int) -> tuple[list[int], float]:
    """The answer, up to and with `end`, and the smallest distance of its two best logits."""
    api.llama_memory_clear(api.llama_get_memory(context), True)
    step, answer, gap = prompt, [], float("inf")
    while len(answer) < TOKENS and end not in answer:
        tokens = (api.llama_token * len(step))(*step)
        if api.llama_decode(context, api.llama_batch_get_one(tokens, len(step))):
            sys.exit("llama_decode failed")
        logits = np.ctypeslib.as_array(api.llama_get_logits_ith(context, -1), (vocabulary,))
        second, best = np.argsort(logits)[-2:]
        gap = min(gap, float(logits[best] - logits[second]))
        step = [int(best)]
        answer += step
    return answer, gap


def main() -> None:
    config = json.loads((FOLDER / "config.json").read_text())
    tokenizer = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    with tempfile.TemporaryDirectory() as folder:
        write_gguf(FOLDER, Path(folder) / "model.gguf")
        api, context = load(Path(folder) / "model.gguf")
    cases = []
    for question in QUESTIONS:
        turns = [("system", SYSTEM), ("user", question)]
        prompt = "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in turns)
        prompt += "<|im_start|>assistant\n"
        ids = tokenizer.encode(prompt, add_special_tokens=False).ids
        answer, gap = greedy(api, context, ids, config["vocab_size"], config["eos_token_id"])
        print(f"{len(ids)} + {len(answer)} tokens, smallest gap {gap:.4f}: "
              f"{tokenizer.decode(answer)!r}")
        cases.append({"prompt": prompt, "ids": ids, "answer": answer})
    lines = ",\n".join(json.dumps(case, sort_keys=True) for case in cases)
    TARGET.write_text(f"[\n{lines}\n]\n", encoding="ascii")


if __name__ == "__main__":
    main()
