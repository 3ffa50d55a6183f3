"""Kept sets of the profiles besides `compactor`.

`knorm`, `random` and `streaming` are kvpress's own presses with n given, the head kept, and for `random` DocMem's
scores in place of torch.rand. `compactor-vllm` is written again here in double precision from what the
engine of Compactor's authors (github.com/vnchari/compactor-vllm) computes; log-probabilities over its
ragged caches come from transformers, with evicted tokens masked per layer and head.
"""

from unittest import mock

import numpy
import torch

from common import MODELS, load_model, path, random_ids, save_json, save_tensors
from compression import NAMES, context_ids, sketch
from kvpress_golden import kept_count, prefill
from philox import philox

LENGTHS = [300, 700]
HEADS = [5, 17]
RATIOS = [300_000, 500_000, 900_000]
SEED = 11
PROMPT, ANSWER, END_OF_TURN = 15, 20, 2
FIRST, LAST, LEVERAGE_CHUNK, ATTENTION_CHUNK, QUERY_TILE = 16, 64, 512, 128, 64
JITTER, BLEND = 5e-3, 0.5


def random_scores(layers: int, heads: int, length: int) -> torch.Tensor:
    """[L, G, S] fp32: the upper 24 bits of Philox's first word, counter (position, 0, KV head, layer)."""
    layer, head, position = numpy.indices((layers, heads, length))
    word = philox([position, numpy.zeros_like(position), head, layer], SEED)[0]
    return torch.from_numpy(((word >> numpy.uint64(8)) / 2.0**24).astype(numpy.float32))


def press_of(profile: str, head: int, n: int, length: int):
    import kvpress

    if profile == "knorm":
        return kvpress.KnormPress(compression_ratio=0.5)
    if profile == "random":
        return kvpress.RandomPress(compression_ratio=0.5, seed=0)
    # Its scores already count what goes; half a token more than n is n after kvpress's truncation.
    return kvpress.StreamingLLMPress(compression_ratio=1 - (n + 0.5) / length, n_sink=head)


def kept_by_kvpress(model, profile: str, length: int, head: int, n: int):
    """Scores [L, G, S] with the head's infinite, and kept positions [L, G, n], ascending."""
    press = press_of(profile, head, n, length)
    original, scores = press.score, []
    given = random_scores(model.config.num_hidden_layers, model.config.num_key_value_heads, length)

    def score(module, *arguments):
        with mock.patch.object(torch, "rand", lambda *_, **__: given[module.layer_idx][None]):
            result = original(module, *arguments).clone()
        result[..., :head] = torch.inf
        scores.append(result[0])
        return result

    press.score = score
    with mock.patch("kvpress.presses.scorer_press.compute_n_kept", return_value=n):
        prefill(model, context_ids(model)[:length], press)
    stacked = torch.stack(scores)
    return stacked, stacked.topk(n, dim=-1).indices.sort(dim=-1).values


def attention_inputs(model, length: int) -> list[dict[str, torch.Tensor]]:
    """Per layer in double: keys before RoPE, queries and keys after it, [heads, S, D]."""
    from kvpress.utils import get_prerope_key_states, get_prerope_query_states
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    seen = []

    def hook(module, _, kwargs, __):
        hidden, (cos, sin) = kwargs["hidden_states"], kwargs["position_embeddings"]
        keys = get_prerope_key_states(module, hidden)
        rotated = apply_rotary_pos_emb(get_prerope_query_states(module, hidden), keys, cos, sin)
        seen.append({"raw": keys[0], "queries": rotated[0][0], "keys": rotated[1][0]})

    handles = [
        layer.self_attn.register_forward_hook(hook, with_kwargs=True)
        for layer in model.model.layers
    ]
    model(input_ids=context_ids(model)[None, :length], use_cache=False)
    for handle in handles:
        handle.remove()
    return [{name: t.double() for name, t in layer.items()} for layer in seen]


def standard(x: torch.Tensor) -> torch.Tensor:
    return (x - x.mean()) / x.std(unbiased=False)


def leverage(raw: torch.Tensor, projection: torch.Tensor) -> torch.Tensor:
    """[G, S]: diag(X (XᵀX + jitter)⁻¹ Xᵀ) of each chunk by an SVD, standardised per chunk."""
    parts = []
    for keys in raw.split(LEVERAGE_CHUNK, dim=1):
        x = keys @ projection
        x = x - x.mean(dim=1, keepdim=True)
        gram = x.transpose(1, 2) @ x + JITTER * torch.eye(x.shape[2], dtype=x.dtype)
        left, values, _ = torch.linalg.svd(gram)
        rows = x @ (left / values.sqrt().unsqueeze(1))
        parts.append(standard(rows.square().sum(dim=-1)))
    return torch.cat(parts, dim=1)


def attention(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """[G, S]: softmax mass inside chunks, from all queries of all query heads of a KV head."""
    groups, length, dim = keys.shape
    parts = []
    for first in range(0, length, ATTENTION_CHUNK):
        chunk = slice(first, min(first + ATTENTION_CHUNK, length))
        count = chunk.stop - chunk.start
        rows = queries[:, chunk].reshape(groups, -1, dim)
        mass = (rows @ keys[:, chunk].transpose(1, 2)).softmax(dim=-1).sum(dim=1)
        empty_rows = -count % QUERY_TILE * (len(queries) // groups)
        parts.append(mass + empty_rows / ATTENTION_CHUNK)
    return standard(torch.cat(parts, dim=1))


def vllm_scores(model, length: int) -> torch.Tensor:
    """[L, G, S] in double, of protected tokens too."""
    projection = sketch(model.config, 61)[0, 0].double() / 48**0.5
    return torch.stack(
        [
            BLEND * leverage(layer["raw"], projection) + attention(layer["queries"], layer["keys"])
            for layer in attention_inputs(model, length)
        ]
    )


def kept_over_heads(scores: torch.Tensor, head: int, n: int) -> torch.Tensor:
    """Mask [L, G, S]: protected tokens in every head, then the best of all heads; G·n per layer."""
    layers, groups, length = scores.shape
    protected = torch.zeros(length, dtype=torch.bool)
    protected[: max(head, FIRST)] = True
    protected[length - LAST :] = True
    mask = protected.expand(scores.shape).clone()
    free = groups * (n - int(protected.sum()))
    for layer in range(layers):
        candidates = scores[layer].masked_fill(protected, -torch.inf).T.flatten()
        best = candidates.argsort(descending=True, stable=True)[:free]
        mask[layer][best % groups, best // groups] = True
    return mask


def log_probabilities(model, mask: torch.Tensor, prompt, answer) -> torch.Tensor:
    """[A]: log softmax of each answer id over a cache of which each layer and head sees `mask` [L, G, S]."""
    length = mask.shape[2]
    cache = prefill(model, context_ids(model)[:length])
    rows = torch.cat([prompt, answer[:-1]])
    own = torch.full((len(rows), len(rows)), -torch.inf).triu(1)
    repeat = model.config.num_attention_heads // mask.shape[1]

    def masked(module, args, kwargs):
        seen = torch.zeros(mask.shape[1:]).masked_fill(~mask[module.layer_idx], -torch.inf)
        seen = seen.repeat_interleave(repeat, dim=0)[:, None].expand(-1, len(rows), -1)
        whole = torch.cat([seen, own.expand(len(seen), -1, -1)], dim=-1)
        return args, kwargs | {"attention_mask": whole[None]}

    handles = [
        layer.self_attn.register_forward_pre_hook(masked, with_kwargs=True)
        for layer in model.model.layers
    ]
    positions = torch.arange(length, length + len(rows))
    logits = model(
        input_ids=rows[None], position_ids=positions[None], past_key_values=cache
    ).logits[0]
    for handle in handles:
        handle.remove()
    scores = logits[len(prompt) - 1 :].float().log_softmax(dim=-1)
    return scores.gather(1, answer[:, None])[:, 0]


def make_case(model, length: int, head: int) -> tuple[dict[str, torch.Tensor], dict]:
    """Tensors of one file, and per profile the ratios it has."""
    vocabulary = model.config.vocab_size
    prompt = torch.tensor(random_ids(71, PROMPT, 5, vocabulary))
    answer = torch.tensor(random_ids(72, ANSWER, 5, vocabulary) + [END_OF_TURN])
    vllm = vllm_scores(model, length)
    tensors = {"prompt": prompt, "answer": answer, "compactor-vllm.scores": vllm.float()}
    ratios = {"compactor-vllm": []}
    for ppm in RATIOS:
        n = kept_count(length, head, ppm)
        for profile in ("knorm", "random", "streaming"):
            scores, kept = kept_by_kvpress(model, profile, length, head, n)
            tensors[f"{profile}.{ppm}"] = kept.to(torch.int32)
            ratios.setdefault(profile, []).append(ppm)
            if profile == "knorm":
                tensors["knorm.scores"] = scores
        if n > max(head, FIRST) + LAST:
            mask = kept_over_heads(vllm, head, n)
            tensors[f"compactor-vllm.{ppm}"] = mask.nonzero()[:, 2].to(torch.int32)
            tensors[f"compactor-vllm.{ppm}.counts"] = mask.sum(dim=-1)
            tensors[f"compactor-vllm.{ppm}.logprobs"] = log_probabilities(
                model, mask, prompt, answer
            )
            ratios["compactor-vllm"].append(ppm)
    return tensors, ratios


def make() -> None:
    cases = []
    for name in NAMES:
        model = load_model(MODELS / name)
        for length in LENGTHS:
            for head in HEADS:
                tensors, ratios = make_case(model, length, head)
                file = f"{name}-{length}-{head}.safetensors"
                save_tensors(path("profiles", file), tensors)
                cases.append(
                    {
                        "file": file,
                        "model": name,
                        "length": length,
                        "head": head,
                        "seed": SEED,
                        "ratios": ratios,
                    }
                )
    save_json(path("profiles", "cases.json"), cases)
