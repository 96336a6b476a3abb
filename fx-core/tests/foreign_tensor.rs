//! Generated source of tensor types that belong to no library of ours: the example's, with custom
//! names, and one without names. The generated source is kept in `foreign_tensor/`, compiled with
//! this test, and returns equal numbers.
//!
//! `UPDATE_GENERATED=1 cargo test -p fx-core --test foreign_tensor` writes the kept files again.

#[allow(unused_extern_crates, reason = "the kept source names the crate")]
extern crate self as foreign_tensor;

#[allow(dead_code, reason = "its program is not run here")]
#[path = "../examples/foreign_tensor.rs"]
mod example;
#[allow(dead_code, reason = "no file of it is loaded")]
#[path = "foreign_tensor/named.rs"]
#[rustfmt::skip]
mod named;
#[allow(dead_code, reason = "no file of it is loaded")]
#[path = "foreign_tensor/plain.rs"]
#[rustfmt::skip]
mod plain;
#[path = "foreign_tensor/row.rs"]
mod row;

use std::path::Path;

use fx_core::graph_module::Folder;
use fx_core::ir::{Graph, ParamType, TypeName};
use fx_core::operator;
use fx_core::prelude::*;

pub use example::{Array, total};
pub use row::{Row, halves};

fx_core::register_crate!();

/// Checks that the source of a module as a separate crate is the kept one.
fn assert_kept(gm: &GraphModule, name: &str, kept: &str) -> Result<()> {
    let source = Folder::new("Generated").source(gm)?;
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign_tensor");
        return std::fs::write(folder.join(name), source).map_err(Error::other);
    }
    assert_eq!(source, kept);
    Ok(())
}

/// The targets and arguments of a graph's nodes.
fn steps<M: Module>(module: &M) -> Result<Vec<String>> {
    let graph = Trace::new(module).graph()?;
    let steps = graph.nodes().map(|node| {
        let text = node.to_string();
        let (_, step) = text.split_once(" = ").unwrap_or(("", &text));
        step.to_string()
    });
    Ok(steps.collect())
}

#[test]
fn an_array_type_has_its_own_names_in_source() -> Result<()> {
    let gate = example::Gate {
        scale: Array::new(&[2.0, 3.0]),
    };
    let gm = symbolic_trace(&gate)?;
    assert_kept(&gm, "named.rs", include_str!("foreign_tensor/named.rs"))?;
    let generated = named::Generated::take(&mut gm.clone())?;
    let x = Array::new(&[1.5, -1.0]);
    let expected = gate.forward(&x)?;
    assert_eq!(expected.data()?, [9.5]);
    assert_eq!(generated.forward(&x)?.data()?, expected.data()?);
    assert_eq!(gm.forward::<Array>(&x)?.data()?, expected.data()?);
    assert_eq!(steps(&generated)?, steps(&gate)?);
    Ok(())
}

#[test]
fn without_names_plain_calls_are_written() -> Result<()> {
    let gm = symbolic_trace(traced!(row::every_form))?;
    assert_kept(&gm, "plain.rs", include_str!("foreign_tensor/plain.rs"))?;
    let generated = plain::Generated::take(&mut gm.clone())?;
    let x = Row::new(&[1.5, -4.0, 7.0, 2.0]);
    let expected = row::every_form(&x, 3.into())?;
    assert_eq!(expected.1.concrete(), Some(4));
    let found = generated.forward(&x, 3.into())?;
    assert_eq!(
        (found.0.data()?, found.1.concrete()),
        (expected.0.data()?, Some(4))
    );
    let run: (Row, Int) = gm.forward((&x, 3))?;
    assert_eq!(run.0.data()?, expected.0.data()?);
    let again = Trace::new(&generated).graph()?;
    assert_eq!(again.len(), gm.graph().len());
    Ok(())
}

/// With several tensor types none is implied: each input has its type, also in a file.
#[test]
fn with_several_tensor_types_each_input_says_its_own() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Array, y: &Row| Ok(((x + 1.0)?, (y + 1.0)?))))?;
    let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
    for gm in [&gm, &loaded] {
        let types: Vec<_> = gm.graph().placeholders().map(|x| x.type_expr()).collect();
        assert_eq!(types, [Some("&Array"), Some("&Row")]);
        let head = "pub fn forward(&self, x: &Array, y: &Row) -> Result<(Array, Row)> {\n";
        assert!(gm.code().starts_with(head), "{}", gm.code());
    }
    // A hand-made graph without types gets those that its functions take; otherwise they are
    // requested.
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let y = graph.call_function(function!(halves), (x,), ())?;
    graph.output(y)?;
    let gm = GraphModule::new(fx_core::module::Attributes::default(), graph, "Halves")?;
    assert!(
        gm.code().starts_with("pub fn forward(&self, x: &Row) ->"),
        "{}",
        gm.code()
    );
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    graph.output(x)?;
    let gm = GraphModule::new(fx_core::module::Attributes::default(), graph, "Identity")?;
    let error = Folder::new("Generated")
        .source(&gm)
        .expect_err("of which type?");
    assert!(
        error.to_string().contains("the input `x` has no type"),
        "{error}"
    );
    Ok(())
}

/// A type is found by its identity, whatever its name where a function is written.
#[test]
fn types_are_known_by_another_name() -> Result<()> {
    type Renamed = Array;
    type Pairs = Vec<(Renamed, Int)>;
    #[wrap]
    fn paired(x: &Renamed) -> Result<Pairs> {
        Ok(vec![(x.clone(), 1.into())])
    }
    let def = function!(paired).def();
    let array = ParamType::TensorOf(TypeName::of::<Array>());
    assert_eq!(*def.params[0].param_type.referred(), array);
    let result = def.result.as_ref().expect("it is declared");
    assert_eq!(result.to_string(), "Vec<(Array, Int)>");
    assert_eq!(result.item(0).and_then(|pair| pair.item(0)), Some(&array));
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let pairs = graph.call_function(function!(paired), (x,), ())?;
    let pair = graph.call_function(operator::getitem, (pairs, 0), ())?;
    let item = graph.call_function(operator::getitem, (pair, 0), ())?;
    graph.output(item)?;
    let gm = GraphModule::new(fx_core::module::Attributes::default(), graph, "Item")?;
    let code = gm.code();
    for line in [
        "pub fn forward(&self, x: &Array) -> Result<Array> {",
        "    let getitem = paired[0].clone();  drop(paired);",
        "    let getitem_1 = getitem.0.clone();  drop(getitem);",
    ] {
        assert!(code.contains(line), "{code}");
    }
    Ok(())
}
