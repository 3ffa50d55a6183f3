"""LoRA folders written by peft and the logits of the models that wear them.

Formula (peft LoraLayer): y = W x + scale * B (A x); A [r, in], B [out, r]; scale = alpha / r, or
alpha / sqrt(r) with rsLoRA, per module where rank_pattern and alpha_pattern name it.
"""

import json

import torch

from common import (
    MODELS,
    generator,
    load_model,
    path,
    random_ids,
    save_json,
    save_tensors,
    save_weights,
)

ALL_MODULES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]

ADAPTERS = {
    "all-modules": ("tiny-llama", {"r": 4, "lora_alpha": 8, "target_modules": ALL_MODULES}),
    "query-value": (
        "tiny-llama",
        {"r": 8, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]},
    ),
    "patterns": (
        "tiny-llama",
        {
            "r": 4,
            "lora_alpha": 4,
            "target_modules": ALL_MODULES,
            "rank_pattern": {"down_proj": 12, "layers.1.self_attn.q_proj": 2},
            "alpha_pattern": {"down_proj": 6, "self_attn.k_proj": 16},
        },
    ),
    "rslora": (
        "tiny-llama",
        {
            "r": 9,
            "lora_alpha": 3,
            "target_modules": ["q_proj", "o_proj", "up_proj"],
            "use_rslora": True,
        },
    ),
    "one-layer": (
        "tiny-llama",
        {
            "r": 4,
            "lora_alpha": 8,
            "target_modules": ["q_proj", "k_proj", "v_proj"],
            "layers_to_transform": [1],
        },
    ),
    "regex-bf16": (
        "tiny-llama",
        {
            "r": 4,
            "lora_alpha": 8,
            "target_modules": r".*\.(gate|up|down)_proj",
        },
    ),
    "all-linear": ("tiny-llama-rope3", {"r": 3, "lora_alpha": 6, "target_modules": "all-linear"}),
    "qwen3": ("tiny-qwen3", {"r": 4, "lora_alpha": 8, "target_modules": ALL_MODULES}),
}


def set_random_weights(model, seed: int) -> None:
    """A: std 1/sqrt(in); B: std 0.4/sqrt(r); in the order of sorted parameter names."""
    source = generator(seed)
    for name, parameter in sorted(model.named_parameters()):
        if ".lora_A." in name:
            parameter.data = (
                torch.randn(parameter.shape, generator=source) / parameter.shape[1] ** 0.5
            )
        elif ".lora_B." in name:
            parameter.data = (
                torch.randn(parameter.shape, generator=source) * 0.4 / parameter.shape[1] ** 0.5
            )


def round_to_bf16(model) -> None:
    for name, parameter in model.named_parameters():
        if ".lora_" in name:
            parameter.data = parameter.data.to(torch.bfloat16).to(torch.float32)


def rewrite(folder, base: str, options: dict, bf16: bool) -> None:
    """Sorts what peft writes in the order of a set, names the base without a path, keeps `all-linear`."""
    from safetensors.torch import load_file

    config_file = folder / "adapter_config.json"
    config = json.loads(config_file.read_text())
    config["base_model_name_or_path"] = base
    modules = options["target_modules"]
    config["target_modules"] = modules if isinstance(modules, str) else sorted(modules)
    save_json(config_file, config)
    weights_file = folder / "adapter_model.safetensors"
    tensors = load_file(weights_file)
    if bf16:
        tensors = {name: t.to(torch.bfloat16) for name, t in tensors.items()}
    save_weights(weights_file, tensors)
    (folder / "README.md").unlink(missing_ok=True)


def make_adapter(name: str, base: str, options: dict, seed: int) -> None:
    """adapters/<name>/ and adapters/<name>.safetensors: ids [16], logits [16, V]."""
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, bias="none", **options)
    model = get_peft_model(load_model(MODELS / base), config).eval()
    set_random_weights(model, seed)
    if name == "regex-bf16":
        round_to_bf16(model)
    folder = path("adapters", name, "adapter_config.json").parent
    model.save_pretrained(folder)
    rewrite(folder, base, options, name == "regex-bf16")
    ids = torch.tensor(random_ids(31, 16, 3, model.config.vocab_size))
    logits = load_adapter(name)(input_ids=ids[None], use_cache=False).logits[0]
    difference = (logits - load_model(MODELS / base)(input_ids=ids[None]).logits[0]).abs().mean()
    assert difference > 0.05, (name, difference)
    save_tensors(path("adapters", f"{name}.safetensors"), {"ids": ids, "logits": logits})


def load_adapter(name: str):
    """The peft model from the committed folder, in fp32."""
    from peft import PeftModel

    return PeftModel.from_pretrained(
        load_model(MODELS / ADAPTERS[name][0]), path("adapters", name)
    ).eval()


def make() -> None:
    for index, (name, (base, options)) in enumerate(ADAPTERS.items()):
        make_adapter(name, base, options, 40 + index)
    save_json(
        path("adapters", "adapters.json"), {name: base for name, (base, _) in ADAPTERS.items()}
    )
