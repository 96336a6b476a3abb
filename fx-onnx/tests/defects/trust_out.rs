//! Files that go out: indices, numbers, element types and shapes are those of the graph module. The numbers are PyTorch's.

use fx_nn::lowering::Val;
use fx_nn::prelude::*;
use fx_nn::trace::CallArgs;
use fx_onnx::proto::{ModelProto, NodeProto};
use fx_onnx::{Cx, Export, Load, OnnxExt};
use prost::Message;

const INF: f64 = f64::INFINITY;

fn args(all: &[&Tensor]) -> CallArgs {
    CallArgs {
        args: all.iter().map(|x| Value::object((*x).clone())).collect(),
        kwargs: Vec::new(),
    }
}

fn written(gm: &GraphModule, inputs: &[&Tensor]) -> Result<Vec<u8>> {
    Ok(gm.to_onnx_bytes(&Export::example(args(inputs)))?.0)
}

/// What the file of a graph module gives, read back.
fn run<T: fx_nn::trace::FromValue>(gm: GraphModule, inputs: &[&Tensor]) -> Result<T> {
    let read = Load::new().from_bytes(written(&gm, inputs)?)?.module;
    read.forward(args(inputs))
}

fn tensor(all: &[f64], dtype: DType) -> Result<Tensor> {
    Tensor::from_vec(all.to_vec(), all.len())?.to_dtype(dtype)
}

fn close(x: &Tensor, want: &[f64]) -> Result<()> {
    let got = x.to_vec()?;
    assert_eq!(got.len(), want.len(), "{got:?} against {want:?}");
    for (a, b) in got.iter().zip(want) {
        let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-6 * b.abs();
        assert!(same, "{got:?} against {want:?}");
    }
    Ok(())
}

/// The element type of the first input of each node with an operator.
fn types(bytes: &[u8], op: &str) -> Result<Vec<i32>> {
    let model = ModelProto::decode(bytes).map_err(Error::other)?;
    let graph = model.graph.unwrap_or_default();
    let cast = |node: &NodeProto| {
        let to = node.attribute.iter().find(|a| a.name == "to")?;
        Some(to.i.unwrap_or_default() as i32)
    };
    let of = |name: &str| -> Option<i32> {
        let made = graph
            .node
            .iter()
            .find(|node| node.output.iter().any(|o| o == name));
        if let Some(to) = made.and_then(cast) {
            return Some(to);
        }
        let infos = graph.input.iter().chain(&graph.value_info);
        let info = infos.clone().find(|info| info.name == name)?;
        match info.r#type.as_ref()?.value.as_ref()? {
            fx_onnx::proto::TypeValue::Tensor(tensor) => Some(tensor.elem_type),
            _ => None,
        }
    };
    let nodes = graph.node.iter().filter(|node| node.op_type == op);
    Ok(nodes.map(|node| of(&node.input[0]).unwrap_or(-1)).collect())
}

#[test]
fn defect_t3_e1_an_ellipsis_is_written() -> Result<()> {
    let x = Tensor::arange(0, 16)?
        .to_dtype(DType::F32)?
        .reshape((4, 4))?;
    let gm = symbolic_trace(traced!(|x: &Tensor| x + x.i((Ellipsis, -1))?))?;
    let y: Tensor = run(gm, &[&x])?;
    close(&y.i(0)?, &[3.0, 8.0, 13.0, 18.0])?;
    let gm = symbolic_trace(traced!(|x: &Tensor| x.i((0, Ellipsis))))?;
    close(&run(gm, &[&x])?, &[0.0, 1.0, 2.0, 3.0])?;
    let gm = symbolic_trace(traced!(|x: &Tensor| x.i((Ellipsis, 1..3))))?;
    let y: Tensor = run(gm, &[&x])?;
    assert_eq!(y.dims()?, [4, 2]);
    let gm = symbolic_trace(traced!(|x: &Tensor| x.i((Ellipsis, NewAxis))))?;
    let y: Tensor = run(gm, &[&x])?;
    assert_eq!(y.dims()?, [4, 4, 1]);
    Ok(())
}

/// An index of any values.
struct AnyIndex(Value);

impl fx_nn::Index for AnyIndex {
    fn into_index(self) -> Value {
        self.0
    }
}

#[test]
fn defect_t3_e1_a_mask_beside_a_slice_is_a_mask() -> Result<()> {
    let x = Tensor::arange(0, 6)?
        .to_dtype(DType::F32)?
        .reshape((2, 3))?;
    let mask = tensor(&[0.0, 1.0, 1.0], DType::Bool)?;
    let gm = symbolic_trace(traced!(|x: &Tensor, mask: &Tensor| {
        let every = Value::Slice(Box::default());
        x.i(AnyIndex(Value::Tuple(
            [every, Value::object(mask.clone())].into(),
        )))
    }))?;
    let y: Tensor = run(gm, &[&x, &mask])?;
    assert_eq!(y.dims()?, [2, 2]);
    close(&y, &[1.0, 2.0, 4.0, 5.0])
}

#[wrap]
fn scaled(x: &Tensor, #[default(1.0)] by: f64) -> Result<Tensor> {
    x * by
}

fx_nn::function_table! { fx_nn::shapes::ShapeRule {
    fx_nn::function!(scaled) => fx_nn::shapes::ShapeRule(|call| Ok(fx_nn::ir::ValueMeta::from(call.tensor("x")?.clone()))),
} }

#[test]
fn defect_t3_e1_what_a_rule_does_not_read_is_refused() -> Result<()> {
    let rule = |cx: &mut Cx, call: &fx_nn::lowering::OpCall<'_>| {
        let x = call.tensor("x")?;
        let name = cx.op("Identity", &[&x.name]);
        call.given(name)
    };
    let x = Tensor::ones(3)?;
    let gm = symbolic_trace(traced!(|x: &Tensor| scaled(x, 2.0)))?;
    let export = Export::example(args(&[&x])).op(fx_nn::function!(scaled), rule);
    let error = gm
        .to_onnx_bytes(&export)
        .err()
        .map(|e| e.to_string())
        .unwrap_or_default();
    assert!(
        error.contains("%scaled") && error.contains("does not read `by`"),
        "{error}"
    );
    // The default says nothing that the rule does not know.
    let gm = symbolic_trace(traced!(|x: &Tensor| scaled(x, 1.0)))?;
    gm.to_onnx_bytes(&Export::example(args(&[&x])).op(fx_nn::function!(scaled), rule))?;
    Ok(())
}

#[test]
fn defect_t3_e1_large_whole_numbers_are_written_exactly() -> Result<()> {
    let x = Tensor::arange(0, 2)?;
    let gm = symbolic_trace(traced!(
        |x: &Tensor| (x + 9_007_199_254_740_993i64)? - 9_007_199_254_740_992i64
    ))?;
    close(&run(gm, &[&x])?, &[1.0, 2.0])
}

#[test]
fn defect_t3_e2_signs_and_infinities_are_in_the_file() -> Result<()> {
    let zeros = tensor(&[0.0, -0.0, -1.0, -INF], DType::F32)?;
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::signbit(x)))?;
    close(&run(gm, &[&zeros])?, &[0.0, 1.0, 1.0, 1.0])?;
    let gm = symbolic_trace(traced!(
        |x: &Tensor| 1.0 / ops::copysign(&ops::ones_like(x, None)?, x)?
    ))?;
    close(&run(gm, &[&zeros])?, &[1.0, -1.0, -1.0, -1.0])?;
    let large = tensor(&[3e30, 1.0], DType::F32)?;
    let other = tensor(&[4e30, INF], DType::F32)?;
    let gm = symbolic_trace(traced!(|x: &Tensor, y: &Tensor| ops::hypot(x, y)))?;
    close(&run(gm, &[&large, &other])?, &[5e30, INF])?;
    let gm = symbolic_trace(traced!(|x: &Tensor, y: &Tensor| ops::isclose(
        x, y, 1e-5, 1e-8, false
    )))?;
    close(&run(gm, &[&large, &other])?, &[0.0, 0.0])
}

#[test]
fn defect_t3_e4_quotients_are_pytorchs() -> Result<()> {
    let quotients = [9.0, 0.0, -1.0, -2.0, -4.0, 0.0, INF, INF, -10.0];
    let rests = [
        [
            0.099_999_986_588_954_93,
            3.0,
            INF,
            1.0,
            -0.5,
            0.0,
            f64::NAN,
            f64::NAN,
            1.490_116_119_384_765_6e-8,
        ],
        [
            0.099_999_999_999_999_95,
            3.0,
            INF,
            1.0,
            -0.5,
            0.0,
            f64::NAN,
            f64::NAN,
            5.551_115_123_125_783e-17,
        ],
    ];
    for (dtype, rests) in [DType::F32, DType::F64].into_iter().zip(rests) {
        let a = tensor(&[1.0, 3.0, -3.0, -3.0, 7.5, 0.0, 5.0, 1.0, -1.0], dtype)?;
        let b = tensor(&[0.1, INF, INF, 2.0, -2.0, 3.0, 0.0, 0.0, 0.1], dtype)?;
        let gm = symbolic_trace(traced!(|a: &Tensor, b: &Tensor| ops::floor_divide(a, b)))?;
        close(&run(gm, &[&a, &b])?, &quotients)?;
        let gm = symbolic_trace(traced!(|a: &Tensor, b: &Tensor| ops::remainder(a, b)))?;
        close(&run(gm, &[&a, &b])?, &rests)?;
        let gm = symbolic_trace(traced!(|a: &Tensor| a % 0.1))?;
        let y: Tensor = run(gm, &[&a])?;
        let first = y.to_vec()?[0];
        assert!((first - rests[0]).abs() < 1e-9, "{first}");
    }
    Ok(())
}

#[test]
fn defect_t3_e5_a_bound_that_is_left_out_is_infinite() -> Result<()> {
    for dtype in [DType::F32, DType::F64, DType::F16] {
        let x = tensor(&[-INF, 1.0, INF, f64::NAN], dtype)?;
        let gm = symbolic_trace(traced!(|x: &Tensor| ops::clamp(x, 0.0, None)))?;
        close(&run(gm, &[&x])?, &[0.0, 1.0, INF, f64::NAN])?;
        let gm = symbolic_trace(traced!(|x: &Tensor| ops::clamp(x, None, 0.0)))?;
        close(&run(gm, &[&x])?, &[-INF, 0.0, 0.0, f64::NAN])?;
        let bounds: Vec<usize> = input_counts(
            &written(
                &symbolic_trace(traced!(|x: &Tensor| ops::clamp(x, None, 0.0)))?,
                &[&x],
            )?,
            "Clip",
        )?;
        assert_eq!(
            bounds,
            [3],
            "engines take a bound that is missing as the largest finite number"
        );
    }
    Ok(())
}

/// How many inputs each node with an operator has, that are there.
fn input_counts(bytes: &[u8], op: &str) -> Result<Vec<usize>> {
    let model = ModelProto::decode(bytes).map_err(Error::other)?;
    let graph = model.graph.unwrap_or_default();
    let nodes = graph.node.iter().filter(|node| node.op_type == op);
    Ok(nodes
        .map(|node| node.input.iter().filter(|name| !name.is_empty()).count())
        .collect())
}

#[test]
fn defect_t3_e7_a_file_that_differs_fails_its_check() -> Result<()> {
    let wrong = |cx: &mut Cx, call: &fx_nn::lowering::OpCall<'_>| {
        let x = call.tensor("x")?;
        let name = cx.op("Abs", &[&x.name]);
        call.given(name)
    };
    let x = tensor(&[-1.0, 2.0], DType::F32)?;
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        let y = (x + 0.0)?;
        let z = y.relu()?;
        Ok((y, z))
    }))?;
    let export = Export::example(args(&[&x]))
        .outputs(["same", "scores"])
        .checked();
    let (_, report) = gm.to_onnx_bytes(&export)?;
    assert_eq!(report.max_rel_err, Some(0.0));
    let export = export.op(fx_nn::function!(ops::relu), wrong);
    let error = gm
        .to_onnx_bytes(&export)
        .err()
        .map(|e| e.to_string())
        .unwrap_or_default();
    assert!(
        error.contains("`scores`") && error.contains("5.0e-1"),
        "{error}"
    );
    // Whole numbers are equal or wrong.
    let one_more = |cx: &mut Cx, call: &fx_nn::lowering::OpCall<'_>| {
        let x = call.tensor("x")?;
        let one = cx.i64(1);
        let name = cx.op("Add", &[&x.name, &one]);
        Ok(Val::from(fx_nn::lowering::Operand { name, ..x }))
    };
    let x = Tensor::arange(0, 1_000_000)?;
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::relu(x)))?;
    let export = Export::example(args(&[&x]))
        .checked()
        .op(fx_nn::function!(ops::relu), one_more);
    assert!(gm.to_onnx_bytes(&export).is_err());
    Ok(())
}

#[test]
fn defect_t3_e8_shifts_and_powers_of_whole_numbers_are_exact() -> Result<()> {
    let a = tensor(&[-9.0, 9.0, 7.0, -1.0], DType::I64)?;
    let by = tensor(&[64.0, 63.0, 70.0, 65.0], DType::I64)?;
    let gm = symbolic_trace(traced!(|a: &Tensor, b: &Tensor| ops::bitwise_right_shift(
        a, b
    )))?;
    close(&run(gm, &[&a, &by])?, &[-1.0, 0.0, 0.0, -1.0])?;
    let gm = symbolic_trace(traced!(|a: &Tensor, b: &Tensor| ops::bitwise_left_shift(
        a, b
    )))?;
    close(&run(gm, &[&a, &by])?, &[0.0, i64::MIN as f64, 0.0, 0.0])?;
    let gm = symbolic_trace(traced!(|a: &Tensor| ops::bitwise_right_shift(a, 2)))?;
    close(&run(gm, &[&a])?, &[-3.0, 2.0, 1.0, -1.0])?;
    let bytes = tensor(&[200.0, 7.0], DType::U8)?;
    let gm = symbolic_trace(traced!(|a: &Tensor| ops::bitwise_left_shift(a, 1)))?;
    close(&run(gm, &[&bytes])?, &[144.0, 14.0])?;
    let bases = tensor(&[3.0, -7.0, 2.0], DType::I64)?;
    let exponents = tensor(&[39.0, 21.0, 62.0], DType::I64)?;
    let gm = symbolic_trace(traced!(
        |a: &Tensor, b: &Tensor| a.pow(b)? - 4_052_555_153_018_976_000i64
    ))?;
    let y: Tensor = run(gm, &[&bases, &exponents])?;
    assert_eq!(y.to_vec()?[0], 267.0);
    let gm = symbolic_trace(traced!(
        |a: &Tensor| a.pow(39)? - 4_052_555_153_018_976_000i64
    ))?;
    let y: Tensor = run(gm, &[&bases])?;
    assert_eq!(y.to_vec()?[0], 267.0);
    Ok(())
}

#[test]
fn defect_t3_e8_operators_get_types_that_they_have() -> Result<()> {
    let x = tensor(&[200.0, 7.0], DType::U8)?.reshape((1, 2))?;
    let truths = tensor(&[1.0, 0.0, 1.0], DType::Bool)?;
    let of = |gm: GraphModule, input: &Tensor, op: &str| -> Result<(Vec<i32>, Vec<f64>)> {
        let y: Value = run(gm.clone(), &[input])?;
        let first = match &y {
            Value::List(items) | Value::Tuple(items) => {
                items.first().cloned().unwrap_or(Value::None)
            }
            one => one.clone(),
        };
        let first = first.downcast_ref::<Tensor>().cloned();
        let first = first.ok_or_else(|| Error::msg("a tensor"))?;
        Ok((types(&written(&gm, &[input])?, op)?, first.to_vec()?))
    };
    const INT32: i32 = 6;
    let gm = symbolic_trace(traced!(|x: &Tensor| -x))?;
    assert_eq!(of(gm, &x, "Neg")?, (vec![INT32], vec![56.0, 249.0]));
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::relu(x)))?;
    assert_eq!(of(gm, &x, "Relu")?, (vec![INT32], vec![200.0, 7.0]));
    let gm = symbolic_trace(traced!(|x: &Tensor| x.matmul(&x.t()?)))?;
    assert_eq!(of(gm, &x, "MatMul")?, (vec![INT32], vec![113.0]));
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::linear(x, x, None)))?;
    assert_eq!(of(gm, &x, "Gemm")?, (vec![INT32], vec![113.0]));
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::sign(x)))?;
    // A truth is its own sign.
    assert_eq!(of(gm, &truths, "Sign")?, (vec![], vec![1.0, 0.0, 1.0]));
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::sort(x, 0, false)))?;
    assert_eq!(of(gm, &truths, "TopK")?, (vec![INT32], vec![0.0, 1.0, 1.0]));
    Ok(())
}

#[test]
fn defect_t3_e9_tensors_without_dims_have_orders_and_places() -> Result<()> {
    let x = Tensor::full((), 3.0, DType::F32)?;
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::sort(x, 0, false)))?;
    let (values, places): (Tensor, Tensor) = run(gm, &[&x])?;
    assert_eq!((values.to_vec()?, places.to_vec()?), (vec![3.0], vec![0.0]));
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::kthvalue(x, 1, 0, false)))?;
    let (values, places): (Tensor, Tensor) = run(gm, &[&x])?;
    assert_eq!((values.dims()?, places.dims()?), (&[][..], &[][..]));
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::argsort(x, -1, true)))?;
    close(&run(gm, &[&x])?, &[0.0])?;
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::roll(x, 1, None)))?;
    close(&run(gm, &[&x])?, &[3.0])?;
    for nonzero in [
        symbolic_trace(traced!(|x: &Tensor| ops::nonzero(x)))?,
        symbolic_trace(traced!(|x: &Tensor| ops::argwhere(x)))?,
    ] {
        let places: Tensor = run(nonzero, &[&x])?;
        assert_eq!(places.dims()?, [1, 0]);
    }
    Ok(())
}

#[test]
fn defect_t3_e9_windows_and_pieces_are_pytorchs() -> Result<()> {
    let x = tensor(&[-1.0, -2.0, -3.0, 4.0], DType::F32)?.reshape((1, 1, 4))?;
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::lp_pool1d(x, 1.0, 2, 2, false)))?;
    close(&run(gm, &[&x])?, &[-3.0, 1.0])?;
    let image = Tensor::arange(0, 25)?
        .to_dtype(DType::F32)?
        .reshape((1, 1, 5, 5))?;
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::avg_pool2d(
        x, 3, 3, 1, true, true
    )))?;
    let small = tensor(&[1.0, 2.0, 3.0, 4.0], DType::F32)?.reshape((1, 1, 2, 2))?;
    close(&run(gm.clone(), &[&small])?, &[10.0 / 9.0])?;
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::avg_pool2d(
        x, 3, 2, 1, true, true
    )))?;
    let want = [
        4.0 / 3.0,
        3.0,
        8.0 / 3.0,
        7.0,
        12.0,
        9.0,
        8.0,
        13.0,
        28.0 / 3.0,
    ];
    close(&run(gm, &[&image])?, &want)?;
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::avg_pool2d(
        x, 2, 2, 0, true, false
    )))?;
    close(
        &run(gm, &[&image])?,
        &[3.0, 5.0, 6.5, 13.0, 15.0, 16.5, 20.5, 22.5, 24.0],
    )?;
    let row = Tensor::arange(0, 6)?;
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        let [a, _, c, d] = ops::tensor_split(x, vec![4i64, 1, 5], 0)?.unpack()?;
        ops::cat(&[a, c, d], 0)
    }))?;
    close(
        &run(gm, &[&row])?,
        &[0.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0, 5.0],
    )?;
    let none = Tensor::zeros((0, 2))?;
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::any(x, 0, false)))?;
    close(&run(gm, &[&none])?, &[0.0, 0.0])
}

#[test]
fn defect_t3_e9_results_have_the_types_of_the_graph() -> Result<()> {
    let x = tensor(&[-3.0, 0.0, 5.0], DType::I64)?;
    let y: Tensor = run(
        symbolic_trace(traced!(|x: &Tensor| ops::hardtanh(x, -1.0, 1.0)))?,
        &[&x],
    )?;
    assert_eq!(
        (y.dtype()?, y.to_vec()?),
        (DType::I64, vec![-1.0, 0.0, 1.0])
    );
    let y: Tensor = run(
        symbolic_trace(traced!(|x: &Tensor| ops::clamp(x, 0, None)))?,
        &[&x],
    )?;
    assert_eq!((y.dtype()?, y.to_vec()?), (DType::I64, vec![0.0, 0.0, 5.0]));
    let y: Tensor = run(
        symbolic_trace(traced!(|x: &Tensor| ops::nan_to_num(x, None, None, None)))?,
        &[&x],
    )?;
    assert_eq!(
        (y.dtype()?, y.to_vec()?),
        (DType::I64, vec![-3.0, 0.0, 5.0])
    );
    let y: Tensor = run(
        symbolic_trace(traced!(|x: &Tensor| ops::copysign(x, -1)))?,
        &[&x],
    )?;
    assert_eq!(
        (y.dtype()?, y.to_vec()?),
        (DType::F32, vec![-3.0, 0.0, -5.0])
    );
    Ok(())
}

/// What random programs found in files that ONNX Runtime refused, or computed otherwise.
#[test]
fn functions_are_written_at_their_edges() -> Result<()> {
    let through = |gm: &GraphModule, x: &Tensor| -> Result<(Tensor, Vec<String>)> {
        let (bytes, _) = gm.to_onnx_bytes(&Export::example(x))?;
        let file = ModelProto::decode(&*bytes).map_err(Error::other)?;
        let nodes = file.graph.unwrap_or_default().node;
        let ops = nodes.into_iter().map(|node| node.op_type).collect();
        Ok((Load::new().from_bytes(bytes)?.module.forward(x)?, ops))
    };
    let sign = symbolic_trace(traced!(|x: &Tensor| x.sign()))?;
    let (y, ops) = through(&sign, &Tensor::from_vec(vec![f32::NAN, -2.0], 2)?)?;
    assert_eq!(y.to_vec()?, [0.0, -1.0]);
    assert!(ops.contains(&"IsNaN".to_string()), "{ops:?}");
    let (_, ops) = through(&sign, &Tensor::ones(2)?.to_dtype(DType::Bool)?)?;
    assert!(!ops.contains(&"Sign".to_string()), "{ops:?}");

    let nowhere = Tensor::zeros(0)?.to_dtype(DType::I64)?;
    let scatter = traced!(move |x: &Tensor| ops::scatter_value(x, 0, &nowhere, 2.0)? * 2.0);
    let (y, ops) = through(&symbolic_trace(scatter)?, &Tensor::ones((2, 2))?)?;
    assert_eq!(y.to_vec()?, [2.0; 4]);
    assert!(!ops.contains(&"ScatterElements".to_string()), "{ops:?}");

    let rows = symbolic_trace(traced!(|x: &Tensor| ops::atleast_2d(x)))?;
    assert_eq!(through(&rows, &Tensor::ones(3)?)?.0.dims()?, [1, 3]);

    let small = traced!(|x: &Tensor| ops::interpolate(x, None, 0.7, "area", None)? * 2.0);
    let (y, ops) = through(&symbolic_trace(small)?, &Tensor::ones((1, 1, 2, 1))?)?;
    assert_eq!(y.dims()?, [1, 1, 1, 0]);
    assert!(!ops.contains(&"Reshape".to_string()), "{ops:?}");
    Ok(())
}

/// An engine would round up the known dim as well, by another rule.
#[test]
fn a_pool_rounds_up_no_dim_that_an_open_one_is_beside() -> Result<()> {
    let layer = nn::MaxPool2d {
        stride: (1, 2).into(),
        ceil_mode: true,
        ..nn::MaxPool2d::new(1)
    };
    let gm = symbolic_trace(&layer)?;
    let shape = [
        fx_nn::shapes::SpecSize::from(1),
        1.into(),
        "n".into(),
        4.into(),
    ];
    let specs = [fx_nn::shapes::Spec::tensor(shape, DType::F32)];
    let bytes = gm.to_onnx_bytes(&Export::specs(specs))?.0;
    let model = ModelProto::decode(&*bytes).map_err(Error::other)?;
    let nodes = model.graph.unwrap_or_default().node;
    let pool = nodes.iter().find(|node| node.op_type == "MaxPool");
    let pool = pool.ok_or_else(|| Error::msg("no pool"))?;
    let ceil = pool.attribute.iter().find(|of| of.name == "ceil_mode");
    assert_eq!(ceil.and_then(|of| of.i).unwrap_or_default(), 0);
    let x = Tensor::arange(0, 12)?
        .to_dtype(DType::F32)?
        .reshape((1, 1, 3, 4))?;
    let read = Load::new().from_bytes(bytes)?.module;
    let y: Tensor = read.forward(args(&[&x]))?;
    assert_eq!(y.to_vec()?, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
    Ok(())
}

/// What a composition gives for a boolean tells nothing new of what follows from it: ranks stay known.
#[test]
fn what_follows_from_a_composed_boolean_keeps_its_shape() -> Result<()> {
    let divergence = traced!(|x: &Tensor, target: &Tensor| {
        let is_close = ops::allclose(x, target, 1e-5, 1e-8, false)?;
        let y = fx_nn::control::cond(
            is_close,
            || ops::sum(x, .., false),
            || ops::mean(target, .., false),
        )?;
        ops::kl_div(&y, target, "batchmean", false)
    });
    let gm = symbolic_trace(divergence)?;
    let (x, target) = (
        tensor(&[1.0, 2.0], DType::F32)?,
        tensor(&[0.5, 0.25], DType::F32)?,
    );
    let want: Tensor = gm.forward((&x, &target))?;
    close(&run::<Tensor>(gm, &[&x, &target])?, &want.to_vec()?)
}

/// Beside what is smaller only an index without elements is valid, which a run finds, and of which engines ask sizes.
#[test]
fn an_empty_index_beside_smaller_tensors_picks_and_puts_nothing() -> Result<()> {
    let picks = traced!(|x: &Tensor, narrow: &Tensor, at: &Tensor| {
        let index = ops::nonzero(at)?;
        let put = ops::scatter_add(x, 0, &index, narrow)?;
        let set = ops::scatter_value(narrow, 0, &index, 1.0)?;
        let picked = ops::gather(narrow, 0, &index)?;
        Ok((put, set, picked))
    });
    let gm = symbolic_trace(picks)?;
    let (x, narrow) = (Tensor::ones((3, 4))?, Tensor::zeros((3, 1))?);
    let none = Tensor::zeros((1, 1, 1, 1))?;
    type Three = (Tensor, Tensor, Tensor);
    let (put, set, picked) = run::<Three>(gm.clone(), &[&x, &narrow, &none])?;
    close(&put, &[1.0; 12])?;
    close(&set, &[0.0; 3])?;
    assert_eq!(picked.dims()?, [0, 4]);
    assert!(
        gm.forward::<Three>((&x, &narrow, &Tensor::ones((1, 1, 1, 1))?))
            .is_err()
    );
    let bytes = written(&gm, &[&x, &narrow, &none])?;
    let model = ModelProto::decode(&*bytes).map_err(Error::other)?;
    let nodes = model.graph.unwrap_or_default().node;
    let asks = |name: &str| nodes.iter().any(|node| node.op_type == name);
    assert!(!asks("ScatterElements") && !asks("GatherElements"));
    Ok(())
}

/// Engines add no halves at places.
#[test]
fn halves_are_added_at_places_in_float32() -> Result<()> {
    let index = Tensor::from_vec(vec![0i64, 0], 2)?;
    let put = traced!(move |x: &Tensor| ops::index_put(x, &[&index], x, true));
    let x = tensor(&[1.0, 2.0], DType::F16)?;
    let gm = symbolic_trace(put)?;
    assert_eq!(types(&written(&gm, &[&x])?, "ScatterND")?, [1]);
    let y: Tensor = run(gm, &[&x])?;
    assert_eq!(y.dtype()?, DType::F16);
    close(&y, &[4.0, 2.0])
}

/// PyTorch takes roots for the powers 0.5 and -0.5 of a number, but of `float16`.
#[test]
fn powers_of_a_half_are_written_as_roots_of_all_types_but_float16() -> Result<()> {
    for dtype in [DType::F32, DType::F64, DType::F16] {
        let x = tensor(&[-INF, 4.0], dtype)?;
        for exponent in [0.5, -0.5] {
            let gm = symbolic_trace(traced!(move |x: &Tensor| x.pow(exponent)))?;
            let want: Tensor = gm.forward(&x)?;
            close(&run::<Tensor>(gm, &[&x])?, &want.to_vec()?)?;
        }
    }
    Ok(())
}
