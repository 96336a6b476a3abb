"""Judges chat templates beside transformers, and records what the tests compare.

Needs: pip install transformers jinja2. It is no part of the gate.

    python fx-lm/tests/templates.py --record
        writes fx-lm/tests/data/templates.json: templates of our own, and what transformers makes of them
    python fx-lm/tests/templates.py TEMPLATES DIR
        has transformers apply each .jinja file of the folder TEMPLATES (llama.cpp's sources have such a folder,
        models/templates) to conversations; then `cargo run --release -p fx-lm --example templates -- DIR` compares
"""

import json
import sys
from pathlib import Path

import jinja2
from transformers.utils import chat_template_utils as utils

TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "The weather <now> & \"later\" in a city.",
     "parameters": {"type": "object", "properties": {
         "city": {"type": "string", "description": "Name, e.g. Zürich or 東京"},
         "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
         "days": {"type": ["integer", "null"], "default": None, "minimum": 0.5}}, "required": ["city"]}}},
    {"type": "function", "function": {"name": "now", "description": "It's the time.",
     "parameters": {"type": "object", "properties": {}}}},
]


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def call(arguments, identity="abcdefghi", **more):
    function = {"name": "get_weather", "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": identity, "type": "function", "function": function}], **more}


def result(text, identity="abcdefghi"):
    return {"role": "tool", "name": "get_weather", "tool_call_id": identity, "content": text}


SYSTEM = {"role": "system", "content": "You are  a helpful assistant.\n"}
ARGUMENTS = {"city": "東京 \"<Tokyo>\" 'x'", "days": 3, "exact": True, "scale": 1.5, "tiny": 1e-7, "more": [1, None, {"a": []}]}
CONVERSATIONS = {
    "user": [user("Hello!")],
    "turns": [SYSTEM, user("  What is 1+1? "), assistant("It's 2.\n"), user("And 2+2?")],
    "unicode": [user("Ünïcödé 世界 مرحبا 👩‍👩‍👧‍👦 <|im_end|> {{ x }} </s>"), assistant("ß → \t\\n \"quoted\" 'q'"), user("\n")],
    "answered": [user("Hi"), assistant("Hello, what can I do?")],
    "tools": [SYSTEM, user("Weather?"), call(ARGUMENTS, content=""), result("{\"degrees\": 21.5}"), assistant("21.5°"),
              user("Thanks")],
    "tools_null": [user("Weather?"), call(ARGUMENTS, content=None), result("rain & <wind>")],
    "tools_text": [user("Weather?"), call(json.dumps(ARGUMENTS), content="I look."), result("rain")],
    "tools_two": [user("Weather?"), {"role": "assistant", "content": "", "tool_calls": [
        {"id": "call_0001", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Rome"}}},
        {"id": "call_0002", "type": "function", "function": {"name": "now", "arguments": {}}}]},
        result("sun", "call_0001"), result("noon", "call_0002")],
    "thought": [user("Why?"), assistant("Because.", reasoning_content="Let me think.\nSo."), user("Really?")],
    "tagged": [user("Why?"), assistant("<think>\nhm\n</think>\n\nBecause."), user("Really?"),
               assistant("<think>\nyes\n</think>\n\nYes.")],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "One"}, {"type": "text", "text": "two"}]}],
    "two_users": [user("One"), user("Two")],
    "assistant_first": [assistant("I begin"), user("Fine")],
    "system_last": [user("Hi"), SYSTEM],
    "strange": [{"role": "narrator", "content": "Once upon a time"}, user("Go on")],
    "empty": [],
    "no_content": [{"role": "user"}],
}
OPTIONS = [
    dict(add_generation_prompt=False), dict(add_generation_prompt=True),
    dict(add_generation_prompt=True, tools=True), dict(add_generation_prompt=True, enable_thinking=False),
    dict(add_generation_prompt=False, tools=True, thinking=True),
    dict(add_generation_prompt=True, documents=[{"title": "A", "text": "B", "doc_id": 1}]),
]
VARIABLES = dict(bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="<pad>")


def applied(template, messages, options):
    """What transformers makes of a conversation."""
    options = {**VARIABLES, **options}
    tools = options.pop("tools", None)
    documents = options.pop("documents", None)
    try:
        messages = utils._normalize_chat_messages(messages)
        text, _ = utils.render_jinja_template([messages], tools=TOOLS if tools else None, documents=documents,
                                              chat_template=template, **options)
        return dict(text=text[0])
    except jinja2.exceptions.TemplateError as error:
        # What a template raises is of that class itself; the others are Jinja's.
        return {"error" if type(error) is jinja2.exceptions.TemplateError else "undefined": str(error)}
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, RecursionError) as error:
        return dict(undefined=str(error))


OWN = {
    "turns": """{{- bos_token }}{%- for message in messages %}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) and messages[0].role != 'system' %}
        {{- raise_exception('Roles must alternate: ' + message.role) }}
    {%- endif %}
    {% generation %}{{ '<|' + message['role'] + '|>\\n' + message['content'] | trim + eos_token }}{%- endgeneration %}
{% endfor %}
{%- if add_generation_prompt %}<|assistant|>
{% endif %}
""",
    "values": """{% set ns = namespace(n=0, found=false) %}{% for m in messages %}{% if m.role == 'tool' %}{% continue %}
{% endif %}{% set ns.n = ns.n + 1 %}{% if loop.index > 4 %}{% break %}{% endif %}
{{ loop.index }} {{ m.content is string }} {{ m.content is none }} {{ m }} {{ m.items() | list | length }}
{% endfor %}
{{ ns.n }} {{ none }} {{ true }} {{ 1.0 }} {{ 1e20 }} {{ 1e-7 }} {{ [1, 'a', "it's", none, (1, 2)] }} {{ {'a': {'b': 1.5}} }}
{{ tools }}{{ missing }}{{ missing is defined }} {{ 7 // 2 }} {{ 7 / 2 }} {{ 2 ** 3 }} {{ -7 % 3 }}
{{ messages[-1:] | length }} {{ messages[::-1] | map(attribute='role') | join(',') }}
{{ messages | selectattr('role', 'equalto', 'user') | list | length }}
""",
    "methods": """{% macro show(x, y='d') %}[{{ x }}|{{ y }}]{% endmacro %}
{% for m in messages if m.content %}{% set c = m.content if m.content is string else m.content[0].text %}
{{ c.strip() }} {{ c.split(' ')[0] }} {{ c.startswith('He') }} {{ c.replace('l', 'L') }} {{ c.upper() }} {{ c | title }}
{{ c.rstrip('!') ~ '~' }} {{ show(c) }} {{ show(c, y=loop.last) }} {{ '%s-%d' | format(c, 3) }} {{ m.get('x', 'none') }}
{{ c[:3] }} {{ c | length }} {{ 'He' in c }} {{ c.split('</think>')[-1].lstrip('\\n') }} {{ m.keys() | list }}
{% endfor %}
""",
    "json": """{{ tools | tojson }}
{{ tools | tojson(indent=4) }}
{{ messages | tojson(indent=2) }}
{{ messages | tojson(ensure_ascii=True, sort_keys=True) }}
{{ {'b': [], 'a': {}} | tojson(separators=(',', ':')) }} {{ [1.0, 1e16, 0.1, -0.0, 12345678901234567890] | tojson }}
""",
}


def cases(templates):
    for name, template in templates.items():
        for label, messages in CONVERSATIONS.items():
            for options in OPTIONS:
                yield dict(template=name, label=label, messages=messages, options=options,
                           **applied(template, messages, options))


def record():
    found = [case for case in cases(OWN) if "documents" not in case["options"] and "enable_thinking" not in case["options"]]
    for case in found:
        del case["messages"]
    out = dict(templates=OWN, tools=TOOLS, variables=VARIABLES, conversations=CONVERSATIONS, cases=found)
    path = Path(__file__).parent / "data" / "templates.json"
    path.write_text(json.dumps(out, ensure_ascii=False) + "\n")
    print("cases", len(found), "bytes", path.stat().st_size)


if __name__ == "__main__":
    if sys.argv[1:] == ["--record"]:
        record()
    elif len(sys.argv) == 3:
        files = {file.name: file.read_text() for file in sorted(Path(sys.argv[1]).glob("*.jinja"))}
        found = list(cases(files))
        for case in found:
            del case["messages"]
        out = dict(templates=files, tools=TOOLS, variables=VARIABLES, conversations=CONVERSATIONS, cases=found)
        Path(sys.argv[2]).mkdir(parents=True, exist_ok=True)
        (Path(sys.argv[2]) / "templates.json").write_text(json.dumps(out))
        print("templates", len(files), "cases", len(found), {kind: sum(kind in case for case in found)
                                                              for kind in ["text", "error", "undefined"]})
    else:
        sys.exit(__doc__)
