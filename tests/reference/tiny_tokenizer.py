"""Tokenizers of the tiny models: byte-level BPE with SmolLM2's pre-tokenizer.

Ids start with the added tokens, then come 256 bytes, then merges.
"""

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

import chat_templates
from common import save_json
from synthetic_text import paragraphs

# Per dialect: special tokens by id, added tokens that are not special, template, BOS, EOS.
DIALECTS = {
    "chatml": (
        ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        [],
        chat_templates.CHATML,
        "<|im_start|>",
        "<|im_end|>",
    ),
    "llama3": (
        [
            "<|begin_of_text|>",
            "<|end_of_text|>",
            "<|eot_id|>",
            "<|start_header_id|>",
            "<|end_header_id|>",
        ],
        [],
        chat_templates.LLAMA3,
        "<|begin_of_text|>",
        "<|eot_id|>",
    ),
    "qwen3": (
        ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        ["<think>", "</think>"],
        chat_templates.QWEN3,
        None,
        "<|im_end|>",
    ),
}


def write(folder: Path, dialect: str, vocab_size: int, positions: int) -> None:
    """Writes tokenizer.json and tokenizer_config.json with exactly `vocab_size` ids."""
    special, plain, template, bos, eos = DIALECTS[dialect]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=special + plain,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator(paragraphs(seed=1, count=400), trainer)
    target = folder / "tokenizer.json"
    tokenizer.save(str(target), pretty=False)
    mark_not_special(target, plain)
    assert tokenizer.get_vocab_size() == vocab_size
    save_json(
        folder / "tokenizer_config.json",
        {
            "add_bos_token": False,
            "bos_token": bos,
            "chat_template": template,
            "clean_up_tokenization_spaces": False,
            "eos_token": eos,
            "model_max_length": positions,
            "pad_token": eos,
            "tokenizer_class": "PreTrainedTokenizerFast",
            "unk_token": None,
        },
    )


def mark_not_special(target: Path, contents: list[str]) -> None:
    """Clears the `special` flag of the named added tokens, as in Qwen3's file."""
    import json

    tree = json.loads(target.read_text(encoding="utf-8"))
    for token in tree["added_tokens"]:
        token["special"] = token["content"] not in contents
    target.write_text(
        json.dumps(tree, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8"
    )
