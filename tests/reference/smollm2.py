"""A few numbers of SmolLM2-135M-Instruct in fp32: logits, kept sets, greedy answers.

The folder comes from scripts/make_smollm2.py; without it the committed files stay as they are.
"""

import torch
from tokenizers import Tokenizer

import philox
from common import ROOT, load_model, path, save_json, save_tensors
from kvpress_golden import LAST, Recorder, kept_count, prefill
from synthetic_text import paragraphs

FOLDER = ROOT.parent.parent / "build/models/smollm2-135m-instruct"
HEAD = "<|im_start|>system\nAnswer from the document, in a few words.<|im_end|>\n<|im_start|>user\n"
QUESTION = "\n\nQuestion: What does the document say about the bridge?"
TAIL = "<|im_end|>\n<|im_start|>assistant\n"
CHAT = "<|im_start|>system\nYou are a careful assistant.<|im_end|>\n<|im_start|>user\nExplain in three sentences why the sky is blue.<|im_end|>\n<|im_start|>assistant\n"
LENGTH, PPM, POSITIONS, TOP, ANSWER, NEAR = 400, 900_000, 16, 64, 64, 1e-3


def encode(text: str) -> list[int]:
    return (
        Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
        .encode(text, add_special_tokens=False)
        .ids
    )


def prompt_logits(model, ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """rows [16], top_ids, top_logits [16, 64], log_sum_exp [16] of a plain prompt."""
    rows = torch.linspace(0, len(ids) - 1, POSITIONS).round().long()
    logits = model(input_ids=ids[None], use_cache=False).logits[0, rows]
    top = logits.topk(TOP, dim=-1)
    return {
        "rows": rows,
        "top_ids": top.indices.to(torch.int32),
        "top_logits": top.values,
        "log_sum_exp": logits.logsumexp(dim=-1),
    }


def greedy(
    model, prompt: torch.Tensor, cache, position: int, count: int
) -> dict[str, torch.Tensor]:
    """answer [count] and gap [count] between the best two logits; stops behind an EOS."""
    step, ids, gaps = prompt, [], []
    while len(ids) < count and (not ids or ids[-1] != model.generation_config.eos_token_id):
        positions = torch.arange(position, position + len(step))
        logits = model(
            input_ids=step[None],
            position_ids=positions[None],
            past_key_values=cache,
            logits_to_keep=1,
        ).logits[0, -1]
        best = logits.topk(2)
        ids.append(int(best.indices[0]))
        gaps.append(float(best.values[0] - best.values[1]))
        position += len(step)
        step = best.indices[:1]
    return {"answer": torch.tensor(ids), "gap": torch.tensor(gaps)}


def near(recorder: Recorder, first: int) -> torch.Tensor:
    """[count, 3] int32: layer, KV head, position of tokens whose score is within NEAR of the last kept one's."""
    scores = recorder.stacked("scores")
    threshold = scores.sort(dim=-1, descending=True).values[..., recorder.n - 1, None]
    close = (scores - threshold).abs() <= NEAR
    close[..., :first] = close[..., -LAST:] = False
    return close.nonzero().to(torch.int32)


def make() -> None:
    if not (FOLDER / "config.json").exists():
        print(f"{FOLDER} is missing: SmolLM2's numbers left as they are")
        return
    from transformers import DynamicCache

    model = load_model(FOLDER)
    head = encode(HEAD)
    ids = torch.tensor((head + encode("\n\n".join(paragraphs(seed=5, count=40))))[:LENGTH])
    save_tensors(path("smollm2", "logits.safetensors"), {"ids": ids} | prompt_logits(model, ids))

    chat = torch.tensor(encode(CHAT))
    save_tensors(
        path("smollm2", "chat.safetensors"),
        {"ids": chat} | greedy(model, chat, DynamicCache(), 0, ANSWER),
    )

    config = model.config
    sketch = philox.sketch(config.num_hidden_layers, config.num_key_value_heads, 64, 48, seed=0)
    recorder = Recorder(sketch, len(head), kept_count(LENGTH, len(head), PPM), PPM / 1e6)
    cache = prefill(model, ids, recorder)
    question = torch.tensor(encode(QUESTION) + encode(TAIL))
    save_tensors(
        path("smollm2", "compressed.safetensors"),
        {
            "ids": ids,
            "kept": recorder.stacked("kept").to(torch.int16),
            "near": near(recorder, len(head)),
            "question": question,
        }
        | greedy(model, question, cache, LENGTH, 32),
    )
    save_json(
        path("smollm2", "case.json"),
        {
            "chat": CHAT,
            "head": len(head),
            "first": len(head),
            "last": 4,
            "length": LENGTH,
            "ratio_ppm": PPM,
            "n": recorder.n,
            "sketch_seed": 0,
        },
    )
