//! Chat templates give what transformers gives, which `templates.py` recorded, and end.

use std::fs;

use fx_lm::{ChatOptions, ChatTemplate, Message};
use serde_json::Value;

use super::cases::compared;
use super::files::data;

#[test]
fn texts_are_those_of_transformers() {
    let file = fs::read(data("templates.json")).expect("the file is recorded");
    let file: Value = serde_json::from_slice(&file).expect("the file is JSON");
    let mut problems = Vec::new();
    for case in file["cases"].as_array().expect("cases") {
        let name = case["template"].as_str().expect("a name");
        let template = file["templates"][name].as_str().expect("a template");
        let template = ChatTemplate::new(template).expect("a template");
        if let Err(problem) = compared(&template, &file, case) {
            problems.push(format!(
                "{name} {} {}: {problem}",
                case["label"], case["options"]
            ));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// What is said of a template.
fn refused(source: &str) -> String {
    let messages = [Message::new("user", "Hi")];
    let text = ChatTemplate::new(source)
        .and_then(|template| template.apply(&messages, &ChatOptions::new()));
    match text {
        Ok(text) => panic!("{source} gives {} bytes", text.len()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn templates_that_fail_say_where_and_never_run_on() {
    let cases = [
        ("{% for x in %}", "chat template:1"),
        ("a\n{{ messages[0].content | nothing }}", "nothing"),
        ("{{ messages[0].missing.more }}", "undefined"),
        ("{% include 'x' %}", "x"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", ""),
        (
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            "too long",
        ),
        (
            "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | tojson }}",
            "",
        ),
        (
            "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}",
            "",
        ),
        (
            "{{ raise_exception('It\\'s no use: ' ~ messages[0].role) }}",
            "It's no use: user",
        ),
        ("{{ strftime_now('%!') }}", ""),
        ("{{ messages | tojson(nothing=1) }}", "nothing"),
    ];
    for (source, part) in cases {
        let error = refused(source);
        assert!(error.contains(part), "{source}: {error}");
    }
    let raised = refused("{{ raise_exception('Exactly this') }}");
    assert_eq!(raised, "Exactly this");
}

#[test]
fn messages_are_lists_of_objects() {
    let template = ChatTemplate::new("{{ messages }}").expect("a template");
    let options = ChatOptions::new();
    assert!(template.apply("text", &options).is_err());
    assert!(template.apply(&["text"], &options).is_err());
    let message = serde_json::json!([{"role": "assistant", "content": null, "thinking": "hm"}]);
    let text = template.apply(&message, &options).expect("a text");
    assert_eq!(
        text,
        "[{'thinking': 'hm', 'role': 'assistant', 'reasoning_content': 'hm'}]"
    );
    let now = ChatTemplate::new("{{ strftime_now('%Y-%m-%d') }}").expect("a template");
    assert_eq!(now.apply(&message, &options).expect("a text").len(), 10);
}
