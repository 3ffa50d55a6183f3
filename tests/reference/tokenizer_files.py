"""Small tokenizer.json files built like those of SmolLM2, Llama 3 and Qwen3, and one with every flag.

The two regular expressions are those of the published Llama 3 and Qwen3 files (they differ in how many digits
stand together): agreement with them is what the goldens test.
"""

import json

from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from common import path
from synthetic_text import paragraphs

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
LLAMA3_REGEX = CONTRACTIONS + r"\p{N}{1,3}" + REST
QWEN_REGEX = CONTRACTIONS + r"\p{N}" + REST

# Whole words in the vocabulary that no merge reaches: found only with ignore_merges.
UNREACHABLE = ["docmemory", "\u0120unreachable"]


def special(*contents: str) -> list[AddedToken]:
    return [AddedToken(content, special=True, normalized=False) for content in contents]


def plain(*contents: str) -> list[AddedToken]:
    return [AddedToken(content, special=False, normalized=False) for content in contents]


SMOLLM2_TOKENS = special(
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<empty_output>"
)
LLAMA3_TOKENS = special(
    "<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"
)
QWEN_TOKENS = special("<|endoftext|>", "<|im_start|>", "<|im_end|>") + plain(
    "<tool_call>", "<think>", "</think>"
)
FLAG_TOKENS = special("<|im_start|>", "<|im_end|>") + [
    AddedToken("<left>", lstrip=True, normalized=False, special=True),
    AddedToken("<right>", rstrip=True, normalized=False, special=True),
    AddedToken("<both>", lstrip=True, rstrip=True, normalized=False, special=False),
    AddedToken("<word>", single_word=True, normalized=False, special=False),
    AddedToken("<caf\u00e9>", normalized=True, special=False),
    AddedToken("harbour", single_word=True, normalized=True, special=False),
]


def split(regex: str):
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(regex), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def digits():
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )


def trained(
    pre_tokenizer, vocab_size: int, first: list[AddedToken], nfc: bool, ignore_merges: bool
) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if nfc:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=first,
        show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    tokenizer.train_from_iterator(paragraphs(seed=2, count=500), trainer)
    return tokenizer


def finish(name: str, tokenizer: Tokenizer, added: list[AddedToken], merges_as_text: bool) -> None:
    """Adds the unreachable words to the vocabulary, then the added tokens behind it, and saves."""
    tree = json.loads(tokenizer.to_str())
    for word in UNREACHABLE:
        assert word not in tree["model"]["vocab"]
        tree["model"]["vocab"][word] = len(tree["model"]["vocab"])
    tokenizer = Tokenizer.from_str(json.dumps(tree))
    tokenizer.add_tokens(added)
    tree = json.loads(tokenizer.to_str())
    if merges_as_text:
        tree["model"]["merges"] = [" ".join(pair) for pair in tree["model"]["merges"]]
    path("tokenizers", f"{name}.json").write_text(
        json.dumps(tree, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8"
    )


def llama3() -> Tokenizer:
    tokenizer = trained(split(LLAMA3_REGEX), 1500, [], nfc=False, ignore_merges=True)
    bos = tokenizer.get_vocab_size() + len(UNREACHABLE)
    tokenizer.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single="<|begin_of_text|> $A",
                pair="<|begin_of_text|> $A <|begin_of_text|> $B",
                special_tokens=[("<|begin_of_text|>", bos)],
            ),
        ]
    )
    return tokenizer


def qwen(vocab_size: int) -> Tokenizer:
    tokenizer = trained(split(QWEN_REGEX), vocab_size, [], nfc=True, ignore_merges=False)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def make() -> None:
    smollm2 = trained(digits(), 1000, SMOLLM2_TOKENS, nfc=False, ignore_merges=False)
    finish("smollm2-like", smollm2, [], merges_as_text=True)
    finish("llama3-like", llama3(), LLAMA3_TOKENS, merges_as_text=True)
    finish("qwen-like", qwen(1500), QWEN_TOKENS, merges_as_text=False)
    finish("flags", qwen(600), FLAG_TOKENS, merges_as_text=False)
