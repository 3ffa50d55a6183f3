#!/usr/bin/env python3
"""Makes every golden file below tests/reference again, or only the groups that are named.

python3 -m venv ref && ref/bin/pip install -r requirements.txt && ref/bin/python make_goldens.py
"""

import argparse
import importlib

from common import set_up_torch

GROUPS = [
    "tiny_models",
    "logits",
    "adapters",
    "compression",
    "answers",
    "score",
    "profiles",
    "training",
    "shapes",
    "token_ids",
    "philox",
    "smollm2",
    "prompt_formats",
    "rouge",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", help=f"of {', '.join(GROUPS)}; all when none is named")
    arguments = parser.parse_args()
    set_up_torch()
    for name in arguments.groups or GROUPS:
        print(name, flush=True)
        importlib.import_module(name).make()


if __name__ == "__main__":
    main()
