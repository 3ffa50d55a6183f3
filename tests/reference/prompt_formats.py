"""Prompts of one system and one user message, rendered from jinja templates by transformers.

`{document}` and `{question}` stand in the user message, so that head, bridge and tail can be cut out.
"""

import json

from transformers.utils.chat_template_utils import render_jinja_template

import chat_templates
from common import path, save_json
from smollm2 import FOLDER

SYSTEM = "{system}"
USER = "{document}{bridge}{question}"
ANSWER = "{answer}"
CASES = {
    "chatml": (chat_templates.CHATML, {}),
    "chatml-empty-think": (chat_templates.QWEN3, {"enable_thinking": False}),
    "llama3": (chat_templates.LLAMA3, {"bos_token": "<|begin_of_text|>"}),
}


def render(template: str, messages: list[dict], prompt: bool, **options) -> str:
    return render_jinja_template(
        [messages], chat_template=template, add_generation_prompt=prompt, **options
    )[0][0]


def case(template: str, options: dict) -> dict:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}]
    answered = messages + [{"role": "assistant", "content": ANSWER}]
    return {
        "prompt": render(template, messages, True, **options),
        "answered": render(template, answered, False, **options),
        "second_question": render(
            template, answered + [{"role": "user", "content": "{second}"}], True, **options
        ),
    }


def make() -> None:
    cases = {name: case(*arguments) for name, arguments in CASES.items()}
    if (FOLDER / "tokenizer_config.json").exists():
        published = json.loads((FOLDER / "tokenizer_config.json").read_text())["chat_template"]
        assert case(published, {}) == cases["chatml"]
    save_json(path("prompts", "prompts.json"), cases)
