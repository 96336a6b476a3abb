//! Parsing what a graph prints: round trips, and the errors of malformed text.

#[path = "parse/random.rs"]
mod random;

use fx_core::ErrorKind;
use fx_core::ir::{Argument, Graph, Op};
use fx_core::prelude::*;

/// Every node's name, op, type and arguments, with nodes by their names.
fn facts(graph: &Graph) -> String {
    let by_name = |arg: &Argument| {
        arg.map_nodes(&mut |id| match graph.node(id) {
            Ok(node) => Argument::from(format!("node {}", node.name())),
            Err(error) => Argument::from(error.to_string()),
        })
    };
    let mut text = String::new();
    for node in graph.nodes() {
        let args: Vec<Argument> = node.args().iter().map(by_name).collect();
        let kwargs = node.kwargs().iter().map(|(k, a)| (k.clone(), by_name(a)));
        let kwargs: Vec<_> = kwargs.collect();
        let (op, ty) = (node.op(), node.type_expr());
        text += &format!("{op:?} {ty:?} {args:?} {kwargs:?} {}\n", node.num_users());
    }
    text
}

fn assert_same(text: &str) {
    match text.parse::<Graph>() {
        Ok(graph) => assert_eq!(graph.to_string(), text),
        Err(error) => panic!("{error}\n{text}"),
    }
}

fn message(text: &str) -> String {
    match text.parse::<Graph>() {
        Ok(graph) => format!("parsed:\n{graph}"),
        Err(error) => error.to_string(),
    }
}

// ---- round trips -------------------------------------------------------------------------------

#[test]
fn graphs_are_what_they_print() {
    assert_same("graph():");
    assert_same("graph():\n    return ");
    assert_same("graph():\n    return None, (1,), [2]");
    assert_same(
        "graph():
    %x : [num_users=2] = placeholder[target=x]
    %y : Option<[f32; 3]> [num_users=1] = placeholder[target=y](default=2)
    %layer_weight : [num_users=1] = get_attr[target=layer.weight]
    %add_7 : [num_users=1] = call_function[target=fx_core::operator::add](args = (%x, %layer_weight), kwargs = {})
    %blocks_0 : [num_users=1] = call_module[target=blocks.0](args = (%add_7,), kwargs = {})
    %clamp : [num_users=1] = call_method[target=clamp](args = (%blocks_0,), kwargs = {min: 0.0, max: %y})
    %add : [num_users=0] = call_function[target=fx_core::operator::add](args = (), kwargs = {})
    return (%clamp, {\"x\": %x})",
    );
}

#[test]
fn every_literal_is_read_as_it_is_printed() {
    let dtypes =
        "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 bfloat16 float16 float32 float64";
    let literals = [
        "None",
        "true",
        "false",
        "...",
        "0",
        "-9223372036854775808",
        "9223372036854775807",
        "0.0",
        "-0.0",
        "1e-5",
        "1e16",
        "5e-324",
        "1.7976931348623157e308",
        "inf",
        "-inf",
        "NaN",
        r#""""#,
        r#""a \"b\" \\ \n\r\t\0 'c' \u{1b} é %x ]""#,
        "[]",
        "()",
        "(1,)",
        "(1, 2)",
        "[[%x], (%x,)]",
        r#"{"k": %x, "": {}, "a b": [{"k": None}]}"#,
        "slice(None, %x, -1)",
    ];
    for value in literals.into_iter().chain(dtypes.split(' ')) {
        let users = usize::from(value.contains("%x") && !value.starts_with('"'));
        assert_same(&format!(
            "graph():\n    %x : [num_users={users}] = placeholder[target=x]\n    return {value}"
        ));
    }
}

#[test]
fn what_cannot_be_printed_bare_is_quoted() -> Result<()> {
    let mut graph = Graph::new();
    let x = graph.placeholder("a]\"b\n")?;
    graph.node_mut(x)?.set_type_expr(Some(""));
    let y = graph.get_attr("\"")?;
    graph
        .node_mut(y)?
        .set_type_expr(Some("A [num_users=1] = get_attr"));
    let z = graph.call_method("", (x,), [("a: b", 1), ("type", 2)])?;
    graph.node_mut(z)?.set_type_expr(Some(" [i64; 2] "));
    let spaced = graph.create_node(Op::GetAttr("a b".into()), (z,), [("k", y)])?;
    graph.create_node(Op::Placeholder("two".into()), (x, spaced), ())?;
    let out = graph.create_node(Op::Output, (spaced, 1), [("k", 1)])?;
    graph.create_node(Op::Output, (out,), ())?;
    assert_eq!(
        graph.to_string(),
        r#"graph():
    %a_b_ : "" [num_users=2] = placeholder[target="a]\"b\n"]
    %__1 : "A [num_users=1] = get_attr" [num_users=1] = get_attr[target="\""]
    %_unnamed : " [i64; 2] " [num_users=1] = call_method[target=](args = (%a_b_,), kwargs = {"a: b": 1, type: 2})
    %a_b : [num_users=2] = get_attr[target=a b](args = (%_unnamed,), kwargs = {k: %__1})
    %two : [num_users=0] = placeholder[target=two](args = (%a_b_, %a_b), kwargs = {})
    %output : [num_users=1] = output[target=output](args = (%a_b, 1), kwargs = {k: 1})
    return %output"#
    );
    let parsed: Graph = graph.to_string().parse()?;
    assert_eq!(parsed.to_string(), graph.to_string());
    assert_eq!(facts(&parsed), facts(&graph));
    Ok(())
}

#[test]
fn blanks_and_line_ends_do_not_matter() -> Result<()> {
    let text = "graph():
    %x : [num_users=1] = placeholder[target=x]
    %y : i64 [num_users=1] = placeholder[target=y](default=1.5)
    %neg : [num_users=0] = call_function[target=fx_core::operator::neg](args = (%x,), kwargs = {k: [%y, 1]})
    return ";
    let windows: Graph = (text.replace('\n', "\r\n") + "\r\n").parse()?;
    assert_eq!(windows.to_string(), text);
    let loose: Graph = "

\tgraph():

%x:[num_users=1]=placeholder [target=x]
  %y\t: i64[num_users=1]=placeholder[target=y]( default = 1.5 )
%neg:[num_users=0]=call_function[target=fx_core::operator::neg](args=( %x , ),kwargs={k:[%y,1,],})
    return
\t
"
    .parse()?;
    assert_eq!(loose.to_string(), text);
    Ok(())
}

#[test]
fn a_return_takes_no_name_that_a_later_node_has() {
    assert_same(
        "graph():
    return 1
    return 2
    %output : [num_users=1] = placeholder[target=output]
    return %output
    %output_1 : [num_users=0] = get_attr[target=a]",
    );
}

#[test]
fn nodes_know_their_place_in_the_text() -> Result<()> {
    let graph: Graph = "graph():\n\n    %x : [num_users=0] = placeholder[target=x]".parse()?;
    let place = graph.find_name("x").and_then(|x| x.location().cloned());
    assert_eq!(place.map(|p| p.to_string()), Some("<graph>:3:5".into()));
    Ok(())
}

#[test]
fn a_parsed_graph_goes_on_counting_names() -> Result<()> {
    let mut graph: Graph =
        "graph():\n    %neg_4 : [num_users=0] = call_method[target=neg](args = (), kwargs = {})"
            .parse()?;
    let id = graph.call_method("neg_4", (), ())?;
    assert!(graph.node(id)?.name() == "neg_5");
    Ok(())
}

#[test]
fn a_hundred_thousand_nodes_are_read() {
    let count = 100_000;
    let mut text = String::from("graph():\n    %add : [num_users=1] = placeholder[target=x]");
    for i in 1..count {
        let before = if i == 1 {
            String::new()
        } else {
            format!("_{}", i - 1)
        };
        text += &format!(
            "\n    %add_{i} : [num_users=1] = call_function[target=fx_core::operator::add](args = (%add{before}, [1.5, 2]), kwargs = {{}})"
        );
    }
    text += &format!("\n    return %add_{}", count - 1);
    assert_same(&text);
}

// ---- malformed text ----------------------------------------------------------------------------

const X: &str = "graph():\n    %x : [num_users=0] = placeholder[target=x]\n";

#[test]
fn malformed_lines_are_told_where_and_why() {
    const OPCODES: &str =
        "an opcode (placeholder, get_attr, call_function, call_method, call_module or output)";
    let cases = [
        (
            "    %x : [num_users=0] = placeholder[target=x]",
            "line 3, column 5: expected a new name, found `%x` again: two nodes are named %x",
        ),
        (
            "    %Foo : [num_users=0] = get_attr[target=a]",
            "line 3, column 6: expected a name that a Rust variable can have, found `Foo`, which would become %foo",
        ),
        (
            "    %type : [num_users=0] = get_attr[target=a]",
            "line 3, column 6: expected a name that a Rust variable can have, found `type`, which would become %type_1",
        ),
        (
            "    % a : [num_users=0] = get_attr[target=a]",
            "line 3, column 6: expected a name, found ` `",
        ),
        (
            "    x = 1",
            "line 3, column 5: expected a node, `%name : ..`, or `return`, found `x`",
        ),
        (
            "graph():",
            "line 3, column 1: expected a node, `%name : ..`, or `return`, found `graph`",
        ),
        (
            "    %a = get_attr[target=a]",
            "line 3, column 8: expected `:`, found `=`",
        ),
        (
            "    %a : i64\n",
            "line 3, column 10: expected a type or `[num_users=`, then the rest, found `i64`",
        ),
        (
            "    %a : [num_users=-1] = get_attr[target=a]",
            "line 3, column 21: expected a number of users, found `-`",
        ),
        (
            "    %a : [num_users=1x] = get_attr[target=a]",
            "line 3, column 21: expected a number of users, found `1x`",
        ),
        (
            "    %a : [num_users=99999999999999999999] = get_attr[target=a]",
            "line 3, column 21: expected a number of users, found `99999999999999999999`",
        ),
        (
            "    %a : [num_users=0] = set_attr[target=a]",
            &format!("line 3, column 26: expected {OPCODES}, found `set_attr`"),
        ),
        (
            "    %a : [num_users=0] = [target=a]",
            &format!("line 3, column 26: expected {OPCODES}, found `[`"),
        ),
        (
            "    %a : [num_users=0] = get_attr(a)",
            "line 3, column 34: expected `[target=`, found `(`",
        ),
        (
            "    %a : [num_users=0] = get_attr[target=a\n",
            "line 3, column 43: expected `]`, found the end of the line",
        ),
        (
            "    %a : [num_users=0] = get_attr[target=\"a]",
            "line 3, column 45: expected `\"`, found the end of the text",
        ),
        (
            "    %a : [num_users=0] = get_attr[target=a] b",
            "line 3, column 45: expected `(`, found `b`",
        ),
        (
            "    %a : [num_users=0] = get_attr[target=a](default=1)",
            "line 3, column 45: expected `args`, found `default`",
        ),
        (
            "    %a : [num_users=0] = output[target=a](args = (), kwargs = {})",
            "line 3, column 40: expected `output`, found `a`",
        ),
        (
            "    %a : [num_users=0] = call_method[target=a]",
            "line 3, column 47: expected `(`, found the end of the text",
        ),
        (
            "    %a : [num_users=0] = call_method[target=a](args = (1), kwargs = {})",
            "line 3, column 57: expected `,`, found `)`",
        ),
        (
            "    %a : [num_users=0] = call_method[target=a](args = (), kwargs = {}) %x",
            "line 3, column 72: expected the end of the line, found `%x`",
        ),
        (
            "    %a : [num_users=0] = call_method[target=a](args = (), kwargs = {a: 1, b: 2, a: 3})",
            "line 3, column 81: expected a new keyword, found `a` again",
        ),
        (
            "    %a : [num_users=0] = call_method[target=a](args = (), kwargs = {1})",
            "line 3, column 70: expected `:`, found `}`",
        ),
        (
            "    %a : [num_users=0] = call_method[target=a](args = (), kwargs = {:})",
            "line 3, column 69: expected a keyword, found `:`",
        ),
        (
            "    %a : [num_users=0] = call_method[target=a](args = (%b,), kwargs = {})\n    %b : [num_users=0] = get_attr[target=b]",
            "line 3, column 56: expected a node of an earlier line, found `%b`, which is not defined yet",
        ),
        (
            "    %a : [num_users=1] = call_method[target=a](args = ([%a],), kwargs = {})",
            "line 3, column 57: expected a node of an earlier line, found `%a`, the node itself",
        ),
        (
            "    %a : [num_users=0] = call_function[target=no::such](args = (), kwargs = {})",
            "line 3, column 47: expected a registered function, found `no::such`, which no crate of this program registers: link its crate in (`use its_crate as _;`)",
        ),
        (
            "    return %x",
            "line 2, column 21: expected `1`, as many users as %x has, found `0`",
        ),
        (
            "    %a : [num_users=2] = get_attr[target=a]\n    return 1",
            "line 3, column 21: expected `0`, as many users as %a has, found `2`",
        ),
        (
            "    return 1)",
            "line 3, column 13: expected `,` or the end of the line, found `)`",
        ),
    ];
    for (lines, expected) in cases {
        assert_eq!(message(&format!("{X}{lines}")), expected, "{lines}");
    }
}

#[test]
fn malformed_arguments_are_told_where_and_why() {
    let cases = [
        (
            "[1, 2)",
            "line 3, column 17: expected `,` or `]`, found `)`",
        ),
        (
            "[1, 2",
            "line 3, column 17: expected `,` or `]`, found the end of the text",
        ),
        ("[,]", "line 3, column 13: expected a value, found `,`"),
        ("(1)", "line 3, column 14: expected `,`, found `)`"),
        ("{k: 1}", "line 3, column 13: expected `\"`, found `k`"),
        ("{\"k\" 1}", "line 3, column 17: expected `:`, found `1`"),
        ("slice(1, 2)", "line 3, column 22: expected `,`, found `)`"),
        (
            "slice(1, 2, 3, 4)",
            "line 3, column 25: expected `)`, found `,`",
        ),
        (
            "maybe",
            "line 3, column 12: expected a value, found `maybe`",
        ),
        ("..", "line 3, column 12: expected a value, found `.`"),
        (
            "%",
            "line 3, column 13: expected a name, found the end of the text",
        ),
        ("%<erased>", "line 3, column 13: expected a name, found `<`"),
        ("é\u{7}", "line 3, column 12: expected a value, found `é`"),
        (
            "\"é\"\u{7}",
            "line 3, column 15: expected `,` or the end of the line, found `\\u{7}`",
        ),
        (
            "9223372036854775808",
            "line 3, column 12: expected an integer of 64 bits, found `9223372036854775808`",
        ),
        (
            "1e999",
            "line 3, column 12: expected a float of 64 bits, found `1e999`",
        ),
        (
            "-1e-999",
            "line 3, column 12: expected a float of 64 bits, found `-1e-999`",
        ),
        (
            "1.5.2",
            "line 3, column 12: expected a number, found `1.5.2`",
        ),
        (
            "-infinity",
            "line 3, column 12: expected a number, found `-infinity`",
        ),
        ("-", "line 3, column 12: expected a number, found `-`"),
        (
            "1_000",
            "line 3, column 12: expected a number, found `1_000`",
        ),
        (
            "\"a",
            "line 3, column 14: expected `\"`, found the end of the text",
        ),
        (
            r#""a\"#,
            r"line 3, column 14: expected an escape such as `\n` or `\u{e9}`, found `\`",
        ),
        (
            r#""a\q""#,
            r"line 3, column 14: expected an escape such as `\n` or `\u{e9}`, found `\q`",
        ),
        (
            r#""\u{d800}""#,
            r"line 3, column 13: expected an escape such as `\n` or `\u{e9}`, found `\u{d800}`",
        ),
        (
            r#""\u{}""#,
            r"line 3, column 13: expected an escape such as `\n` or `\u{e9}`, found `\u{}`",
        ),
        (
            r#""\u{1"#,
            r"line 3, column 13: expected an escape such as `\n` or `\u{e9}`, found `\u{1`",
        ),
    ];
    for (value, expected) in cases {
        assert_eq!(
            message(&format!("{X}    return {value}")),
            expected,
            "{value}"
        );
    }
}

#[test]
fn a_text_starts_with_its_header() {
    for (text, expected) in [
        (
            "",
            "line 1, column 1: expected `graph():`, found the end of the text",
        ),
        (
            "\n\n",
            "line 3, column 1: expected `graph():`, found the end of the text",
        ),
        (
            "\n  return 1",
            "line 2, column 3: expected `graph():`, found `return`",
        ),
        (
            "graph(): x",
            "line 1, column 10: expected the end of the line, found `x`",
        ),
    ] {
        assert_eq!(message(text), expected, "{text:?}");
    }
}

#[test]
fn deep_nesting_is_refused_and_long_text_cut_short() {
    let nested = |open: &str, close: &str, depth: usize| {
        format!(
            "graph():\n    return {}1{}",
            open.repeat(depth),
            close.repeat(depth)
        )
    };
    assert_same(&nested("[", "]", 64));
    assert_same(&nested("{\"k\": ", "}", 64));
    // The first argument of a slice is one level down already.
    let structures = [
        ("[", "]", 0),
        ("(", ",)", 0),
        ("{\"k\": ", "}", 0),
        ("slice(1, ", ", 1)", 3),
    ];
    for (open, close, back) in structures {
        for depth in [65, 100_000] {
            let column = 12 + 65 * open.len() - back;
            let expected = format!(
                "line 2, column {column}: expected at most 64 levels of arguments, found one more"
            );
            assert_eq!(message(&nested(open, close, depth)), expected);
        }
    }
    let digits = "9".repeat(1_000_000);
    let told = message(&format!("graph():\n    return {digits}"));
    assert_eq!(
        told,
        format!(
            "line 2, column 12: expected an integer of 64 bits, found `{}...`",
            &digits[..80]
        )
    );
}

#[test]
fn a_program_finds_out_what_kind_of_error_it_was_and_where() -> Result<()> {
    let error = format!("graph():\n    return {}", "9".repeat(30)).parse::<Graph>();
    let place = error.err().and_then(|error| match error.kind() {
        ErrorKind::Syntax { line, column, .. } => Some((*line, *column)),
        _ => None,
    });
    assert_eq!(place, Some((2, 12)));

    let mut gm = symbolic_trace(traced!(|x: Float| x * 2.0))?;
    gm.add_submodule("a.b", gm.clone())?;
    let error = gm.add_submodule("a", gm.clone()).err();
    let taken = error.as_ref().map(Error::kind);
    assert!(
        matches!(taken, Some(ErrorKind::Taken { path, .. }) if path == "a"),
        "{taken:?}"
    );
    Ok(())
}
