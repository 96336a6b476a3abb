//! Operators by ONNX's own contracts, where PyTorch's function of the name has another. The numbers are ONNX Runtime's.

use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_onnx::{Export, Load, OnnxExt};

use super::made::{counted, floats, input, int, ints, model, node, numbers, read, refused, text};

fn row(numbers: &[f32]) -> Result<Tensor> {
    Tensor::from_vec(numbers.to_vec(), (1, 1, 1, numbers.len()))
}

/// A dim that is left out by its number has size 1: a size that is open is not left in.
#[test]
fn defect_t3_e16_squeeze_of_an_open_dim_leaves_it_out() -> Result<()> {
    let squeeze = model(
        18,
        vec![input("x", 1, &["n", "3"])],
        vec![ints("z", &[0], true)],
        vec![node("Squeeze", "x z", "y", &[])],
    );
    let gm = read(&squeeze)?;
    let y: Tensor = gm.forward(&counted((1, 3))?)?;
    assert_eq!(numbers(&y, &[3])?, [0.0, 1.0, 2.0]);
    let two = gm.forward::<Tensor>(&counted((2, 3))?);
    assert!(two.is_err(), "a dim of size 2 is left out");

    // What is written leaves it out as well.
    let specs = [Spec::tensor(["n", "3"], DType::F32)];
    let (bytes, _) = gm.to_onnx_bytes(&Export::specs(specs))?;
    let again = Load::new().from_bytes(bytes)?.module;
    let y: Tensor = again.forward(&counted((1, 3))?)?;
    assert_eq!(numbers(&y, &[3])?, [0.0, 1.0, 2.0]);

    // Several of them, counted from both ends, before opset 13 as well.
    let mut several = model(
        11,
        vec![input("x", 1, &["a", "2", "b", "3"])],
        Vec::new(),
        vec![node("Squeeze", "x", "y", &[])],
    );
    if let Some(graph) = &mut several.graph {
        graph.node[0].attribute = vec![fx_onnx::proto::AttributeProto {
            name: "axes".into(),
            r#type: 7,
            ints: vec![-2, 0],
            ..Default::default()
        }];
    }
    let y: Tensor = read(&several)?.forward(&counted((1, 2, 1, 3))?)?;
    assert_eq!(numbers(&y, &[2, 3])?, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    Ok(())
}

#[test]
fn defect_t3_e16_squeeze_of_a_row_that_was_sliced() -> Result<()> {
    let constants = || {
        vec![
            ints("a", &[1], true),
            ints("b", &[2], true),
            ints("z", &[0], true),
        ]
    };
    let sliced = model(
        18,
        vec![input("x", 1, &["n", "3"])],
        constants(),
        vec![
            node("Slice", "x a b z", "s", &[]),
            node("Squeeze", "s z", "y", &[]),
        ],
    );
    // Through floats: no number of the file says any more which sizes the tensor has.
    let reshaped = model(
        18,
        vec![input("x", 1, &["n", "3"])],
        constants(),
        vec![
            node("Shape", "x", "s", &[]),
            node("Cast", "s", "f", &[int("to", 1)]),
            node("Cast", "f", "i", &[int("to", 7)]),
            node("Reshape", "x i", "r", &[]),
            node("Slice", "r a b z", "q", &[]),
            node("Squeeze", "q z", "y", &[]),
        ],
    );
    for file in [sliced, reshaped] {
        let gm = read(&file)?;
        for rows in [5, 7] {
            let y: Tensor = gm.forward(&counted((rows, 3))?)?;
            assert_eq!(numbers(&y, &[3])?, [3.0, 4.0, 5.0]);
        }
    }
    Ok(())
}

/// PyTorch leaves a dim of another size as it is; ONNX refuses it.
#[test]
fn defect_t3_e16_squeeze_refuses_a_size_that_is_not_1() {
    let wrong = model(
        18,
        vec![input("x", 1, &["2", "3"])],
        vec![ints("z", &[0], true)],
        vec![node("Squeeze", "x z", "y", &[])],
    );
    let error = refused(&wrong);
    assert!(error.contains("only a dim of size 1 can be"), "{error}");
    // Sizes as well: three of them are no single one.
    let sizes = model(
        18,
        vec![input("x", 1, &["n", "2", "3"])],
        Vec::new(),
        vec![
            node("Shape", "x", "s", &[]),
            node("Squeeze", "s", "q", &[]),
            node("ConstantOfShape", "q", "y", &[]),
        ],
    );
    assert!(read(&sizes).is_ok(), "without axes nothing is left out");
}

#[test]
fn defect_t3_e17_corners_are_aligned_by_the_length_of_the_result() -> Result<()> {
    let resized = |attributes: &[(&str, &str)], scale: f32, x: &[f32]| -> Result<Vec<f64>> {
        let attributes: Vec<_> = attributes.iter().map(|(name, of)| text(name, of)).collect();
        let width = x.len().to_string();
        let file = model(
            13,
            vec![input("x", 1, &["1", "1", "1", &width])],
            vec![floats("s", &[1.0, 1.0, 1.0, scale], &[4])],
            vec![node("Resize", "x _ s", "y", &attributes)],
        );
        let y: Tensor = read(&file)?.forward(&row(x)?)?;
        y.to_vec()
    };
    let aligned = ("coordinate_transformation_mode", "align_corners");
    let near = |found: &[f64], expected: &[f64]| {
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() < 1e-6, "{found:?} and {expected:?}");
        }
    };
    let four = [0.0, 1.0, 2.0, 3.0];
    near(
        &resized(&[aligned, ("mode", "linear")], 1.7, &four)?,
        &[0.0, 0.6, 1.2, 1.8, 2.4, 3.0],
    );
    near(
        &resized(&[aligned, ("mode", "linear")], 0.6, &four)?,
        &[0.0, 3.0],
    );
    Ok(())
}

/// The length of a result, and places in it, are computed in `float32`; a region is taken by its middle if one place is
/// left.
#[test]
fn defect_t3_e17_lengths_and_regions_are_onnx_runtimes() -> Result<()> {
    let resized = |mode: &str, transform: &str, region: Option<[f32; 2]>, scale: f32, x: &[f32]| {
        let attributes = [
            text("mode", mode),
            text("coordinate_transformation_mode", transform),
        ];
        let mut constants = vec![floats("s", &[1.0, 1.0, 1.0, scale], &[4])];
        if let Some([start, end]) = region {
            let region = [0.0, 0.0, 0.0, start, 1.0, 1.0, 1.0, end];
            constants.push(floats("r", &region, &[8]));
        }
        let inputs = if region.is_some() { "x r s" } else { "x _ s" };
        let width = x.len().to_string();
        let file = model(
            13,
            vec![input("x", 1, &["1", "1", "1", &width])],
            constants,
            vec![node("Resize", inputs, "y", &attributes)],
        );
        let y: Tensor = read(&file)?.forward(&row(x)?)?;
        y.to_vec()
    };
    let ten: Vec<f32> = (0..10u8).map(f32::from).collect();
    let found = resized("nearest", "half_pixel", None, 0.7, &ten)?;
    assert_eq!(found, [0.0, 2.0, 3.0, 4.0, 6.0, 7.0, 9.0]);
    let crop = "tf_crop_and_resize";
    let found = resized("nearest", crop, Some([0.0, 0.6]), 0.5, &ten[..6])?;
    assert_eq!(found, [0.0, 1.0, 3.0]);
    let found = resized(
        "linear",
        crop,
        Some([0.3, 1.0]),
        1.0 / 6.0 + 0.01,
        &ten[..6],
    )?;
    assert!(
        found.len() == 1 && (found[0] - 3.25).abs() < 1e-6,
        "{found:?}"
    );
    let found = resized("cubic", "pytorch_half_pixel", None, 0.2, &ten[..6])?;
    assert!(found.len() == 1 && found[0].abs() < 1e-6, "{found:?}");
    Ok(())
}

/// Backward, a slice begins at an element that there is, and the largest number means all that is left.
#[test]
fn defect_t3_e16_backward_slices_begin_and_end_as_onnx_says() -> Result<()> {
    let cases: [(i64, i64, i64, &[f64]); 7] = [
        (-9, i64::MIN, -1, &[0.0]),
        (-9, i64::MIN, -2, &[0.0]),
        (9, i64::MAX, -2, &[4.0, 2.0, 0.0]),
        (3, i64::from(i32::MAX), -1, &[3.0, 2.0, 1.0, 0.0]),
        (9, 0, -2, &[4.0, 2.0]),
        (-2, -9, -1, &[3.0, 2.0, 1.0, 0.0]),
        (1, i64::MAX, 2, &[1.0, 3.0]),
    ];
    for (start, stop, step, expected) in cases {
        let numbers_of = |size: &str, nodes: Vec<fx_onnx::proto::NodeProto>| {
            model(
                13,
                vec![input("x", 1, &[size])],
                vec![
                    ints("a", &[start], true),
                    ints("b", &[stop], true),
                    ints("z", &[0], true),
                    ints("s", &[step], true),
                ],
                nodes,
            )
        };
        let file = numbers_of("5", vec![node("Slice", "x a b z s", "y", &[])]);
        let y: Tensor = read(&file)?.forward(&counted(5)?)?;
        assert_eq!(y.to_vec()?, expected, "{start}:{stop}:{step}");
    }
    Ok(())
}

#[test]
fn defect_t3_e16_sums_without_the_element_itself_keep_infinities() -> Result<()> {
    let inf = f64::INFINITY;
    let summed = |attributes: &[(&str, i64)], x: &[f32]| -> Result<Vec<f64>> {
        let attributes: Vec<_> = attributes.iter().map(|(name, n)| int(name, *n)).collect();
        let file = model(
            14,
            vec![input("x", 1, &["4"])],
            vec![ints("z", &[0], false)],
            vec![node("CumSum", "x z", "y", &attributes)],
        );
        let y: Tensor = read(&file)?.forward(&Tensor::from_vec(x.to_vec(), 4)?)?;
        y.to_vec()
    };
    let found = summed(&[("exclusive", 1)], &[1.0, f32::INFINITY, 2.0, 3.0])?;
    assert_eq!(found, [0.0, 1.0, inf, inf]);
    let both = [("exclusive", 1), ("reverse", 1)];
    let found = summed(&both, &[1.0, f32::NEG_INFINITY, 2.0, 3.0])?;
    assert_eq!(found, [-inf, 5.0, 3.0, 0.0]);
    Ok(())
}

/// A bound that is left out is the largest number of the type; one that is no number bounds nothing.
#[test]
fn defect_t3_e16_bounds_that_are_left_out_are_the_types() -> Result<()> {
    let (inf, most) = (f64::INFINITY, f64::from(f32::MAX));
    let clipped = |inputs: &str, bounds: [f32; 2], x: &[f32]| -> Result<Vec<f64>> {
        let size = x.len().to_string();
        let file = model(
            13,
            vec![input("x", 1, &[&size])],
            vec![
                floats("a", &bounds[..1], &[]),
                floats("b", &bounds[1..], &[]),
            ],
            vec![node("Clip", inputs, "y", &[])],
        );
        let y: Tensor = read(&file)?.forward(&Tensor::from_vec(x.to_vec(), x.len())?)?;
        y.to_vec()
    };
    let ends = [f32::NEG_INFINITY, -1.0, 1.0, f32::INFINITY];
    assert_eq!(clipped("x a", [0.0, 0.0], &ends)?, [0.0, 0.0, 1.0, most]);
    assert_eq!(
        clipped("x _ b", [0.0, 0.0], &ends)?,
        [-most, -1.0, 0.0, 0.0]
    );
    assert_eq!(clipped("x", [0.0, 0.0], &ends)?, [-most, -1.0, 1.0, most]);
    let open = [f32::NEG_INFINITY, f32::INFINITY];
    assert_eq!(clipped("x a b", open, &ends)?, [-inf, -1.0, 1.0, inf]);
    assert_eq!(
        clipped("x a b", [f32::NAN, 1.0], &[-2.0, 0.5, 3.0])?,
        [-2.0, 0.5, 1.0]
    );
    assert_eq!(
        clipped("x a b", [2.0, 1.0], &[-2.0, 0.5, 3.0])?,
        [1.0, 1.0, 1.0]
    );
    assert_eq!(
        clipped("x a b", [f32::INFINITY, 1.0], &[-2.0, 3.0])?,
        [1.0, 1.0]
    );
    assert!(clipped("x a", [0.0, 0.0], &[f32::NAN])?[0].is_nan());
    Ok(())
}

#[test]
fn defect_t3_e16_a_range_that_leads_away_is_empty() -> Result<()> {
    for (numbers, expected) in [([0, -3, 1], &[][..]), ([5, 0, -2], &[5.0, 3.0, 1.0][..])] {
        let constants = ["a", "b", "c"].iter().zip(numbers);
        let file = model(
            11,
            vec![input("x", 7, &[])],
            constants.map(|(name, n)| ints(name, &[n], false)).collect(),
            vec![
                node("Range", "a b c", "r", &[]),
                node("Add", "r x", "y", &[]),
            ],
        );
        let y: Tensor = read(&file)?.forward(&Tensor::full((), 0, DType::I64)?)?;
        assert_eq!(y.to_vec()?, expected);
    }
    Ok(())
}

/// Before opset 13 a hardmax is over all dims from its axis on, as a softmax is.
#[test]
fn defect_t3_e16_an_old_hardmax_is_over_several_dims() -> Result<()> {
    let file = model(
        11,
        vec![input("x", 1, &["2", "2", "2"])],
        Vec::new(),
        vec![node("Hardmax", "x", "y", &[])],
    );
    let x = Tensor::from_vec(vec![1.0f32, 5.0, 2.0, 3.0, 9.0, 0.0, 9.0, 1.0], (2, 2, 2))?;
    let y: Tensor = read(&file)?.forward(&x)?;
    let expected = [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0];
    assert_eq!(numbers(&y, &[2, 2, 2])?, expected);
    Ok(())
}

/// PyTorch leaves an empty row out; ONNX has one number of dims.
#[test]
fn defect_t3_e16_what_is_put_together_has_one_number_of_dims() {
    let file = model(
        13,
        vec![input("x", 1, &["0"]), input("z", 1, &["2", "3"])],
        Vec::new(),
        vec![node("Concat", "x z", "y", &[int("axis", 0)])],
    );
    let error = refused(&file);
    assert!(error.contains("inputs of 1 and of 2 dims"), "{error}");
}

/// Places that a run gives are counted from the end where they are negative, also in a dim that is open.
#[test]
fn defect_t3_e16_negative_places_of_an_open_dim() -> Result<()> {
    let file = model(
        13,
        vec![input("x", 1, &["n", "2"]), input("at", 7, &["2"])],
        Vec::new(),
        vec![node("Gather", "x at", "y", &[int("axis", 0)])],
    );
    let at = Tensor::from_vec(vec![-1i64, 0], 2)?;
    let y: Tensor = read(&file)?.forward((&counted((3, 2))?, &at))?;
    assert_eq!(numbers(&y, &[2, 2])?, [4.0, 5.0, 0.0, 1.0]);
    Ok(())
}

/// The last window begins inside of the image or of the margin before it, also where the margins differ.
#[test]
fn defect_t3_e16_the_last_window_of_a_pool_begins_inside() -> Result<()> {
    /// An operator, its margins, windows and steps, and what it gives.
    type Case = (&'static str, [i64; 2], i64, i64, &'static [f64]);
    let cases: [Case; 6] = [
        ("MaxPool", [0, 1], 2, 2, &[1.0, 3.0, 5.0, 7.0]),
        ("MaxPool", [1, 2], 3, 2, &[1.0, 3.0, 5.0, 7.0, 7.0]),
        ("MaxPool", [2, 1], 3, 3, &[0.0, 3.0, 6.0, 7.0]),
        ("AveragePool", [0, 1], 2, 2, &[0.5, 2.5, 4.5, 6.5]),
        ("AveragePool", [1, 2], 3, 2, &[0.5, 2.0, 4.0, 6.0, 7.0]),
        ("AveragePool", [2, 1], 3, 3, &[0.0, 2.0, 5.0, 7.0]),
    ];
    for (op, pads, kernel, stride, expected) in cases {
        let list = |name: &str, numbers: &[i64]| fx_onnx::proto::AttributeProto {
            name: name.into(),
            r#type: 7,
            ints: numbers.to_vec(),
            ..Default::default()
        };
        let attributes = [
            list("kernel_shape", &[kernel]),
            list("strides", &[stride]),
            list("pads", &pads),
            int("ceil_mode", 1),
        ];
        let file = model(
            11,
            vec![input("x", 1, &["1", "1", "8"])],
            Vec::new(),
            vec![node(op, "x", "y", &attributes)],
        );
        let y: Tensor = read(&file)?.forward(&counted((1, 1, 8))?)?;
        assert_eq!(y.to_vec()?, expected, "{op} {pads:?} {kernel} {stride}");
    }
    Ok(())
}

/// Negative margins cut off before the others repeat what is left.
#[test]
fn defect_t3_e16_margins_that_cut_off_do_so_first() -> Result<()> {
    for (mode, pads, expected) in [
        (
            "wrap",
            [-1, 3],
            [-4.0, 8.0, 1.0, 5.0, -4.0, 8.0, 1.0].as_slice(),
        ),
        ("wrap", [2, -2], &[-4.0, 8.0, 1.0, -4.0, 8.0]),
        ("reflect", [2, -2], &[8.0, -4.0, 1.0, -4.0, 8.0]),
    ] {
        let file = model(
            19,
            vec![input("x", 1, &["5"])],
            vec![ints("p", &pads, true)],
            vec![node("Pad", "x p", "y", &[text("mode", mode)])],
        );
        let x = Tensor::from_vec(vec![1.0f32, -4.0, 8.0, 1.0, 5.0], 5)?;
        let y: Tensor = read(&file)?.forward(&x)?;
        assert_eq!(y.to_vec()?, expected, "{mode} {pads:?}");
    }
    Ok(())
}

/// What is no number has no sign, and is above no threshold.
#[test]
fn defect_t3_e16_what_is_no_number_has_no_sign() -> Result<()> {
    let of = |op: &str| -> Result<Vec<f64>> {
        let file = model(
            13,
            vec![input("x", 1, &["3"])],
            Vec::new(),
            vec![node(op, "x", "y", &[])],
        );
        let x = Tensor::from_vec(vec![-2.0f32, f32::NAN, 3.0], 3)?;
        read(&file)?.forward::<Tensor>(&x)?.to_vec()
    };
    let signs = of("Sign")?;
    assert!(
        signs[0] == -1.0 && signs[1].is_nan() && signs[2] == 1.0,
        "{signs:?}"
    );
    assert_eq!(of("ThresholdedRelu")?, [0.0, 0.0, 3.0]);
    Ok(())
}

/// A loss of one class may be beyond the largest half where the sum of all is not.
#[test]
fn losses_of_halves_are_rounded_once() -> Result<()> {
    let f = traced!(|x: &Tensor, target: &Tensor, weight: &Tensor| {
        ops::nll_loss(x, target, Some(weight), -100, "sum")
    });
    let gm = symbolic_trace(f)?;
    let half =
        |all: &[f64], shape: &[usize]| Tensor::from_vec(all.to_vec(), shape)?.to_dtype(DType::F16);
    let x = half(&[3.0, 0.0, -2.75, 0.0], &[2, 2])?;
    let target = Tensor::zeros(2)?.to_dtype(DType::I64)?;
    let weight = half(&[30_000.0, 1.0], &[2])?;
    let specs = [&x, &target, &weight].map(|x| Spec::of(x.clone()));
    let (bytes, _) = gm.to_onnx_bytes(&Export::specs(specs))?;
    let again = Load::new().from_bytes(bytes)?.module;
    for gm in [&gm, &again] {
        let y: Tensor = gm.forward((&x, &target, &weight))?;
        assert_eq!(numbers(&y, &[])?, [-7500.0]);
    }
    Ok(())
}
