"""Gradients of LoRA matrices from peft, in the form in which adapters are trained and served.

Per example: the base writes the prefix under `disable_adapter()` without gradient, its cache goes in as
`past_key_values`, the adapter is on for all rows behind it. The loss is the sum of the labels'
cross-entropies over all examples, divided by the number of labels of all of them.

`training.py FOLDER` checks an adapter that DocMem has trained and exported instead: FOLDER is what
training_test writes where DOCMEM_EXPORT names a folder.
"""

import sys
from pathlib import Path

import torch

from adapters import ALL_MODULES, load_adapter, set_random_weights
from common import MODELS, load_model, path, random_ids, save_json, save_tensors, set_up_torch

IGNORED = -100  # what cross_entropy leaves out; -1 in the files
# (prefix, unlabelled rows, label rows): the last row of each example has a label and no successor.
SAME_PREFIX = [(17, 9, 5), (17, 4, 1), (17, 12, 8), (17, 7, 3), (17, 1, 2), (17, 15, 11),
               (17, 6, 4), (17, 8, 6)]
OTHER_PREFIXES = [(17, 9, 5), (40, 4, 1), (23, 0, 30), (64, 7, 3)]
BIAS_OPTIONS = {"r": 3, "lora_alpha": 6, "target_modules": ALL_MODULES}
SMOLLM2_OPTIONS = {
    "r": 2,
    "lora_alpha": 4,
    "target_modules": ["q_proj", "v_proj", "down_proj"],
    "layers_to_transform": [0, 15, 29],
}


def make_examples(shapes, vocabulary: int):
    """[(prefix ids, row ids, labels)] of random ids; equal lengths of prefixes mean equal prefixes."""
    examples = []
    for index, (prefix, unlabelled, labelled) in enumerate(shapes):
        ids = torch.tensor(random_ids(81 + index, unlabelled + labelled + 1, 5, vocabulary))
        labels = ids[1:].clone()
        labels[: max(unlabelled - 1, 0)] = IGNORED
        prefix_ids = torch.tensor(random_ids(80, prefix, 5, vocabulary))
        examples.append((prefix_ids, ids[:-1], labels))
    return examples


def base_prefix(model, ids):
    with torch.no_grad(), model.disable_adapter():
        return model(input_ids=ids[None], use_cache=True).past_key_values


def summed_loss(model, prefix_ids, ids, labels):
    logits = model(input_ids=ids[None], past_key_values=base_prefix(model, prefix_ids)).logits[0]
    return torch.nn.functional.cross_entropy(logits, labels, ignore_index=IGNORED, reduction="sum")


def padded_loss(model, examples):
    """The same for examples of one prefix, in one batch that is padded on the right."""
    prefix_ids = examples[0][0]
    length = max(len(ids) for _, ids, _ in examples)
    ids = torch.zeros(len(examples), length, dtype=torch.long)
    labels = torch.full_like(ids, IGNORED)
    mask = torch.zeros(len(examples), len(prefix_ids) + length, dtype=torch.long)
    for row, (_, row_ids, row_labels) in enumerate(examples):
        ids[row, : len(row_ids)] = row_ids
        labels[row, : len(row_ids)] = row_labels
        mask[row, : len(prefix_ids) + len(row_ids)] = 1
    cache = base_prefix(model, prefix_ids)
    cache.batch_repeat_interleave(len(examples))
    positions = torch.arange(len(prefix_ids), len(prefix_ids) + length).expand(len(ids), -1)
    logits = model(
        input_ids=ids, position_ids=positions, attention_mask=mask, past_key_values=cache
    ).logits
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum"
    )


def gradients(model, loss):
    """{"<layer>.<module>.a" or ".b": gradient} after the backward pass of `loss`."""
    model.zero_grad()
    loss.backward()
    result = {}
    for name, parameter in model.named_parameters():
        if ".lora_" in name:
            parts = name.split(".")
            layer, at = parts[parts.index("layers") + 1], parts.index("default")
            result[f"{layer}.{parts[at - 2]}.{parts[at - 1][-1].lower()}"] = parameter.grad.clone()
    return result


def relative(left, right):
    return float((left - right).norm() / right.norm())


def weights(model):
    """The LoRA matrices by the names of their gradients."""
    model.zero_grad()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(".lora_" in name)
    return gradients(model, sum((p**2).sum() / 2 for n, p in model.named_parameters() if ".lora_" in n))


def make_case(name: str, base: str, model, shapes, bound: float = 1e-5) -> dict:
    """training/<name>.safetensors, and the entry of cases.json."""
    model.eval()
    tensors = {f"weight.{key}": value for key, value in weights(model).items()}
    examples = make_examples(shapes, model.config.vocab_size)
    labels = sum(int((e[2] != IGNORED).sum()) for e in examples)
    losses = [summed_loss(model, *example) for example in examples]
    found = gradients(model, sum(losses) / labels)
    if len({len(prefix) for prefix, _, _ in examples}) == 1:
        batch = gradients(model, padded_loss(model, examples) / labels)
        print(f"  {name}: 8 × 1 and 1 × 8 differ by",
              f"{max(relative(batch[key], found[key]) for key in found):.1e}")
        assert all(relative(batch[key], found[key]) < bound for key in found)
    tensors |= {f"gradient.{key}": value for key, value in found.items()}
    for index, (prefix, ids, example_labels) in enumerate(examples):
        tensors[f"prefix.{index}"] = prefix
        tensors[f"rows.{index}"] = ids
        tensors[f"labels.{index}"] = example_labels.masked_fill(example_labels == IGNORED, -1)
    tensors["losses"] = torch.stack(losses)
    save_tensors(path("training", f"{name}.safetensors"), tensors)
    lora = model.peft_config["default"]
    return {"file": f"{name}.safetensors", "model": base, "examples": len(examples),
            "rank": lora.r, "alpha": lora.lora_alpha, "modules": sorted(lora.target_modules)}


def fresh_adapter(folder, options: dict, seed: int):
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, bias="none", **options)
    model = get_peft_model(load_model(folder), config)
    set_random_weights(model, seed)
    return model


def smollm2_folder():
    return path("..", "..", "build", "models", "smollm2-135m-instruct", "config.json").parent


def make() -> None:
    with torch.enable_grad():
        cases = [
            make_case("tiny-llama", "tiny-llama", load_adapter("all-modules"), SAME_PREFIX),
            make_case("tiny-llama-prefixes", "tiny-llama", load_adapter("query-value"),
                      OTHER_PREFIXES),
            make_case("tiny-qwen3", "tiny-qwen3", load_adapter("qwen3"), SAME_PREFIX),
            make_case("tiny-llama-bias", "tiny-llama-bias",
                      fresh_adapter(MODELS / "tiny-llama-bias", BIAS_OPTIONS, 51), SAME_PREFIX),
            make_case("smollm2", "smollm2",
                      fresh_adapter(smollm2_folder(), SMOLLM2_OPTIONS, 52), SAME_PREFIX[:3],
                      bound=1e-4),
        ]
    save_json(path("training", "cases.json"), cases)


def check_export(folder: Path) -> None:
    """Compares peft's logits of an exported adapter with those that DocMem has written beside it."""
    from peft import PeftModel
    from safetensors.torch import load_file

    expected = load_file(folder / "logits.safetensors")
    base = load_model(MODELS / (folder / "base.txt").read_text().strip())
    model = PeftModel.from_pretrained(base, folder).eval()
    logits = model(input_ids=expected["ids"][None], use_cache=False).logits[0]
    with model.disable_adapter():
        plain = model(input_ids=expected["ids"][None], use_cache=False).logits[0]
    print(f"max |logit difference| {(logits - expected['logits']).abs().max():.1e};",
          f"the adapter itself moves logits by up to {(plain - logits).abs().max():.2f}")
    assert torch.allclose(logits, expected["logits"], atol=1e-3, rtol=0)


if __name__ == "__main__":
    set_up_torch()
    check_export(Path(sys.argv[1]))
