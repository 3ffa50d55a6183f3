#!/usr/bin/env python3
"""Trains the demo's adapter with peft, in the form in which DocMem serves it.

    pip install torch==2.11.0 transformers==5.2.0 peft==0.21.2 rouge-score==0.1.2
    demo/train_adapter.py --document build/demo/social-contract.txt

Layout of a training row, supervision SYNTHETIC_QA:

    [head]              written by the base model, without gradient (`disable_adapter()`)
    [bridge + question + tail][answer, end of turn]      adapter on, loss on the second part

The document itself isn't in the row: what the adapter learns is what is missing when its tokens
have been evicted. Questions, paraphrases and answers are those of demo/qa.json with `seen` true.

Afterwards the script asks every question of qa.json through transformers, with the base model and
with the adapter on from the bridge on, behind the whole document (ratio 0) and behind the head
alone (ratio 1), and prints mean ROUGE-L of trained and of new questions.
"""

import argparse
import copy
import json
import random
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from rouge_score.rouge_scorer import RougeScorer
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

FOLDER = Path(__file__).resolve().parent
MODEL = FOLDER.parent / "build/models/smollm2-135m-instruct"

# The prompt format `chatml`. Control tokens stand for themselves only here, never in user text.
SYSTEM = "Answer the question about the document briefly, using only the document."
HEAD = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\nDocument:\n"
BRIDGE = "\n\nQuestion: "
TAIL = "<|im_end|>\n<|im_start|>assistant\n"
END_OF_TURN = "<|im_end|>"

RANK = 3
ALPHA = 6
MODULES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
IGNORED = -100


class Layout:
    """Turns texts into token ids: head, document, bridge + question and answer, each alone."""

    def __init__(self, model_folder):
        self._template = Tokenizer.from_file(str(model_folder / "tokenizer.json"))
        plain = json.loads((model_folder / "tokenizer.json").read_text(encoding="utf-8"))
        plain["added_tokens"] = []
        self._user = Tokenizer.from_str(json.dumps(plain))

    def head(self):
        return self._template.encode(HEAD).ids

    def document(self, text):
        return self._user.encode(text).ids

    def prompt(self, question):
        return self._user.encode(BRIDGE + question).ids + self._template.encode(TAIL).ids

    def answer(self, text):
        return self._user.encode(text).ids + self._template.encode(END_OF_TURN).ids

    def end_of_turn(self):
        return self._template.token_to_id(END_OF_TURN)

    def decode(self, ids):
        return self._user.decode(ids, skip_special_tokens=False)


def base_prefix(model, ids):
    """KV cache of `ids`, written by the base model alone."""
    with torch.no_grad(), model.disable_adapter():
        return model(input_ids=torch.tensor([ids]), use_cache=True).past_key_values


def repeated(cache, rows):
    """A cache of its own whose `rows` rows all start as the one row of `cache`."""
    cache = copy.deepcopy(cache)
    cache.batch_repeat_interleave(rows)
    return cache


def training_rows(layout, questions):
    """[(prompt ids, answer ids)] of trained questions and their paraphrases."""
    rows = []
    for item in questions:
        for text in [item["question"], *item.get("paraphrases", [])] if item["seen"] else []:
            rows.append((layout.prompt(text), layout.answer(item["answer"])))
    return rows


def collate(rows, head_tokens):
    """Input ids, labels and position ids [B, T], attention mask [B, head + T]; padded right."""
    length = max(len(prompt) + len(answer) for prompt, answer in rows)
    ids = torch.zeros(len(rows), length, dtype=torch.long)
    labels = torch.full_like(ids, IGNORED)
    mask = torch.zeros(len(rows), head_tokens + length, dtype=torch.long)
    for row, (prompt, answer) in enumerate(rows):
        end = len(prompt) + len(answer)
        ids[row, :end] = torch.tensor(prompt + answer)
        labels[row, len(prompt) : end] = torch.tensor(answer)
        mask[row, : head_tokens + end] = 1
    positions = torch.arange(head_tokens, head_tokens + length).expand(len(rows), -1)
    return ids, labels, positions, mask


def loss_of(model, prefix, rows):
    """Mean loss over all label tokens of the batch; logits are made for these alone."""
    ids, labels, positions, mask = collate(rows, prefix.get_seq_length())
    llama = model.get_base_model()
    hidden = llama.model(
        input_ids=ids,
        position_ids=positions,
        attention_mask=mask,
        past_key_values=repeated(prefix, len(rows)),
        use_cache=True,
    ).last_hidden_state
    labels = labels[:, 1:]
    predicted = labels != IGNORED
    logits = llama.lm_head(hidden[:, :-1][predicted]).float()
    return torch.nn.functional.cross_entropy(logits, labels[predicted])


def train(model, layout, questions, options):
    prefix = base_prefix(model, layout.head())
    rows = training_rows(layout, questions)
    batches_per_epoch = -(-len(rows) // options.batch)
    optimizer = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad], lr=options.lr, weight_decay=0.0
    )
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, options.epochs * batches_per_epoch, eta_min=options.lr / 20
    )
    order = random.Random(options.seed)
    start = time.monotonic()
    for epoch in range(options.epochs):
        order.shuffle(rows)
        total = 0.0
        for first in range(0, len(rows), options.batch):
            loss = loss_of(model, prefix, rows[first : first + options.batch])
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            total += loss.item()
        seconds = time.monotonic() - start
        mean = total / batches_per_epoch
        print(f"epoch {epoch + 1:2}  loss {mean:.4f}  {seconds:5.0f} s", flush=True)


def save(model, folder):
    """Writes the adapter in bf16, as a PEFT folder of two files."""
    with tempfile.TemporaryDirectory() as temporary:
        model.save_pretrained(temporary)
        tensors = load_file(Path(temporary) / "adapter_model.safetensors")
        config = json.loads((Path(temporary) / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = MODEL.name
    config["target_modules"] = MODULES
    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: tensor.to(torch.bfloat16) for name, tensor in sorted(tensors.items())}
    path = folder / "adapter_model.safetensors"
    save_file(weights, path, metadata={"format": "pt"})
    path.chmod(0o644)
    text = json.dumps(config, indent=2, sort_keys=True) + "\n"
    (folder / "adapter_config.json").write_text(text)


@torch.no_grad()
def answer(model, layout, prefix, question, max_tokens):
    """Greedy answer behind `prefix`, which is left as it was."""
    cache = copy.deepcopy(prefix)
    ids, written = layout.prompt(question), []
    while len(written) < max_tokens:
        logits = model(input_ids=torch.tensor([ids]), past_key_values=cache, use_cache=True).logits
        token = int(logits[0, -1].argmax())
        if token == layout.end_of_turn():
            break
        written.append(token)
        ids = [token]
    return layout.decode(written)


def evaluate(model, layout, questions, document, options):
    """Mean ROUGE-L of trained and of new questions for both models at ratio 0 and 1."""
    scorer = RougeScorer(["rougeL"], use_stemmer=True)
    contexts = {"0": layout.head() + layout.document(document), "1": layout.head()}
    for ratio, context in contexts.items():
        prefix = base_prefix(model, context)
        for name in ("BASE", "adapter"):
            scores = {True: [], False: []}
            for item in questions:
                with model.disable_adapter() if name == "BASE" else nullcontext():
                    text = answer(model, layout, prefix, item["question"], options.max_tokens)
                score = 100 * scorer.score(item["answer"], text)["rougeL"].fmeasure
                scores[item["seen"]].append(score)
                if options.verbose:
                    print(f"  {score:5.1f}  {item['question']}\n         {text!r}")
            trained, new = (sum(scores[seen]) / len(scores[seen]) for seen in (True, False))
            print(f"{name:8} ratio {ratio}: trained {trained:5.1f}  new {new:5.1f}", flush=True)


def parse_options():
    parser = argparse.ArgumentParser(description="Trains the demo's adapter.")
    parser.add_argument("--document", type=Path, required=True, help="the text of the document")
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--output", type=Path, default=FOLDER / "adapter")
    parser.add_argument("--evaluate-only", action="store_true", help="use the adapter in --output")
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--max-tokens", type=int, default=40)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16",
                        help="of the base model; the adapter is trained in fp32")
    parser.add_argument("--verbose", action="store_true", help="print every answer")
    return parser.parse_args()


def main():
    options = parse_options()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    layout = Layout(options.model)
    questions = json.loads((FOLDER / "qa.json").read_text(encoding="utf-8"))["questions"]
    base = AutoModelForCausalLM.from_pretrained(
        options.model, dtype=getattr(torch, options.dtype)
    )
    if not options.evaluate_only:
        config = LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=MODULES, task_type="CAUSAL_LM")
        model = get_peft_model(base, config)
        train(model, layout, questions, options)
        save(model, options.output)
        base = model.unload()
    model = PeftModel.from_pretrained(base, options.output).eval()
    evaluate(model, layout, questions, options.document.read_text(encoding="utf-8"), options)


if __name__ == "__main__":
    main()
