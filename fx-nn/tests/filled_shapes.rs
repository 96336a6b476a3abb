//! Passes and rewrites of a graph whose shapes are known leave one whose shapes are known.

use fx_nn::ir::{TensorMeta, ValueMeta};
use fx_nn::module::ComponentExt;
use fx_nn::passes::prelude::*;
use fx_nn::prelude::*;
use fx_nn::shapes::spec;

/// `x.relu()?` between a product and a sum, for `x` of `[n, 4]`.
fn known() -> Result<GraphModule> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| (x * 2.0)?.relu()? + 1.0))?;
    gm.infer_shapes(&[spec!["n", 4; F32]])?;
    Ok(gm)
}

fn shape(gm: &GraphModule, name: &str) -> String {
    let node = gm.graph().find_name(name);
    let meta = node.and_then(|node| node.meta::<ValueMeta>());
    meta.map_or("none".to_string(), ValueMeta::to_string)
}

fn all_known(gm: &GraphModule) -> bool {
    gm.graph()
        .nodes()
        .all(|node| node.meta::<ValueMeta>().is_some())
}

#[test]
fn the_result_of_a_replacement_has_its_shape() -> Result<()> {
    let mut gm = known()?;
    replace_pattern(
        &mut gm,
        traced!(|x: &Tensor| x.relu()),
        traced!(|x: &Tensor| x.unsqueeze(1)?.sigmoid()),
    )?;
    assert_eq!(shape(&gm, "sigmoid"), "float32[n, 1, 4]");
    // What depends on it is inferred again.
    assert_eq!(shape(&gm, "add"), "float32[n, 1, 4]");
    assert_eq!(shape(&gm, "output"), "float32[n, 1, 4]");
    assert!(all_known(&gm));
    Ok(())
}

#[test]
fn slices_and_functions_have_theirs() -> Result<()> {
    let mut gm = known()?;
    replace_pattern(
        &mut gm,
        traced!(|x: &Tensor| x.relu()),
        traced!(|x: &Tensor| {
            let first = x.i((.., 0))?;
            let pair = ops::stack(&[&first, &first], 1)?;
            ops::cat(&[&pair, &pair], 1)?.reshape((-1, 2))?.sin()
        }),
    )?;
    assert_eq!(shape(&gm, "getitem"), "float32[n]");
    assert_eq!(shape(&gm, "stack"), "float32[n, 2]");
    assert_eq!(shape(&gm, "cat"), "float32[n, 4]");
    assert_eq!(shape(&gm, "sin"), "float32[2*n, 2]");
    assert!(all_known(&gm));
    Ok(())
}

#[test]
fn tensors_of_a_replacement_have_theirs() -> Result<()> {
    let layer = nn::Linear::new(4, 3)?;
    let replacement = Trace::new(&layer)
        .tracer(fx_nn::trace::NoLeaves)
        .graph_module()?;
    let mut gm = known()?;
    replace_pattern(&mut gm, traced!(|x: &Tensor| x.relu()), replacement)?;
    let reads = gm
        .graph()
        .nodes()
        .filter(|node| matches!(node.op(), Op::GetAttr(_)));
    let reads: Vec<String> = reads
        .map(|node| shape(&gm, &node.name().to_string()))
        .collect();
    assert_eq!(reads, ["float32[3, 4]", "float32[3]"]);
    assert_eq!(shape(&gm, "output"), "float32[n, 3]");
    assert!(all_known(&gm) && gm.named_parameters().len() == 2);
    Ok(())
}

#[test]
fn sizes_with_names_stay_sizes() -> Result<()> {
    let mut gm = known()?;
    replace_pattern(
        &mut gm,
        traced!(|x: &Tensor| x.relu()),
        traced!(|x: &Tensor| x.view((x.size(0)?, 2, -1))),
    )?;
    assert_eq!(shape(&gm, "size"), "n");
    assert_eq!(shape(&gm, "view"), "float32[n, 2, 2]");
    Ok(())
}

#[test]
fn a_later_filter_reads_it() -> Result<()> {
    let mut gm = known()?;
    let first = Rule::new(
        traced!(|x: &Tensor| x.relu()),
        traced!(|x: &Tensor| x.transpose(0, 1)?.exp()),
    )?;
    first.apply(&mut gm)?;
    let wide = Rule::new(
        traced!(|x: &Tensor| x.exp()),
        traced!(|x: &Tensor| x.sqrt()),
    )?
    .filter(|gm, found| {
        let node = found
            .anchors()
            .next()
            .and_then(|id| gm.graph().node(id).ok());
        let meta = node.and_then(|node| node.meta::<ValueMeta>());
        meta.is_some_and(|meta| meta.to_string() == "float32[4, n]")
    });
    assert_eq!(wide.apply(&mut gm)?.len(), 1);
    assert_eq!(shape(&gm, "sqrt"), "float32[4, n]");
    Ok(())
}

#[test]
fn a_claim_of_a_replacement_is_a_guard() -> Result<()> {
    let mut gm = known()?;
    replace_pattern(
        &mut gm,
        traced!(|x: &Tensor| x.relu()),
        traced!(|x: &Tensor| x.view((-1, 8))),
    )?;
    let guards = gm
        .contract()
        .map_or(Vec::new(), |contract| contract.guards().to_vec());
    assert_eq!(guards.len(), 1, "{guards:?}");
    assert_eq!(guards[0].claim.to_string(), "n % 2 == 0");
    assert!(gm.forward::<Tensor>(&Tensor::ones((3, 4))?).is_err());
    assert_eq!(
        gm.forward::<Tensor>(&Tensor::ones((2, 4))?)?.dims()?,
        [1, 8]
    );
    Ok(())
}

#[test]
fn a_result_that_no_rule_knows_stays_unknown() -> Result<()> {
    /// A function without a shape rule, which reads elements.
    #[wrap]
    fn mystery(x: &Tensor) -> Result<Tensor> {
        x * x.sum(..)?.item()?
    }
    let mut gm = known()?;
    replace_pattern(
        &mut gm,
        traced!(|x: &Tensor| x.relu()),
        traced!(|x: &Tensor| mystery(&x.exp()?)),
    )?;
    assert_eq!(shape(&gm, "exp"), "float32[n, 4]");
    assert_eq!(shape(&gm, "mystery"), "none");
    // Of what depended on the replaced node nothing is known now; other entries stay.
    assert_eq!(shape(&gm, "mul"), "float32[n, 4]");
    Ok(())
}

#[test]
fn an_existing_node_keeps_its_entry() -> Result<()> {
    let mut gm = known()?;
    let mul = gm.graph().find_name("mul").map(|node| node.id());
    let mul = mul.ok_or_else(|| Error::msg("the graph multiplies"))?;
    let marked = TensorMeta::new([7]).dtype(DType::F64);
    gm.graph_mut()
        .node_mut(mul)?
        .set_meta(ValueMeta::from(marked));
    // The replacement gives its input, a node that is there.
    replace_pattern(
        &mut gm,
        traced!(|x: &Tensor| x.relu()),
        traced!(|x: &Tensor| Ok(x.clone())),
    )?;
    assert_eq!(shape(&gm, "mul"), "float64[7]");
    Ok(())
}
