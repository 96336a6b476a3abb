//! Specialised arguments: structures taken apart into inputs, guards, and the signature that stays.

use fx_core::ir::MetaPolicy;
use fx_core::prelude::*;
use fx_core::trace::Frozen;
use fx_core::value::{IntoValue, Tree};
use indexmap::IndexMap;
use insta::assert_snapshot;

use crate::support::*;
use crate::trace::lines;

fn array(x: f64) -> Array {
    Array::vec(&[x])
}

#[trace]
fn total(x: IndexMap<String, Array>) -> Result<Array> {
    let mut sum = array(0.0);
    for value in x.values() {
        sum = (sum + value)?;
    }
    Ok(sum)
}

fn dict(pairs: &[(&str, f64)]) -> IndexMap<String, Array> {
    pairs
        .iter()
        .map(|(key, x)| (key.to_string(), array(*x)))
        .collect()
}

#[test]
fn a_dict_is_an_input_for_each_key() -> Result<()> {
    let gm = Trace::new(traced!(total))
        .concrete("x", tree!({"a": PH, "b": PH}))
        .graph_module()?;
    assert_eq!(
        names(gm.graph())[..3],
        ["x_1", "x_2", "_tensor_constant0"],
        "{}",
        gm.graph()
    );
    // Called like the function, with the keys in any order.
    let y: Array = gm.forward(dict(&[("b", 2.0), ("a", 1.0)]))?;
    assert_eq!(y.to_vec()?, [3.0]);
    let flat = gm.process_inputs(dict(&[("b", 2.0), ("a", 1.0)]))?;
    assert_eq!(
        flat[0]
            .downcast_ref::<Array>()
            .map(Array::to_vec)
            .transpose()?,
        Some(vec![1.0])
    );
    assert_snapshot!(gm.code(), @r#"
    // does not compile as it stands: `_tensor_constant0` is a constant of the graph, not a field; `to_folder` writes a crate that does, or says what is in its way
    pub fn forward(&self, x: IndexMap<String, Array>) -> Result<Array> {
        let x_1 = &x["a"];
        let x_2 = &x["b"];
        let _tensor_constant0 = &self._tensor_constant0;
        let add = (_tensor_constant0 + x_1)?;
        let add_1 = (&add + x_2)?;  drop(add);
        Ok(add_1)
    }
    "#);
    Ok(())
}

#[test]
fn another_structure_is_an_error_that_says_where() -> Result<()> {
    let f = traced!(|x: Value| Ok(vec![x]));
    let gm = Trace::new(f)
        .concrete("x", tree!({"a": PH, "b": [PH, (PH, None)]}))
        .graph_module()?;
    for (argument, words) in [
        (
            tree!({"a": 1}),
            r#"takes a structure `{"a": *, "b": [*, (*, *)]}` as `x`, found `{"a": *}`"#,
        ),
        (tree!(7), "found an int"),
        (tree!({"a": 1, "b": [2]}), r#"`[*, (*, *)]` at `["b"]`"#),
        (
            tree!({"a": 1, "b": [2, (3, 4, 5)]}),
            r#"`(*, *)` at `["b"][1]`"#,
        ),
        (
            tree!({"a": 1, "b": [2, (3, 4)]}),
            r#"argument "x[\"b\"][1].1" was specialised to None"#,
        ),
    ] {
        let error = gm
            .forward::<Value>((argument,))
            .expect_err("another structure");
        assert!(error.to_string().contains(words), "{error}\n{words}");
    }
    assert!(
        gm.forward::<Value>((tree!({"a": 1, "b": [2, (3, None)]}),))
            .is_ok()
    );
    Ok(())
}

#[test]
fn a_structures_plain_leaves_are_guarded_and_reported() -> Result<()> {
    let f = || traced!(|x: &Array, how: (f64, Vec<bool>)| (x * how.0)? * how.1.len());
    let trace = || Trace::new(f()).concrete("how", (2.0, vec![true, false]));
    let gm = trace().graph_module()?;
    let texts = lines(gm.graph());
    assert_eq!(
        texts[1..4],
        [
            "%how_1 : f64 [num_users=1] = placeholder[target=how_1]",
            "%how_2 : bool [num_users=1] = placeholder[target=how_2]",
            "%how_3 : bool [num_users=1] = placeholder[target=how_3]",
        ]
    );
    let y: Array = gm.forward((&array(3.0), (2.0, vec![true, false])))?;
    assert_eq!(y.to_vec()?, [12.0]);
    let error = gm
        .forward::<Array>((&array(3.0), (2.0, vec![true, true])))
        .expect_err("guarded");
    assert!(error.to_string().contains("how.1[1]"), "{error}");
    let report = trace().report()?;
    assert!(report.entries().iter().any(|entry| entry.what
        == Frozen::Argument {
            argument: "how.0".into(),
            value: "2.0".into(),
            guarded: true
        }));
    let open = trace().unguarded().graph_module()?;
    let y: Array = open.forward((&array(3.0), (5.0, vec![true, true])))?;
    assert_eq!(y.to_vec()?, [12.0], "as it was specialised");
    Ok(())
}

#[test]
fn a_structured_module_traced_again_keeps_signature_and_graph() -> Result<()> {
    let gm = Trace::new(traced!(total))
        .concrete("x", tree!({"a": PH, "b": PH}))
        .graph_module()?;
    let again = symbolic_trace(&gm)?;
    assert_eq!(again.graph().to_string(), gm.graph().to_string());
    let y: Array = again.forward(dict(&[("a", 1.0), ("b", 4.0)]))?;
    assert_eq!(y.to_vec()?, [5.0]);
    // Called from another trace, with a structure of symbolic values.
    let outer = traced!(move |p: &Array, q: &Array| {
        let x: IndexMap<String, Array> =
            [("a".to_string(), p.clone()), ("b".to_string(), q.clone())]
                .into_iter()
                .collect();
        gm.forward::<Array>(x)
    });
    let outer = symbolic_trace(outer)?;
    let y: Array = outer.forward((&array(1.0), &array(2.0)))?;
    assert_eq!(y.to_vec()?, [3.0]);
    Ok(())
}

#[test]
fn an_edit_of_the_inputs_makes_the_signature_flat() -> Result<()> {
    let mut gm = Trace::new(traced!(total))
        .concrete("x", tree!({"a": PH, "b": PH}))
        .graph_module()?;
    {
        let mut graph = gm.graph_mut();
        let first = graph.placeholders().next().map(|n| n.id());
        graph.inserting_before(first)?.placeholder("extra")?;
    }
    let y: Array = gm.forward((&array(9.0), &array(1.0), &array(2.0)))?;
    assert_eq!(y.to_vec()?, [3.0]);
    Ok(())
}

#[derive(Debug, Clone, PartialEq)]
struct Tag(&'static str);
impl fx_core::ir::Meta for Tag {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Drop;
}

#[test]
fn a_placeholder_takes_meta_data_along() -> Result<()> {
    let graph = Trace::new(traced!(total))
        .concrete("x", tree!({"a": (PH.with_meta(Tag("ids"))), "b": PH}))
        .graph()?;
    assert_eq!(node(&graph, "x_1")?.meta::<Tag>(), Some(&Tag("ids")));
    assert_eq!(node(&graph, "x_2")?.meta::<Tag>(), None);
    Ok(())
}

#[derive(Tree, Clone, Debug, PartialEq)]
struct Pair<T> {
    first: T,
    r#type: T,
}

#[derive(Tree, Clone)]
struct Point(Int, Int);

#[wrap(path = "concrete::halves")]
fn halves(x: &Array) -> Result<Pair<Array>> {
    Ok(Pair {
        first: (x / 2.0)?,
        r#type: (x - (x / 2.0)?)?,
    })
}

#[test]
fn structs_are_trees() -> Result<()> {
    let f = traced!(|p: &Pair<Array>, n: Point| {
        let halves = halves(&(&p.first + &p.r#type)?)?;
        Ok((
            Pair {
                first: halves.r#type,
                r#type: halves.first,
            },
            n.1,
        ))
    });
    let gm = Trace::new(f)
        .concrete("p", tree!({"first": PH, "type": PH}))
        .graph_module()?;
    assert_eq!(
        names(gm.graph()),
        [
            "p_1",
            "p_2",
            "n",
            "getitem",
            "getitem_1",
            "add",
            "halves",
            "getitem_2",
            "getitem_3",
            "output"
        ]
    );
    let p = Pair {
        first: array(2.0),
        r#type: array(4.0),
    };
    let (q, n): (Pair<Array>, i64) = gm.forward((&p, Point(7.into(), 8.into())))?;
    assert_eq!((q.first.to_vec()?, n), (vec![3.0], 8));
    let error = gm
        .forward::<Value>((tree!({"first": 1}), 2))
        .expect_err("no `type`");
    assert!(error.to_string().contains(r#"`p`"#), "{error}");
    let error = <Pair<i64> as FromValue>::from_value(tree!({"first": 1, "kind": 2}))
        .expect_err("no `type`");
    assert!(
        error
            .to_string()
            .contains("a dict with first, type, found a dict with first, kind")
    );
    Ok(())
}

#[trace]
fn leaky(x: &Array, #[default(0.5)] alpha: f64, #[default(true)] twice: bool) -> Result<Array> {
    let y = (x * alpha)?;
    if twice { y * 2.0 } else { Ok(y) }
}

#[test]
fn a_plain_argument_left_open_is_its_default() -> Result<()> {
    let gm = symbolic_trace(traced!(leaky))?;
    let text = gm.graph().to_string();
    assert_snapshot!(text, @r#"
    graph():
        %x : &Array [num_users=1] = placeholder[target=x]
        %alpha : f64 [num_users=1] = placeholder[target=alpha](default=0.5)
        %twice : bool [num_users=1] = placeholder[target=twice](default=true)
        %assert_specialized : [num_users=0] = call_function[target=fx_core::operator::assert_specialized](args = (%alpha, "alpha", 0.5), kwargs = {})
        %assert_specialized_1 : [num_users=0] = call_function[target=fx_core::operator::assert_specialized](args = (%twice, "twice", true), kwargs = {})
        %mul : [num_users=1] = call_function[target=fx_core::operator::mul](args = (%x, 0.5), kwargs = {})
        %mul_1 : [num_users=1] = call_function[target=fx_core::operator::mul](args = (%mul, 2.0), kwargs = {})
        return %mul_1
    "#);
    let y: Array = gm.forward(&array(3.0))?;
    assert_eq!(y.to_vec()?, [3.0]);
    let error = gm
        .forward::<Array>((&array(3.0), 0.25))
        .expect_err("guarded");
    assert!(
        error
            .to_string()
            .contains("\"alpha\" was specialised to 0.5"),
        "{error}"
    );
    let gm = Trace::new(traced!(leaky))
        .concrete("alpha", 0.25)
        .concrete("twice", false)
        .graph_module()?;
    let y: Array = gm.forward((&array(4.0), 0.25, false))?;
    assert_eq!(y.to_vec()?, [1.0]);
    Ok(())
}

#[test]
fn trees_flatten_and_unflatten() -> Result<()> {
    let value = tree!([{"a": 1, "b": (2,)}, (), [], "c"]);
    let tree = Tree::of(&value)?;
    assert_eq!(tree.to_string(), r#"[{"a": *, "b": (*,)}, (), [], *]"#);
    assert_eq!(tree.paths(), [r#"[0]["a"]"#, r#"[0]["b"].0"#, "[3]"]);
    let flat = tree.flatten(value.clone())?;
    assert_eq!(flat.len(), tree.leaves());
    assert_eq!(Tree::of(&tree.unflatten(flat)?)?, tree);
    assert!(tree.unflatten(vec![Value::None]).is_err());
    let mut deep = 1.into_value();
    for _ in 0..70 {
        deep = Value::List(Box::new([deep]));
    }
    assert!(Tree::of(&deep).is_err());
    Ok(())
}
