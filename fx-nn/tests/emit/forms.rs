//! The whole Rust source of each form of the graph: any change of the text shows here.

use super::*;

/// The opcodes, and paths that are not names in Rust.
#[test]
fn every_opcode() -> Result<()> {
    let mut attributes = Attributes::default();
    let linear = nn::Linear::new(3, 3)?;
    attributes
        .modules
        .insert("blocks.0.conv".into(), Box::new(linear));
    let weight = (
        fx_nn::module::TensorKind::Buffer,
        Tensor::ones(3)?.into_value(),
    );
    attributes.tensors.insert("blocks.0.scale".into(), weight);
    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let conv = graph.call_module("blocks.0.conv", (x,), ())?;
    let scale = graph.get_attr("blocks.0.scale")?;
    let mul = graph.call_function(operator::mul, (conv, scale), ())?;
    let sum = graph.call_method("sum", (mul,), [("keepdim", true)])?;
    graph.output(sum)?;
    let gm = GraphModule::new(attributes, graph, "Every")?;
    assert_eq!(
        gm.code(),
        r#"
pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
    let blocks_0_conv = self.blocks[0].conv.forward(x)?;
    let blocks_0_scale = &self.blocks[0].scale;
    let mul = (&blocks_0_conv * blocks_0_scale)?;  drop(blocks_0_conv);
    let sum = mul.sum_keepdim(..)?;  drop(mul);
    Ok(sum)
}
"#
        .trim_start()
    );
    Ok(())
}

/// Keywords in the places that they have in the signature, defaults between them, lists, tuples and slices.
#[test]
fn arguments() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor, n: Int| {
        let joined = ops::cat(&[x.clone(), x.relu()?], 1)?;
        let part = joined.i((.., 1..3, fx_nn::NewAxis))?;
        part.clamp(None, 2.0)?.reshape((n, -1))?.softmax(-1)
    }))?;
    assert_eq!(
        gm.code(),
        r#"
pub fn forward(&self, x: &Tensor, n: Int) -> Result<Tensor> {
    let relu = x.relu()?;
    let cat = fx_nn::ops::cat(&[x.clone(), relu.clone()], 1)?;  drop(relu);
    let getitem = cat.i((.., 1..3, NewAxis))?;  drop(cat);
    let clamp = getitem.clamp(None, 2.0)?;  drop(getitem);
    let reshape = clamp.reshape((n, -1))?;  drop(clamp);
    let softmax = reshape.softmax(-1)?;  drop(reshape);
    Ok(softmax)
}
"#
        .trim_start()
    );
    Ok(())
}

/// Several results: a tuple's, and a list's.
#[test]
fn results() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        let (values, indices) = x.topk(2, -1, true, true)?;
        let [a, b] = x.chunk(2, 0)?.unpack::<2>()?;
        Ok(((&values * &indices)?, vec![a, b], x.size(0)?))
    }))?;
    assert_eq!(
        gm.code(),
        r#"
pub fn forward(&self, x: &Tensor) -> Result<(Tensor, Vec<Tensor>, Int)> {
    let topk = x.topk(2, -1, true, true)?;
    let getitem = topk.0.clone();
    let getitem_1 = topk.1.clone();  drop(topk);
    let chunk = x.chunk(2, 0)?;
    let getitem_2 = chunk.get(0)?;
    let getitem_3 = chunk.get(1)?;  drop(chunk);
    let mul = (&getitem * &getitem_1)?;  drop(getitem); drop(getitem_1);
    let size = x.size(0)?;
    Ok((mul, vec![getitem_2, getitem_3], size))
}
"#
        .trim_start()
    );
    Ok(())
}

/// Structures that are taken apart, and others that are put together.
#[test]
fn structures() -> Result<()> {
    let gm = Trace::new(traced!(dicts))
        .concrete("x", tree!({"a": [PH, PH], "b": [PH]}))
        .graph_module()?;
    assert_eq!(
        gm.code(),
        r#"
pub fn forward(&self, x: IndexMap<String, Vec<Tensor>>) -> Result<IndexMap<String, Tensor>> {
    let x_1 = &x["a"][0];
    let x_2 = &x["a"][1];
    let x_3 = &x["b"][0];
    let add = (x_1 + x_3)?;
    Ok(IndexMap::from_iter([("sum".to_string(), add), ("first".to_string(), x_2.clone())]))
}
"#
        .trim_start()
    );
    let gm = Trace::new(traced!(tuples))
        .concrete("x", tree!((PH, (PH, PH))))
        .graph_module()?;
    assert_eq!(
        gm.code(),
        r#"
pub fn forward(&self, x: (Tensor, (Tensor, Tensor))) -> Result<(Tensor, Vec<Tensor>)> {
    let x_1 = &x.0;
    let x_2 = &x.1.0;
    let x_3 = &x.1.1;
    let add = (x_1 + x_2)?;
    Ok((add, vec![x_3.clone(), x_1.clone()]))
}
"#
        .trim_start()
    );
    Ok(())
}

#[trace]
fn guarded(
    x: &Tensor,
    by: f64,
    bias: Option<&Tensor>,
    #[default(2.0)] scale: Float,
) -> Result<Tensor> {
    assert!(x.size(0)? > 1, "a batch of more than one");
    let y = ((x * by)? * scale)?;
    match bias {
        Some(bias) => y + bias,
        None => Ok(y),
    }
}

/// Declared types and defaults, specialised inputs, and claims.
#[test]
fn types_and_guards() -> Result<()> {
    let gm = Trace::new(traced!(guarded))
        .concrete("by", 0.5)
        .concrete("bias", PH)
        .graph_module()?;
    assert_eq!(
        gm.code(),
        r#"
pub fn forward(&self, x: &Tensor, by: f64, bias: Option<&Tensor>, #[default(2.0)] scale: Float) -> Result<Tensor> {
    let bias = bias.ok_or_else(|| Error::msg("`bias` is missing: it was there when this was traced"))?;
    if by != 0.5 { return Err(Error::msg("`by` was specialised")); }
    let size = x.size(0)?;
    let gt = (size > 1)?;
    assert!(gt, "a batch of more than one");
    let mul = (x * 0.5)?;
    let mul_1 = (&mul * scale)?;  drop(mul);
    let add = (&mul_1 + bias)?;  drop(mul_1);
    Ok(add)
}
"#
            .trim_start()
    );
    Ok(())
}

/// Named arguments of operators are written in their places.
#[test]
fn operators_with_arguments_by_name_lose_none() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| {
        let y = ((x + 1.0)? * 2.0)?.neg()?.clamp(0.0, 1.0)?.matmul(x)?;
        let n = (x.shape()?.get(0)? - 1)?;
        let parts = y.chunk(2, 0)?;
        ops::relu(&(parts.get(1)? * n)?)
    }))?;
    let code = gm.code();
    assert!(
        gm.apply(&fx_nn::passes::NormalizeArguments::by_name())?
            .changed
    );
    assert_eq!(gm.code(), code);

    let mut graph = Graph::new();
    let x = graph.placeholder("x")?;
    let y = graph.call_function(operator::sub, (), [("b", x), ("a", x)])?;
    let y = graph.call_function(operator::add, (y,), [("b", 1.0)])?;
    graph.output(y)?;
    let gm = GraphModule::new(Attributes::default(), graph, "ByHand")?;
    for part in ["(x - x)?", "(&sub + 1.0)?"] {
        assert!(gm.code().contains(part), "{}", gm.code());
    }
    Ok(())
}

/// What nobody uses of a branch is no value of a statement; a truth value beside a tensor has no symbol in Rust; an
/// index of more parts than tuples have is a call.
#[test]
fn statements_that_rust_takes() -> Result<()> {
    let gm = symbolic_trace(traced!(|x: &Tensor, k: Int| {
        let _unused = fx_nn::control::cond(k.gt(1)?, || x.relu(), || x.exp())?;
        let parts = vec![Value::None; 13];
        let deep: Tensor = operator::getitem.call_as((x, Value::Tuple(parts.into())))?;
        let unlike: Tensor = operator::ne.call_as((&deep, false))?;
        Ok::<_, Error>(unlike)
    }))?;
    assert_snapshot!(gm.code(), @"
    pub fn forward(&self, x: &Tensor, k: Int) -> Result<Tensor> {
        let gt = (k > 1)?;
        let _ = if gt {
            let relu = x.relu()?;
            relu
        } else {
            let exp = x.exp()?;
            exp
        };
        let getitem = fx_nn::operator::getitem.call_as::<Tensor>((x, Value::Tuple(Box::new([Value::None, Value::None, Value::None, Value::None, Value::None, Value::None, Value::None, Value::None, Value::None, Value::None, Value::None, Value::None, Value::None]))))?;
        let ne = fx_nn::operator::ne.call_as::<Tensor>((&getitem, false))?;  drop(getitem);
        Ok(ne)
    }
    ");
    Ok(())
}

/// A graph may hold a tuple where a function takes a list: its source is Rust all the same.
#[test]
fn tuples_where_lists_are_taken() -> Result<()> {
    let x = Tensor::from_vec((0..24).map(f64::from).collect(), (2, 3, 4))?;
    assert_eq!(ops::flip(&x, ())?.to_vec()?, x.to_vec()?);
    assert_eq!(ops::flip(&x, (0,))?.dims()?, [2, 3, 4]);
    assert_eq!(x.tensor_split((1, 2), -1)?.known().len(), 3);
    assert_eq!(x.dsplit(())?.known().len(), 1);
    let image = ops::interpolate(&x, None, (2.0,), "nearest", None)?;
    assert_eq!(image.dims()?, [2, 3, 8]);
    let part = x.i((
        NewAxis,
        ..,
        NewAxis,
        0..2,
        NewAxis,
        NewAxis,
        Ellipsis,
        NewAxis,
    ))?;
    assert_eq!(part.dims()?, [1, 2, 1, 2, 1, 1, 4, 1]);
    Ok(())
}
