//! Entries of nodes, through a file.

use fx_nn::file::{Json, SavedMeta};
use fx_nn::ir::{Meta, MetaPolicy, TensorMeta, ValueMeta};
use fx_nn::prelude::*;
use fx_nn::register_meta;
use fx_nn::value::{Dim, IntoValue};

use super::support::{json_of, loads_the_same, with_json};

/// A user-defined entry that files keep.
#[derive(Debug, PartialEq)]
struct Stage(u64);

impl Meta for Stage {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
}

impl SavedMeta for Stage {
    const NAME: &'static str = "a_crate::Stage";

    fn to_saved(&self) -> Result<Json> {
        match self.0 {
            13 => Err(Error::msg("stage 13 is not told")),
            stage => Ok(stage.into()),
        }
    }

    fn from_saved(saved: &Json) -> Result<Self> {
        let stage = saved.as_u64();
        Ok(Stage(
            stage.ok_or_else(|| Error::msg("expected a stage's number"))?,
        ))
    }
}

register_meta!(Stage);

/// An entry that nobody registered.
#[derive(Debug)]
struct Scribble;

impl Meta for Scribble {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
}

#[trace]
fn several(x: &Tensor) -> Result<(Tensor, Int)> {
    Ok((x.relu()?, x.size(0)?))
}

/// Shapes, on every node; on the first the rest.
fn with_entries(stages_first: bool) -> Result<GraphModule> {
    let mut gm = symbolic_trace(traced!(several))?;
    let first = gm.graph().nodes().next().map(|node| node.id());
    let first = first.ok_or_else(|| Error::msg("it has nodes"))?;
    if stages_first {
        gm.graph_mut().node_mut(first)?.set_meta(Stage(7));
    }
    gm.propagate_shapes(&Tensor::ones((2, 3))?)?;
    let mut graph = gm.graph_mut();
    graph.node_mut(first)?.set_meta(Stage(7));
    graph.node_mut(first)?.set_meta(Scribble);
    drop(graph);
    Ok(gm)
}

#[test]
fn registered_entries_come_back_and_others_do_not() -> Result<()> {
    let gm = with_entries(false)?;
    loads_the_same("entries", &gm, vec![Tensor::ones((2, 3))?.into_value()])?;
    let bytes = gm.to_bytes()?;
    assert!(with_entries(true)?.to_bytes()? == bytes, "the order counts");
    let loaded = GraphModule::from_bytes(&bytes)?;
    for (a, b) in gm.graph().nodes().zip(loaded.graph().nodes()) {
        assert!(a.meta::<ValueMeta>().is_some());
        assert_eq!(a.meta::<ValueMeta>(), b.meta::<ValueMeta>(), "{a}");
        assert_eq!(a.meta::<Stage>(), b.meta::<Stage>());
        assert!(b.meta::<Scribble>().is_none());
    }
    assert_eq!(
        json_of(&bytes)?["nodes"][0]["meta"].to_string(),
        r#"{"a_crate::Stage":7,"fx_core::ir::ValueMeta":{"shape":[2,3],"dtype":"float32","strides":[3,1],"requires_grad":false,"device":"cpu"}}"#
    );
    Ok(())
}

#[test]
fn gradients_and_devices_of_nodes_are_kept_where_they_are_known() -> Result<()> {
    let mut gm = with_entries(false)?;
    gm.propagate_shapes(&Tensor::ones((2, 3))?.into_parameter()?)?;
    let first = |gm: &GraphModule| {
        let tensor = gm.graph().nodes().next().and_then(|node| {
            let meta: Option<&ValueMeta> = node.meta();
            meta.and_then(ValueMeta::tensor).cloned()
        });
        tensor.ok_or_else(|| Error::msg("the shapes are known"))
    };
    let known = TensorMeta::new([2, 3])
        .dtype(DType::F32)
        .strides([3, 1])
        .requires_grad(true)
        .device(Device::Cpu);
    let bytes = gm.to_bytes()?;
    assert_eq!(first(&gm)?, known);
    assert_eq!(first(&GraphModule::from_bytes(&bytes)?)?, known);

    let mut old = json_of(&bytes)?;
    for node in old["nodes"].as_array_mut().into_iter().flatten() {
        let tensor = node["meta"]["fx_core::ir::ValueMeta"].as_object_mut();
        if let Some(tensor) = tensor {
            tensor.remove("requires_grad");
            tensor.remove("device");
        }
    }
    let old = GraphModule::from_bytes(&with_json(&bytes, &old.to_string())?)?;
    let unknown = TensorMeta::new([2, 3]).dtype(DType::F32).strides([3, 1]);
    assert_eq!(first(&old)?, unknown);
    Ok(())
}

/// Every kind of entry loads as it was saved, and schema 1's texts as the values that they were of.
#[test]
fn entries_of_every_kind_load_as_they_were_saved() -> Result<()> {
    use serde_json::json;
    let size = |text: &str| text.parse::<Dim>();
    let row = ValueMeta::from(TensorMeta::new([size("n")?, 8.into()]).dtype(DType::F32));
    let kinds = [
        (ValueMeta::Int(7.into()), Some(json!("7"))),
        (ValueMeta::Int(size("2*n")?), Some(json!({"size": "2*n"}))),
        (ValueMeta::Float(None), Some(json!("a number"))),
        (ValueMeta::Float(Some(1.5)), Some(json!("1.5"))),
        (ValueMeta::Float(Some(f64::INFINITY)), Some(json!("inf"))),
        (ValueMeta::Bool(None), Some(json!("a truth"))),
        (ValueMeta::Bool(Some(true)), Some(json!("true"))),
        (ValueMeta::none(), Some(json!("None"))),
        (
            ValueMeta::Opaque("a `Store`".into()),
            Some(json!("a `Store`")),
        ),
        (
            ValueMeta::List(vec![row.clone(), ValueMeta::Bool(None)]),
            Some(json!([{"shape": ["n", 8], "dtype": "float32"}, "a truth"])),
        ),
        (
            ValueMeta::Dict(vec![("k".into(), ValueMeta::Float(None))]),
            Some(json!({"dict": [["k", "a number"]]})),
        ),
        (ValueMeta::Tuple(vec![row.clone(), ValueMeta::none()]), None),
        (ValueMeta::Repeated(Box::new(row), size("k")?), None),
        (ValueMeta::Plain(Value::DType(DType::BF16)), None),
        (ValueMeta::Plain(Value::of("mean")), None),
        (
            ValueMeta::Slice(Box::new([1, 2, 3].map(|n: i64| ValueMeta::Int(n.into())))),
            None,
        ),
    ];
    let mut gm = with_entries(false)?;
    let first = gm.graph().nodes().next().map(|node| node.id());
    let first = first.ok_or_else(|| Error::msg("it has nodes"))?;
    let entry = |gm: &GraphModule| gm.graph().nodes().next()?.meta::<ValueMeta>().cloned();
    for (kind, text) in kinds {
        gm.graph_mut().node_mut(first)?.set_meta(kind.clone());
        let bytes = gm.to_bytes()?;
        let loaded = GraphModule::from_bytes(&bytes)?;
        assert_eq!(entry(&loaded), Some(kind.clone()));
        let Some(text) = text else {
            continue;
        };
        let mut old = json_of(&bytes)?;
        for node in old["nodes"].as_array_mut().into_iter().flatten() {
            if let Some(meta) = node["meta"].as_object_mut() {
                meta.remove("fx_core::ir::ValueMeta");
            }
        }
        old["schema"] = 1.into();
        old["nodes"][0]["meta"]["fx_core::ir::ValueMeta"] = text;
        let old = GraphModule::from_bytes(&with_json(&bytes, &old.to_string())?)?;
        assert_eq!(entry(&old), Some(kind));
    }
    Ok(())
}

#[test]
fn the_place_of_a_wrong_entry_is_named() -> Result<()> {
    let mut gm = with_entries(false)?;
    let bytes = gm.to_bytes()?;
    let changed = |change: fn(&mut Json)| -> Result<String> {
        let mut json = json_of(&bytes)?;
        change(&mut json["nodes"][0]["meta"]);
        let loaded = GraphModule::from_bytes(&with_json(&bytes, &json.to_string())?);
        Ok(loaded.map_or_else(|e| e.to_string(), |_| "loaded".into()))
    };
    assert_eq!(
        changed(|meta| meta["a_crate::Stage"] = "x".into())?,
        "nodes[0].meta.a_crate::Stage: expected a stage's number"
    );
    assert_eq!(
        changed(|meta| meta["fx_core::ir::ValueMeta"]["shape"][1] = (-1).into())?,
        "nodes[0].meta.fx_core::ir::ValueMeta.shape[1]: expected a size, found `-1`"
    );
    assert_eq!(
        changed(|meta| meta["fx_core::ir::ValueMeta"]["requires_grad"] = 1.into())?,
        "nodes[0].meta.fx_core::ir::ValueMeta.requires_grad: expected true or false, found `1`"
    );
    assert_eq!(
        changed(|meta| meta["fx_core::ir::ValueMeta"]["device"] = "tpu".into())?,
        "nodes[0].meta.fx_core::ir::ValueMeta.device: no device `tpu`: expected `cpu`, `cuda:N` or `metal:N`"
    );
    assert_eq!(
        changed(|meta| meta["fx_core::ir::ValueMeta"] = "1".into())?,
        "nodes[0].meta.fx_core::ir::ValueMeta: expected a value, or what is known of one, found the text `1`"
    );
    let unknown = changed(|meta| meta["other::Stage"] = 1.into())?;
    let expected = "nodes[0].meta.other::Stage: no type of entries is registered as `other::Stage`: link its crate in";
    assert!(unknown.starts_with(expected), "{unknown}");

    let first = gm.graph().nodes().next().map(|node| node.id());
    let first = first.ok_or_else(|| Error::msg("it has nodes"))?;
    gm.graph_mut().node_mut(first)?.set_meta(Stage(13));
    let refused = gm
        .to_bytes()
        .map_or_else(|e| e.to_string(), |_| "saved".into());
    assert!(refused.contains("stage 13 is not told"), "{refused}");
    Ok(())
}
