#!/usr/bin/env python3
"""Works out a fleet of replicas: bytes of a document, and where its memories are when it is asked.

    fleet_size.py POLICIES.csv [OPTIONS]      POLICIES.csv: of unload_policy_simulator

Bytes follow from the model's shape; hit rates come from the simulator; what a machine reads in a
second is an option, and so is what a replica answers in one."""

import argparse
import csv
import json
import math
from pathlib import Path

SHAPES = Path(__file__).resolve().parents[1] / "tests/reference/shapes"
TIERS = ("device", "host", "disk")
HEAD_TOKENS = 24  # the prompt before the document, which is never evicted (chatml)


def cache_bytes(config, tokens):
    """Of the kept tokens: keys and values in bfloat16, and a position for each."""
    heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    return (config["num_hidden_layers"] * config["num_key_value_heads"] * tokens
            * (2 * 2 * head_dim + 4))


def adapter_bytes(config, rank):
    """Of an adapter on all seven modules, in bfloat16."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    head_dim = config.get("head_dim") or hidden // config["num_attention_heads"]
    query = config["num_attention_heads"] * head_dim
    key = config["num_key_value_heads"] * head_dim
    sides = 2 * (hidden + query) + 2 * (hidden + key) + 3 * (hidden + inner)
    return 2 * rank * sides * config["num_hidden_layers"]


def hit_rates(file, trace, policy="greedy-dual-size"):
    """(budget ÷ all bytes, part of the look-ups that find their memory there), ascending."""
    found = sorted((float(row["budget_share"]), float(row["hit_rate"]))
                   for row in csv.DictReader(file)
                   if row["trace"] == trace and row["policy"] == policy)
    if not found:
        raise SystemExit(f"no line of {policy} and '{trace}' in the simulator's table")
    return found


def hit_rate(points, share):
    """Between two points by the logarithm of the budget, below them by the power of the first two;
    all is found where all has room."""
    if share >= 1:
        return 1.0
    points = [*points, (1.0, 1.0)]
    (low, first), (high, second) = points[:2]
    if share <= low:
        return first * (share / low) ** (math.log(second / first) / math.log(high / low))
    for (low, before), (high, after) in zip(points, points[1:]):
        if share <= high:
            return before + (after - before) * math.log(share / low) / math.log(high / low)
    raise AssertionError(share)


def found_in(points, total, replicas, budgets):
    """Part of the questions that find their memory in each tier first; the rest is in the store.

    Each document belongs to one replica, so budgets add up."""
    rates = [hit_rate(points, replicas * budget / total) for budget in budgets]
    parts, before = [], 0.0
    for rate in rates:
        parts.append(max(rate, before) - before)
        before = max(rate, before)
    return [*parts, 1 - before]


def parse(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("policies", type=Path)
    add("--model", default="llama-3.1-8b-instruct", help="a folder of tests/reference/shapes")
    add("--documents", type=float, default=1e6)
    add("--tokens", type=float, default=2000, help="of a document")
    add("--ratio", type=float, default=0.9, help="of tokens that are evicted")
    add("--rank", type=int, default=16, help="of the adapters")
    add("--adapters", type=float, default=1.0, help="part of the documents that has one")
    add("--trace", default="zipf 0.9")
    add("--questions", type=float, default=50, help="a second, of the whole fleet, at its peak")
    add("--replicas", type=int, nargs="+", default=[4, 8, 16, 32])
    for tier, gigabytes, speed in zip(TIERS, (30, 256, 3000), (None, 20, 2.5)):
        add(f"--{tier}", type=float, default=gigabytes, metavar="GB", help="budget of a replica")
        if speed:
            add(f"--{tier}-speed", type=float, default=speed, metavar="GB/s",
                help=f"from there into the {'device' if tier == 'host' else 'host'}")
    add("--store-speed", type=float, default=1.25, metavar="GB/s", help="from the object store")
    return parser.parse_args(arguments)


def main():
    options = parse()
    config = json.loads((SHAPES / options.model / "config.json").read_text())
    kept = HEAD_TOKENS + (1 - options.ratio) * options.tokens
    cache, adapter = cache_bytes(config, kept), adapter_bytes(config, options.rank)
    document = cache + options.adapters * adapter
    total = document * options.documents
    full = cache_bytes(config, HEAD_TOKENS + options.tokens)
    print(f"{options.model}: a cache of {cache / 1e6:.1f} MB (nothing evicted: {full / 1e6:.0f} MB), "
          f"an adapter of rank {options.rank} of {adapter / 1e6:.1f} MB; "
          f"{document / 1e6:.1f} MB a document, {total / 1e12:.1f} TB in all\n")
    with options.policies.open() as file:
        points = hit_rates(file, options.trace)
    budgets = [getattr(options, tier) * 1e9 for tier in TIERS]
    loading = [0, document / (options.host_speed * 1e9), document / (options.disk_speed * 1e9),
               document / (options.store_speed * 1e9)]
    print("| replicas | on the device | in main memory | on disk | in the store | mean load "
          "| from the store, each replica |\n| --- | --- | --- | --- | --- | --- | --- |")
    for replicas in options.replicas:
        parts = found_in(points, total, replicas, budgets)
        mean = sum(part * seconds for part, seconds in zip(parts, loading))
        fetched = options.questions / replicas * parts[-1] * document
        print(f"| {replicas} | " + " | ".join(f"{100 * part:.0f} %" for part in parts)
              + f" | {1e3 * mean:.0f} ms | {fetched / 1e6:.0f} MB/s |")


if __name__ == "__main__":
    main()
