"""Kept sets and scores of kvpress, end to end and for the scorer alone."""

from unittest import mock

import torch

from common import MODELS, generator, load_model, path, random_ids, save_json, save_tensors
from kvpress_golden import LAST, SKETCH_COLUMNS, Recorder, fixed_sketch, kept_count, prefill

NAMES = ["tiny-llama", "tiny-qwen3"]
LENGTHS = [120, 268, 300, 1000]
RATIOS = [100_000, 500_000, 900_000, 950_000]
# (name, head of the document's cache, kvpress's sink_size_start)
HEADS = [("own", 5, 8), ("head", 17, 17)]
NEAR = 1e-3
BF16_INPUTS = ("pre_rope_keys", "queries", "keys", "values")


def sketch(config, seed: int) -> torch.Tensor:
    """[L, G, D, 48], standard normal."""
    shape = (config.num_hidden_layers, config.num_key_value_heads, config.head_dim, SKETCH_COLUMNS)
    return torch.randn(shape, generator=generator(seed))


def context_ids(model) -> torch.Tensor:
    return torch.tensor(random_ids(51, max(LENGTHS), 5, model.config.vocab_size))


def near_threshold(recorder: Recorder, first: int) -> list[list[int]]:
    """Per layer and KV head: other middle tokens whose score is within NEAR of the last kept one's."""
    result = []
    for scores in recorder.parts["scores"]:
        threshold = scores.sort(dim=-1, descending=True).values[:, recorder.n - 1, None]
        result.append(
            ((scores[:, first:-LAST] - threshold).abs() <= NEAR).sum(dim=-1).sub(1).tolist()
        )
    return result


def compress_case(model, sketches, length: int, case: tuple[str, int, int]):
    """Tensors of one file and, per ratio, n and the tokens near the threshold."""
    _, head, first = case
    tensors, rows = {}, []
    for ppm in RATIOS:
        n = kept_count(length, head, ppm)
        if n <= first + LAST:
            continue
        recorder = Recorder(sketches, first, n, ppm / 1e6)
        prefill(model, context_ids(model)[:length], recorder)
        tensors |= {name: recorder.stacked(name) for name in ("leverage", "attention")}
        tensors[f"kept.{ppm}"] = recorder.stacked("kept").to(torch.int32)
        rows.append({"ratio_ppm": ppm, "n": n, "near": near_threshold(recorder, first)})
    return tensors, rows


def make_model(name: str) -> list[dict]:
    model = load_model(MODELS / name)
    sketches = sketch(model.config, 61)
    save_tensors(
        path("compression", f"{name}.safetensors"), {"ids": context_ids(model), "sketch": sketches}
    )
    cases = []
    for length in LENGTHS:
        for case in HEADS:
            tensors, rows = compress_case(model, sketches, length, case)
            file = f"{name}-{length}-{case[0]}.safetensors"
            save_tensors(path("compression", file), tensors)
            cases.append(
                {
                    "file": file,
                    "model": name,
                    "length": length,
                    "head": case[1],
                    "first": case[2],
                    "last": LAST,
                    "ratios": rows,
                }
            )
    return cases


def scorer_golden(file: str, inputs: dict[str, torch.Tensor], blending: float, bf16: bool) -> None:
    """CompactorPress.score on given middle tokens: no sinks, queries already rotated (cos 1, sin 0)."""
    from kvpress import CompactorPress

    press = CompactorPress(
        compression_ratio=0.5, sink_size_start=0, sink_size_end=0, blending=blending
    )
    queries, count, dim = inputs["queries"], inputs["queries"].shape[1], inputs["queries"].shape[2]
    arguments = {
        "module": None,
        "hidden_states": torch.zeros(1, count, 1),
        "keys": inputs["keys"][None],
        "values": inputs["values"][None],
        "attentions": None,
        "kwargs": {"position_embeddings": (torch.ones(1, count, dim), torch.zeros(1, count, dim))},
    }
    with (
        mock.patch(
            "kvpress.presses.non_causal_attention_press.get_prerope_query_states",
            lambda *_: queries[None],
        ),
        mock.patch(
            "kvpress.presses.leverage_press.get_prerope_key_states",
            lambda *_: inputs["pre_rope_keys"][None],
        ),
        fixed_sketch(inputs["sketch"]),
    ):
        results = {
            "leverage": press._leverage_press.score(**arguments)[0],
            "attention": press._non_causal_press.score(**arguments)[0],
            "scores": press.score(**arguments)[0],
            "raw_leverage": press._leverage_press.compute_leverage_scores(
                inputs["pre_rope_keys"][None], SKETCH_COLUMNS
            )[0],
            "raw_attention": press._non_causal_press.non_causal_chunked_attn(
                queries[None],
                inputs["keys"].repeat_interleave(len(queries) // len(inputs["keys"]), dim=0)[None],
                press.chunk_size,
            )[0],
            "blending": torch.tensor([blending]),
        }
    stored = {
        key: value.to(torch.bfloat16) if bf16 and key in BF16_INPUTS else value
        for key, value in inputs.items()
    }
    save_tensors(path("scorer", file), stored | results)


def layer_inputs(name: str, layer: int, length: int, first: int) -> dict[str, torch.Tensor]:
    """What the scorer sees of one layer: the middle tokens of a context of `length` ids."""
    from kvpress.utils import get_prerope_key_states, get_prerope_query_states
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    model = load_model(MODELS / name)
    seen = {}

    def hook(module, _, kwargs, __):
        hidden, (cos, sin) = kwargs["hidden_states"], kwargs["position_embeddings"]
        keys = get_prerope_key_states(module, hidden)
        rotated = apply_rotary_pos_emb(get_prerope_query_states(module, hidden), keys, cos, sin)
        values = module.v_proj(hidden).view(1, hidden.shape[1], -1, module.head_dim).transpose(1, 2)
        seen.update(
            pre_rope_keys=keys, queries=rotated[0], keys=rotated[1], values=values, hidden=hidden
        )

    module = model.model.layers[layer].self_attn
    handle = module.register_forward_hook(hook, with_kwargs=True)
    model(input_ids=context_ids(model)[None, :length], use_cache=False)
    handle.remove()
    middle = {key: value[0][..., first:-LAST, :] for key, value in seen.items()}
    return middle | {"sketch": sketch(model.config, 61)[layer]}


def make_scorer() -> None:
    scorer_golden("one-chunk.safetensors", layer_inputs("tiny-llama", 1, 120, 17), 0.9, bf16=False)
    two = layer_inputs("tiny-qwen3", 1, 292, 8)
    two = {
        key: value[: 2 if key == "queries" else 1] for key, value in two.items() if key != "hidden"
    }
    for key in BF16_INPUTS:
        two[key] = two[key].to(torch.bfloat16).to(torch.float32)
    scorer_golden("two-chunks.safetensors", two, 0.5, bf16=True)


def make() -> None:
    save_json(
        path("compression", "cases.json"), [case for name in NAMES for case in make_model(name)]
    )
    make_scorer()
