//! Pages as an HTML parser sees them.

use fx_core::draw::{Chart, ColorBy, Column, DrawOptions, Page};
use fx_core::ir::Graph;
use fx_core::operator;
use fx_core::passes::{DeadCode, PassManager};
use fx_core::prelude::*;
use html5gum::{Token, Tokenizer};

use crate::draw::net;

const HOSTILE: [&str; 6] = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\" onload=\"alert(1)",
    "'; alert(1); //\u{2028}",
    "<!--<script>",
    "&lt;b&gt; \\u003c ${alert(1)} \u{0}\u{7}",
];

/// What a parser finds of a page.
#[derive(Debug, Default)]
struct Parsed {
    scripts: usize,
    tags: Vec<String>,
    policy: String,
    /// Attributes that run or load something.
    active: Vec<String>,
}

fn parsed(html: &str) -> Parsed {
    let mut found = Parsed::default();
    let mut tokens = Tokenizer::new(html);
    tokens.set_state(html5gum::State::Data);
    for token in tokens.flatten() {
        let Token::StartTag(tag) = token else {
            continue;
        };
        let name = String::from_utf8_lossy(&tag.name).to_string();
        found.scripts += usize::from(name == "script");
        let attribute = |name: &[u8]| {
            let value = tag.attributes.get(name)?;
            Some(String::from_utf8_lossy(value).to_string())
        };
        if attribute(b"http-equiv").as_deref() == Some("Content-Security-Policy") {
            found.policy = attribute(b"content").unwrap_or_default();
        }
        for key in tag.attributes.keys() {
            let key = String::from_utf8_lossy(key).to_string();
            if key.starts_with("on") || ["src", "href", "srcset", "data", "action"].contains(&&*key)
            {
                found.active.push(format!("{name} {key}"));
            }
        }
        found.tags.push(name);
    }
    found
}

/// A graph in which everything that a user can name is hostile.
fn hostile() -> Result<GraphModule> {
    let mut graph = Graph::new();
    let mut value = graph.placeholder("x")?;
    for name in HOSTILE {
        value = graph.call_function(operator::add, (value, name), ())?;
        graph.node_mut(value)?.rename(name);
        value = graph
            .get_attr(name)
            .and_then(|path| graph.call_function(operator::add, (value, path), ()))?;
    }
    graph.output(value)?;
    let mut root = fx_core::module::Attributes::default();
    for name in HOSTILE {
        let value = fx_core::value::IntoValue::into_value(1.0);
        root.tensors
            .insert(name.into(), (fx_core::module::TensorKind::Buffer, value));
    }
    GraphModule::new(root, graph, HOSTILE[0])
}

#[test]
fn a_page_has_one_script_and_loads_nothing() -> Result<()> {
    let gm = net(2)?;
    let plain = parsed(&gm.html(&Page::new())?);
    assert_eq!((plain.scripts, plain.active.as_slice()), (1, [].as_slice()));
    assert!(
        plain.policy.starts_with("default-src 'none'"),
        "{}",
        plain.policy
    );

    let mut page = Page::new().title(HOSTILE[0]).table(HOSTILE.join("\n"));
    for name in HOSTILE {
        let column = Column::new(name, |node| Some(node.num_users() as f64));
        page = page
            .column(column.unit(name).chart(Chart::Heat))
            .color_by(name, ColorBy::label(move |_| Some(name.into())));
    }
    let gm = hostile()?;
    let html = gm.html(&page)?;
    let found = parsed(&html);
    assert_eq!(found.tags, plain.tags);
    assert_eq!((found.scripts, found.active.as_slice()), (1, [].as_slice()));
    assert_eq!(found.policy, plain.policy);
    let diff = parsed(&net(1)?.diff(&gm).html()?);
    assert_eq!((diff.tags, diff.active), (plain.tags, plain.active));
    Ok(())
}

#[test]
fn hostile_names_are_texts_in_the_other_formats() -> Result<()> {
    let gm = hostile()?;
    let drawing = gm.draw(&DrawOptions::new().title(HOSTILE[0]))?;
    let svg = drawing.svg();
    let document = roxmltree::Document::parse(&svg).map_err(Error::other)?;
    let known = [
        "svg", "title", "style", "defs", "marker", "path", "rect", "text", "g", "circle",
    ];
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        let name = node.tag_name().name();
        assert!(known.contains(&name), "{name}");
        assert!(
            node.attributes()
                .all(|a| !a.name().starts_with("on") && !a.name().contains("href"))
        );
    }
    // Every quote within a label is escaped, and no label runs over a line.
    for line in drawing.dot().lines().filter(|line| line.contains("label=")) {
        let quotes = line.replace("\\\\", "").replace("\\\"", "");
        assert_eq!(quotes.matches('"').count() % 2, 0, "{line}");
    }
    for line in drawing.mermaid().lines() {
        assert!(
            !line.contains('<') || line.matches('<').count() == line.matches("<br/>").count(),
            "{line}"
        );
        assert!(!line.contains("script>"), "{line}");
    }
    Ok(())
}

#[test]
fn a_page_per_pass_and_an_index() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("fx_pages_{}", std::process::id()));
    let mut gm = symbolic_trace(traced!(|x: Float| {
        let _unused = (x * 2.0)?;
        x + 1.0
    }))?;
    let nothing = fx_core::passes::pass_fn(HOSTILE[1], |_| Ok(false));
    PassManager::new()
        .pass(DeadCode)
        .pass(nothing)
        .record_html(&folder)
        .run(&mut gm)?;
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).map_err(Error::other);
    let index = parsed(&read("index.html")?);
    assert_eq!(
        (index.scripts, index.active),
        (0, vec!["a href".to_string(); 3])
    );
    for page in ["000.html", "001.html", "002.html"] {
        assert_eq!(parsed(&read(page)?).scripts, 1);
    }
    assert!(read("001.html")?.contains("- %mul = call_function"));
    std::fs::remove_dir_all(&folder).map_err(Error::other)
}

#[test]
fn what_is_shown_of_a_node_is_in_the_page() -> Result<()> {
    let gm = net(1)?;
    let html = gm.html(&Page::new().open("blocks.0"))?;
    for text in [
        "\"blocks\"",
        "\"otherwise\"",
        "call_function[fx_core::operator::add]",
        "draw.rs\"",
    ] {
        assert!(html.contains(text), "{text}");
    }
    let profile = gm.profile(2, 1.5)?;
    let html = gm.html(&Page::new().column(Column::profile(&profile)))?;
    assert!(html.contains("chart:\"flame\""));
    assert!(gm.html(&Page::new().open("nowhere")).is_err());
    Ok(())
}
