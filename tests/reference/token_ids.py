"""Token ids of the hard strings with and without added tokens, decodings, a sweep over Unicode 14,
and hashes of the ids of 10,000 mixed strings.

"template" = encode(text, add_special_tokens=False) on the file as it is; "user" = the same on the file with
`added_tokens` emptied. Source: the tokenizers library.
"""

import json
import random

import numpy
import torch
import xxhash
from tokenizers import Tokenizer

import tokenizer_files
from common import ROOT, path, save_json, save_tensors
from hard_strings import all_strings, assigned, kinds, mixed_strings, ranges

NAMES = ["smollm2-like", "llama3-like", "qwen-like", "flags"]
SMOLLM2 = ROOT.parent.parent / "build/models/smollm2-135m-instruct/tokenizer.json"
SWEEP_BLOCK = 4096
MIXED = {"seed": 83, "count": 10_000, "block": 100}


def without_added_tokens(text: str) -> str:
    tree = json.loads(text)
    tree["added_tokens"] = []
    if tree["post_processor"]:
        tree["post_processor"] = None
    return json.dumps(tree)


def encode(tokenizer: Tokenizer, strings: list[str]) -> list[list[int]]:
    return [encoding.ids for encoding in tokenizer.encode_batch(strings, add_special_tokens=False)]


def packed(name: str, lists: list[list[int]]) -> dict[str, torch.Tensor]:
    """`name`: all lists behind one another, int16 where they fit; `name`_ends [count] int32: where each ends."""
    lengths = torch.tensor([len(ids) for ids in lists])
    flat = torch.tensor([i for ids in lists for i in ids])
    dtype = torch.int16 if int(flat.max()) < 2**15 else torch.int32
    return {name: flat.to(dtype), f"{name}_ends": lengths.cumsum(0).to(torch.int32)}


def hashed(lists: list[list[int]]) -> str:
    """XXH3-64 of the ids of all lists as little-endian int32."""
    flat = numpy.array([i for ids in lists for i in ids], dtype="<i4")
    return xxhash.xxh3_64(flat.tobytes()).hexdigest()


def mixed(tokenizer: Tokenizer) -> list[str]:
    """The hash of each block of the mixed strings."""
    ids = encode(tokenizer, mixed_strings(MIXED["seed"], MIXED["count"]))
    block = MIXED["block"]
    return [hashed(ids[begin : begin + block]) for begin in range(0, len(ids), block)]


def sweep(tokenizer: Tokenizer) -> dict[str, str]:
    """The hash of each block's assigned code points in one fixed context."""
    blocks = {}
    for point in assigned():
        blocks.setdefault(point // SWEEP_BLOCK, []).append(chr(point))
    result = {}
    for block, characters in blocks.items():
        ids = encode(tokenizer, [f"a{c}b {c}{c} 1{c}\n{c}" for c in characters])
        result[str(block * SWEEP_BLOCK)] = hashed(ids)
    return result


def decodings(tokenizer: Tokenizer, seed: int) -> list[dict]:
    """Random id lists, often invalid UTF-8 in between, with what the library decodes them to."""
    rng = random.Random(seed)
    size = tokenizer.get_vocab_size()
    result = []
    for _ in range(60):
        limit = rng.choice([270, size, size])
        ids = [rng.randrange(limit) for _ in range(rng.randrange(1, 16))]
        result.append(
            {
                "ids": ids,
                "text": tokenizer.decode(ids, skip_special_tokens=False),
                "text_without_special": tokenizer.decode(ids, skip_special_tokens=True),
            }
        )
    return result


def make_ids(name: str, text: str, strings: list[str]) -> None:
    """ids/<name>.safetensors: template, user (packed, in the order of strings.json), differ [count]."""
    tokenizer, bare = Tokenizer.from_str(text), Tokenizer.from_str(without_added_tokens(text))
    template, user = encode(tokenizer, strings), encode(bare, strings)
    differ = [index for index, (a, b) in enumerate(zip(template, user)) if a != b]
    tensors = packed("template", template) | packed("user", [user[i] for i in differ])
    tensors["differ"] = torch.tensor(differ, dtype=torch.int32)
    save_tensors(path("tokenizers", "ids", f"{name}.safetensors"), tensors)
    texts = {
        str(i): tokenizer.decode(ids, skip_special_tokens=False) for i, ids in enumerate(template)
    }
    save_json(
        path("tokenizers", "ids", f"{name}.json"),
        {
            "decoded": {i: t for i, t in texts.items() if t != strings[int(i)]},
            "mixed": {"template": mixed(tokenizer), "user": mixed(bare)},
            "random_decodings": decodings(tokenizer, 82),
            "sweep": sweep(tokenizer),
        },
        compact=True,
    )


def make() -> None:
    tokenizer_files.make()
    hard, drawn = all_strings()
    save_json(
        path("tokenizers", "strings.json"),
        {"hard": len(hard), "strings": hard + drawn},
        compact=True,
    )
    save_json(path("tokenizers", "assigned.json"), ranges(assigned()), compact=True)
    save_json(path("tokenizers", "mixed.json"), MIXED | {"kinds": kinds()}, compact=True)
    for name in NAMES:
        make_ids(name, path("tokenizers", f"{name}.json").read_text(encoding="utf-8"), hard + drawn)
    if SMOLLM2.exists():
        make_ids("smollm2", SMOLLM2.read_text(encoding="utf-8"), hard + drawn)
    else:
        print(f"{SMOLLM2} is missing: ids of SmolLM2 left as they are")
