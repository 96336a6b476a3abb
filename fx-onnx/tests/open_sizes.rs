//! Files that leave sizes open: bodies whose values have no types, turns and lengths that a run decides.

use fx_nn::prelude::*;
use fx_onnx::proto::{
    AttributeProto, Dimension, DimensionValue, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, TensorProto, TensorShapeProto, TensorType, TypeProto, TypeValue,
    ValueInfoProto,
};
use fx_onnx::{Load, OnnxExt as _};
use prost::Message;

/// A value with a type, or with its name alone.
fn value(name: &str, of: Option<(i32, &[&str])>) -> ValueInfoProto {
    let shape = |sizes: &[&str]| {
        let dim = sizes.iter().map(|size| Dimension {
            value: Some(match size.parse() {
                Ok(number) => DimensionValue::Value(number),
                Err(_) => DimensionValue::Param((*size).to_string()),
            }),
        });
        TensorShapeProto { dim: dim.collect() }
    };
    ValueInfoProto {
        name: name.to_string(),
        r#type: of.map(|(elem_type, sizes)| TypeProto {
            value: Some(TypeValue::Tensor(TensorType {
                elem_type,
                shape: Some(shape(sizes)),
            })),
        }),
        ..ValueInfoProto::default()
    }
}

fn names(text: &str) -> Vec<String> {
    text.split(' ')
        .map(|name| name.trim_matches('_').to_string())
        .collect()
}

/// A node: its operator, inputs and outputs, and whole numbers as attributes; `_` is an input that is left out.
fn node(op: &str, input: &str, output: &str, numbers: &[(&str, i64)]) -> NodeProto {
    let attribute = numbers.iter().map(|(name, number)| AttributeProto {
        name: (*name).to_string(),
        r#type: 2,
        i: Some(*number),
        ..AttributeProto::default()
    });
    NodeProto {
        op_type: op.to_string(),
        input: names(input),
        output: names(output),
        attribute: attribute.collect(),
        ..NodeProto::default()
    }
}

fn with_body(mut node: NodeProto, name: &str, body: GraphProto) -> NodeProto {
    node.attribute.push(AttributeProto {
        name: name.to_string(),
        r#type: 5,
        g: Some(body),
        ..AttributeProto::default()
    });
    node
}

/// A body: its nodes, inputs and outputs, which have names alone.
fn body(node: Vec<NodeProto>, input: &str, output: &str) -> GraphProto {
    let all = |text: &str| names(text).iter().map(|name| value(name, None)).collect();
    GraphProto {
        node,
        name: "body".to_string(),
        input: if input.is_empty() {
            Vec::new()
        } else {
            all(input)
        },
        output: all(output),
        ..GraphProto::default()
    }
}

fn read(
    version: i64,
    node: Vec<NodeProto>,
    input: Vec<ValueInfoProto>,
    output: &str,
) -> Result<GraphModule> {
    read_with(version, node, input, Vec::new(), output)
}

/// A constant of a file.
fn constant(name: &str, x: &Tensor) -> Result<TensorProto> {
    Ok(TensorProto {
        name: name.to_string(),
        data_type: 1,
        dims: x.dims()?.iter().map(|size| *size as i64).collect(),
        raw_data: Some(
            x.to_vec()?
                .into_iter()
                .flat_map(|number| (number as f32).to_le_bytes())
                .collect(),
        ),
        ..TensorProto::default()
    })
}

fn read_with(
    version: i64,
    node: Vec<NodeProto>,
    input: Vec<ValueInfoProto>,
    initializer: Vec<TensorProto>,
    output: &str,
) -> Result<GraphModule> {
    let output = names(output).iter().map(|name| value(name, None)).collect();
    let model = ModelProto {
        ir_version: 10,
        opset_import: [
            ("", version),
            ("ai.onnx.ml", 5),
            ("ai.onnx.preview", 1),
            ("com.microsoft", 1),
            ("com.microsoft.nchwc", 1),
        ]
        .map(|(domain, version)| OperatorSetIdProto {
            domain: domain.to_string(),
            version,
        })
        .into(),
        graph: Some(GraphProto {
            node,
            name: "g".to_string(),
            input,
            output,
            initializer,
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    };
    Ok(Load::new().from_bytes(model.encode_to_vec())?.module)
}

fn same(a: &Tensor, b: &Tensor) -> Result<()> {
    assert_eq!(a.dims()?, b.dims()?);
    assert!(fx_nn::allclose(a, b, 1e-5, 1e-6)?.close, "{a:?} and {b:?}");
    Ok(())
}

/// A body in which a rule asks for the number of dims.
fn step(state: &str, more: &str, out: &str) -> Vec<NodeProto> {
    vec![
        node("Softmax", state, "soft", &[("axis", -1)]),
        node("Add", &format!("soft {more}"), out, &[]),
    ]
}

/// A loop of as many turns as a run says.
#[test]
fn loops_whose_body_has_no_types() -> Result<()> {
    let mut nodes = step("s", "x", "so");
    nodes.push(node("Identity", "c", "co", &[]));
    let turns = body(nodes, "i c s", "co so");
    let turns = with_body(node("Loop", "n _ x", "y", &[]), "body", turns);
    let inputs = vec![
        value("x", Some((1, &["batch", "3"]))),
        value("n", Some((7, &[]))),
    ];
    let gm = read(13, vec![turns], inputs, "y")?;
    let x = Tensor::randn((2, 3))?;
    for count in [0i64, 1, 3] {
        let mut wanted = x.clone();
        for _ in 0..count {
            wanted = (ops::softmax(&wanted, -1)? + &x)?;
        }
        let n = Tensor::from_vec(vec![count], ())?;
        same(&gm.forward::<Tensor>((&x, &n))?, &wanted)?;
    }
    Ok(())
}

/// What grows from turn to turn has no shape that a look at one turn shows.
#[test]
fn a_body_that_changes_a_shape_is_not_taken_for_one_that_keeps_it() -> Result<()> {
    let nodes = vec![
        node("Identity", "c", "co", &[]),
        node("Softmax", "s", "soft", &[("axis", -1)]),
        node("Concat", "soft x", "so", &[("axis", 0)]),
    ];
    let turns = with_body(
        node("Loop", "n _ x", "y", &[]),
        "body",
        body(nodes, "i c s", "co so"),
    );
    let inputs = vec![
        value("x", Some((1, &["batch", "3"]))),
        value("n", Some((7, &[]))),
    ];
    let error = read(13, vec![turns], inputs, "y").map(|_| ());
    let text = error.expect_err("its sizes are not known").to_string();
    assert!(text.contains("the number of dims"), "{text}");
    Ok(())
}

/// Scans in scans, and branches in them.
#[test]
fn scans_whose_body_has_no_types() -> Result<()> {
    let inner = body(step("a", "row", "ao"), "a row", "ao ao");
    let then = body(step("s", "s", "p"), "", "p");
    let otherwise = body(vec![node("Softmax", "s", "p", &[("axis", -1)])], "", "p");
    let choice = with_body(node("If", "go", "q", &[]), "then_branch", then);
    let nodes = vec![
        with_body(
            node("Scan", "s xt", "last rows", &[("num_scan_inputs", 1)]),
            "body",
            inner,
        ),
        with_body(choice, "else_branch", otherwise),
        node("Add", "last q", "so", &[]),
    ];
    let outer = with_body(
        node("Scan", "s0 x", "y z", &[("num_scan_inputs", 1)]),
        "body",
        body(nodes, "s xt", "so rows"),
    );
    let inputs = vec![
        value("x", Some((1, &["time", "rows", "3"]))),
        value("s0", Some((1, &["3"]))),
        value("go", Some((9, &[]))),
    ];
    let gm = read(13, vec![outer], inputs, "y z")?;
    for (time, rows, go) in [(1, 2, true), (3, 4, false)] {
        let (x, s0) = (Tensor::randn((time, rows, 3))?, Tensor::randn(3)?);
        let go_in = Tensor::full((), go, DType::Bool)?;
        let (y, z): (Tensor, Tensor) = gm.forward((&x, &s0, &go_in))?;
        let (mut s, mut all) = (s0.clone(), Vec::new());
        for at in 0..time as i64 {
            let xt = ops::select(&x, 0, at)?;
            let (mut a, mut each) = (s.clone(), Vec::new());
            for row in 0..rows as i64 {
                a = (ops::softmax(&a, -1)? + ops::select(&xt, 0, row)?)?;
                each.push(a.clone());
            }
            all.push(ops::stack(&each, 0)?);
            let soft = ops::softmax(&s, -1)?;
            let q = if go { (soft + &s)? } else { soft };
            s = (a + q)?;
        }
        same(&z, &ops::stack(&all, 0)?)?;
        same(&y, &s)?;
    }
    Ok(())
}

/// A gate and what it lets through, of any number of rows.
#[test]
fn gated_rows() -> Result<()> {
    let inputs = ["a", "b"].map(|name| value(name, Some((1, &["rows", "3"]))));
    let gm = read(
        28,
        vec![node("SwiGLU", "a b", "y", &[])],
        inputs.into(),
        "y",
    )?;
    for rows in [1, 4] {
        let (a, b) = (Tensor::randn((rows, 3))?, Tensor::randn((rows, 3))?);
        same(&gm.forward::<Tensor>((&a, &b))?, &(ops::silu(&a)? * &b)?)?;
    }
    Ok(())
}

/// Attention of any length, whose node has a graph that changes its scores.
#[test]
fn attention_with_graphs_of_its_own() -> Result<()> {
    let scores = body(vec![node("Tanh", "s", "t", &[])], "s", "t");
    let weights = body(vec![node("Sqrt", "w", "r", &[])], "w", "r");
    let flex = NodeProto {
        domain: "ai.onnx.preview".to_string(),
        ..node("FlexAttention", "q k v", "y", &[])
    };
    let flex = with_body(with_body(flex, "score_mod", scores), "prob_mod", weights);
    let inputs = [
        ("q", ["batch", "4", "rows", "8"]),
        ("k", ["batch", "2", "keys", "8"]),
        ("v", ["batch", "2", "keys", "3"]),
    ];
    let inputs = inputs.map(|(name, sizes)| value(name, Some((1, &sizes))));
    let gm = read(26, vec![flex], inputs.into(), "y")?;
    for (batch, rows, keys) in [(1, 2, 3), (2, 4, 1)] {
        let q = Tensor::randn((batch, 4, rows, 8))?;
        let k = Tensor::randn((batch, 2, keys, 8))?;
        let v = Tensor::randn((batch, 2, keys, 3))?;
        let each = |x: &Tensor| ops::repeat_interleave(x, 2, Some(1));
        let scores = ops::matmul(&q, &ops::transpose(&each(&k)?, -2, -1)?)?;
        let scores = ops::tanh(&(scores / 8f64.sqrt())?)?;
        let weights = ops::sqrt(&ops::softmax(&scores, -1)?)?;
        let wanted = ops::matmul(&weights, &each(&v)?)?;
        same(&gm.forward::<Tensor>((&q, &k, &v))?, &wanted)?;
    }
    Ok(())
}

/// Attention of any length, with keys that are padded.
#[test]
fn attention_over_a_window_of_open_sizes() -> Result<()> {
    let attributes = [("is_causal", 1), ("left_window_size", 2)];
    let of = |inputs: &str| node("Attention", inputs, "y", &attributes);
    let keys = || value("k", Some((1, &["batch", "2", "keys", "4"])));
    let rows = || value("q", Some((1, &["batch", "2", "rows", "4"])));
    let values = || value("v", Some((1, &["batch", "2", "keys", "4"])));
    let counts = value("n", Some((7, &["batch"])));
    let gm = read(
        25,
        vec![of("q k v _ _ _ n")],
        vec![rows(), keys(), values(), counts],
        "y",
    )?;
    for (rows, keys, counts) in [(3, 5, [4i64, 5]), (1, 7, [7, 2])] {
        let q = Tensor::randn((2, 2, rows, 4))?;
        let (k, v) = (
            Tensor::randn((2, 2, keys, 4))?,
            Tensor::randn((2, 2, keys, 4))?,
        );
        let mut hidden: Vec<u8> = Vec::new();
        for count in counts {
            for row in 0..rows as i64 {
                let place = row + count - rows as i64;
                hidden.extend(
                    (0..keys as i64)
                        .map(|key| u8::from(key > place || key < place - 2 || key >= count)),
                );
            }
        }
        let hidden = Tensor::from_vec(hidden, (2, 1, rows, keys))?.ne(0)?;
        let scores = (ops::matmul(&q, &ops::transpose(&k, -2, -1)?)? / 2.0)?;
        let scores = ops::masked_fill(&scores, &hidden, f64::NEG_INFINITY)?;
        let wanted = ops::matmul(&ops::softmax(&scores, -1)?, &v)?;
        let n = Tensor::from_vec(counts.to_vec(), 2)?;
        same(&gm.forward::<Tensor>((&q, &k, &v, &n))?, &wanted)?;
    }
    Ok(())
}

/// Volumes and curves go out and come back; at a border ONNX's curve is another one than PyTorch's.
#[test]
fn points_of_grids_go_out_and_come_back() -> Result<()> {
    let (image, points) = (Tensor::randn((1, 2, 4, 5))?, Tensor::randn((1, 3, 2, 2))?);
    let (volume, deep) = (
        Tensor::randn((1, 2, 3, 4, 5))?,
        Tensor::randn((1, 2, 3, 2, 3))?,
    );
    for padding in ["zeros", "border", "reflection"] {
        let cubic = symbolic_trace(traced!(move |x: &Tensor, g: &Tensor| {
            ops::grid_sample(x, g, "bicubic", padding, false)
        }))?;
        let export = fx_onnx::Export::example((&image, &points)).checked();
        match padding {
            "border" => assert!(cubic.to_onnx_bytes(&export).is_err()),
            _ => drop(cubic.to_onnx_bytes(&export)?),
        }
        let linear = symbolic_trace(traced!(move |x: &Tensor, g: &Tensor| {
            ops::grid_sample(x, g, "bilinear", padding, true)
        }))?;
        let export = fx_onnx::Export::example((&volume, &deep)).checked();
        let (_, report) = linear.to_onnx_bytes(&export)?;
        assert!(report.max_rel_err.is_some_and(|error| error < 1e-5));
    }
    Ok(())
}

/// Maps of classes to scores are the scores.
#[test]
fn maps_of_scores_are_the_scores() -> Result<()> {
    let maps = NodeProto {
        domain: "ai.onnx.ml".to_string(),
        ..node("ZipMap", "x", "y", &[])
    };
    let inputs = vec![value("x", Some((1, &["rows", "3"])))];
    let gm = read(18, vec![maps], inputs, "y")?;
    for rows in [1, 4] {
        let x = Tensor::randn((rows, 3))?;
        same(&gm.forward::<Tensor>(&x)?, &x)?;
    }
    Ok(())
}

/// Images whose channels lie in blocks of eight, as a file's weights say: of a plain image, of each channel alone, and of
/// filled channels.
#[test]
fn images_in_blocks() -> Result<()> {
    let blocked = |op: &str, input: &str, output: &str, numbers: &[(&str, i64)]| NodeProto {
        domain: "com.microsoft.nchwc".to_string(),
        ..node(op, input, output, numbers)
    };
    // The weights as the file has them: eight results beside each other, and eight channels where these lie in blocks.
    let results = |w: &Tensor| {
        let [o, i, h, w_] = <[usize; 4]>::try_from(w.dims()?).map_err(Error::msg)?;
        let parts = ops::reshape(w, [o / 8, 8, i, h, w_].map(|size| size as i64))?;
        ops::reshape(&ops::permute(&parts, [0, 2, 3, 4, 1])?, (o, i, h, w_))
    };
    let both = |w: &Tensor| {
        let [o, i, h, w_] = <[usize; 4]>::try_from(w.dims()?).map_err(Error::msg)?;
        let parts = ops::reshape(w, [o / 8, 8, i / 8, 8, h, w_].map(|size| size as i64))?;
        ops::reshape(&ops::permute(&parts, [0, 2, 4, 5, 3, 1])?, (o, i, h, w_))
    };
    let (first, each) = (Tensor::randn((8, 3, 3, 3))?, Tensor::randn((8, 1, 3, 3))?);
    let last = ops::pad(
        &Tensor::randn((16, 5, 1, 1))?,
        [0i64, 0, 0, 0, 0, 3],
        "constant",
        0.0,
    )?;
    let constants = vec![
        constant("a", &results(&first)?)?,
        constant("b", &results(&each)?)?,
        constant("c", &both(&last)?)?,
    ];
    let nodes = vec![
        blocked("Conv", "x a", "p", &[]),
        blocked("Conv", "p b", "q", &[("group", 8)]),
        blocked("ReorderOutput", "q", "r", &[("channels", 5)]),
        node("Relu", "r", "s", &[]),
        blocked("ReorderInput", "s", "t", &[]),
        blocked("Conv", "t c", "u", &[]),
        blocked("ReorderOutput", "u", "y", &[("channels", 12)]),
    ];
    let inputs = vec![value("x", Some((1, &["batch", "3", "height", "width"])))];
    let gm = read_with(18, nodes, inputs, constants, "y")?;
    for (batch, height, width) in [(1, 5, 6), (2, 7, 5)] {
        let x = Tensor::randn((batch, 3, height, width))?;
        let conv = |x: &Tensor, w: &Tensor, groups: usize| ops::conv2d(x, w, None, 1, 0, 1, groups);
        let y = conv(&conv(&x, &first, 1)?, &each, 8)?;
        let y = ops::relu(&ops::narrow(&y, 1, 0, 5)?)?;
        let y = conv(&y, &ops::narrow(&last, 1, 0, 5)?, 1)?;
        same(&gm.forward::<Tensor>(&x)?, &ops::narrow(&y, 1, 0, 12)?)?;
    }
    Ok(())
}
