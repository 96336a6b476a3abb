//! Defects once found in images of other sizes: none may come back. The numbers are PyTorch 2.15's.

use fx_nn::Scales;
use fx_nn::prelude::*;
use fx_nn::shapes::spec;

fn f32s(numbers: &[f32], shape: &[usize]) -> Result<Tensor> {
    Tensor::from_vec(numbers.to_vec(), shape)
}

/// A tensor has the shape and, to a millionth, the numbers.
fn holds(what: &str, found: &Tensor, shape: &[usize], numbers: &[f64]) -> Result<()> {
    assert_eq!(found.dims()?, shape, "{what}");
    let found = found.to_vec()?;
    for (found, expected) in found.iter().zip(numbers) {
        assert!(
            (found - expected).abs() <= 2e-6,
            "{what}: {found} and {expected}"
        );
    }
    assert_eq!(found.len(), numbers.len(), "{what}");
    Ok(())
}

fn to(size: &[i64]) -> Option<fx_nn::Sizes> {
    Some(size.into())
}

#[test]
fn defect_t3_v1_three_dims_are_rows_of_channels() -> Result<()> {
    let x = f32s(&[1., 2., 3., 4., 5., 6., 7., 8.], &[1, 2, 4])?;
    let twice = [
        1., 1., 2., 2., 3., 3., 4., 4., 5., 5., 6., 6., 7., 7., 8., 8.,
    ];
    holds(
        "function",
        &ops::interpolate(&x, None, 2.0, "nearest", None)?,
        &[1, 2, 8],
        &twice,
    )?;
    holds(
        "layer",
        &nn::Upsample::new(2.0).forward(&x)?,
        &[1, 2, 8],
        &twice,
    )?;
    let gm = symbolic_trace(traced!(|x: &Tensor| ops::interpolate(
        x, None, 2.0, "nearest", None
    )))?;
    holds("graph", &gm.forward::<Tensor>(&x)?, &[1, 2, 8], &twice)?;
    Ok(())
}

#[test]
fn defect_t3_v1_every_mode_gives_pytorchs_numbers() -> Result<()> {
    let row = f32s(&[0., 3., 1.], &[1, 1, 3])?;
    let image = f32s(&[0., 3., 1., 2., 5., -4.], &[1, 1, 2, 3])?;
    let volume = ops::arange(0, 8, 1, Some(DType::F32))?.reshape((1, 1, 2, 2, 2))?;
    let exact = [0., 3., 3., 1., 2., 5., 5., -4., 2., 5., 5., -4.];
    let bilinear = [
        0., 1.875, 2.25, 1., 1., 2.875, 1.9375, -1.5, 2., 3.875, 1.625, -4.,
    ];
    let bicubic = [
        -0.388943, 1.898304, 2.65424, 1.334088, 0.784668, 3.523193, 2.347656, -1.894775, 1.958279,
        5.148083, 2.041074, -5.123638,
    ];
    let corners = [
        0., 2.277778, 2.703703, 1., 1., 3.666667, 2.601852, -1.5, 2., 5.055556, 2.5, -4.,
    ];
    let trilinear = [0., 1., 2., 3., 2., 3., 4., 5., 4., 5., 6., 7.];
    type Case<'c> = (&'c Tensor, &'c [i64], &'c str, Option<bool>, &'c [f64]);
    let cases: &[Case<'_>] = &[
        (&row, &[5], "nearest", None, &[0., 0., 3., 3., 1.]),
        (&row, &[5], "nearest-exact", None, &[0., 0., 3., 1., 1.]),
        (&row, &[5], "linear", None, &[0., 1.2, 3., 1.8, 1.]),
        (&row, &[5], "linear", Some(true), &[0., 1.5, 3., 2., 1.]),
        (&row, &[5], "area", None, &[0., 1.5, 3., 2., 1.]),
        (&image, &[3, 4], "nearest-exact", None, &exact),
        (&image, &[3, 4], "bilinear", None, &bilinear),
        (&image, &[3, 4], "bicubic", None, &bicubic),
        (&image, &[3, 4], "bicubic", Some(true), &corners),
        (&image, &[1, 2], "area", None, &[2.5, 1.25]),
        (&volume, &[3, 2, 2], "trilinear", None, &trilinear),
        (&volume, &[1, 2, 1], "area", None, &[2.5, 4.5]),
    ];
    for (x, size, mode, corners, expected) in cases {
        let shape = [
            &x.dims()?[..2],
            &size.iter().map(|n| *n as usize).collect::<Vec<_>>(),
        ]
        .concat();
        holds(
            mode,
            &ops::interpolate(x, to(size), None, mode, *corners)?,
            &shape,
            expected,
        )?;
        let layer = nn::Upsample::to_size(shape[2..].to_vec())
            .mode(*mode)
            .align_corners(*corners);
        holds(mode, &layer.forward(x)?, &shape, expected)?;
    }
    // A factor for each dim, and the place that it gives where the size was rounded.
    let wide = ops::interpolate(&image, None, [1.0, 2.0], "bilinear", None)?;
    let numbers = [
        0., 0.75, 2.25, 2.5, 1.5, 1., 2., 2.75, 4.25, 2.75, -1.75, -4.,
    ];
    holds("factors", &wide, &[1, 1, 2, 6], &numbers)?;
    let by = ops::interpolate(&row, None, 1.5, "linear", None)?;
    holds("factor", &by, &[1, 1, 4], &[0., 1.5, 2.666667, 1.333333])?;
    let again = ops::interpolate_with(&row, None, 1.5, "linear", None, Some(true), false)?;
    holds("recomputed", &again, &[1, 1, 4], &[0., 1.875, 2.25, 1.])?;
    let five = ops::arange(0, 5, 1, Some(DType::F32))?.reshape((1, 1, 5))?;
    let same = ops::interpolate(&five, None, 1.19, "nearest", None)?;
    holds(
        "a factor without a larger size",
        &same,
        &[1, 1, 5],
        &[0., 0., 1., 2., 3.],
    )?;
    holds(
        "the older layers",
        &nn::UpsamplingBilinear2d::to_size((2, 5)).forward(&image)?,
        &[1, 1, 2, 5],
        &[0., 1.5, 3., 2., 1., 2., 3.5, 5., 0.5, -4.],
    )
}

#[test]
fn defect_t3_v1_antialias_is_pillows() -> Result<()> {
    let x = ops::arange(0, 12, 1, Some(DType::F32))?;
    let x = ((&x * &x)? / 10.0)?.reshape((1, 1, 3, 4))?;
    let small = |mode: &str, corners: Option<bool>| {
        ops::interpolate_with(&x, to(&[2, 2]), None, mode, corners, None, true)
    };
    let shape = [1, 1, 2, 2];
    holds(
        "linear",
        &small("bilinear", None)?,
        &shape,
        &[0.914286, 1.857143, 5.628572, 8.142858],
    )?;
    holds(
        "cubic",
        &small("bicubic", None)?,
        &shape,
        &[0.573008, 1.573596, 5.638342, 8.655935],
    )?;
    holds(
        "corners",
        &small("bilinear", Some(true))?,
        &shape,
        &[2.564286, 3.857143, 7.2, 9.666667],
    )?;
    holds(
        "lanczos",
        &small("lanczos", None)?,
        &shape,
        &[0.365605, 1.364338, 5.637454, 8.870962],
    )
}

#[test]
fn defect_t3_v1_uint8_and_halves() -> Result<()> {
    let bytes = Tensor::from_vec(vec![0u8, 255, 7, 100, 3, 200], (1, 1, 2, 3))?;
    let cases: &[(&str, [f64; 15])] = &[
        (
            "nearest",
            [
                0., 0., 255., 255., 7., 0., 0., 255., 255., 7., 100., 100., 3., 3., 200.,
            ],
        ),
        (
            "nearest-exact",
            [
                0., 0., 255., 7., 7., 100., 100., 3., 200., 200., 100., 100., 3., 200., 200.,
            ],
        ),
        (
            "bilinear",
            [
                0., 102., 255., 106., 7., 50., 82., 129., 114., 104., 100., 61., 3., 121., 200.,
            ],
        ),
        (
            "bicubic",
            [
                0., 123., 255., 122., 0., 55., 83., 129., 120., 110., 118., 42., 0., 117., 238.,
            ],
        ),
    ];
    for (mode, expected) in cases {
        let y = ops::interpolate(&bytes, to(&[3, 5]), None, mode, None)?;
        assert_eq!(y.dtype()?, DType::U8);
        holds(mode, &y, &[1, 1, 3, 5], expected)?;
    }
    let small =
        |mode: &str| ops::interpolate_with(&bytes, to(&[1, 2]), None, mode, None, None, true);
    holds("bilinear", &small("bilinear")?, &[1, 1, 1, 2], &[80., 113.])?;
    holds("bicubic", &small("bicubic")?, &[1, 1, 1, 2], &[79., 116.])?;
    let halves = f32s(&[0.1, 3.3, 1.7], &[1, 1, 3])?.to_dtype(DType::BF16)?;
    let y = ops::interpolate(&halves, to(&[7]), None, "linear", None)?;
    let expected = [
        0.100098, 0.554688, 1.921875, 3.296875, 2.609375, 1.929688, 1.703125,
    ];
    holds("bfloat16", &y, &[1, 1, 7], &expected)
}

#[test]
fn defect_t3_v1_gradients_are_pytorchs() -> Result<()> {
    let row = f32s(&[0., 3., 1.], &[1, 1, 3])?.into_parameter()?;
    let weights = f32s(&[1., 2., 3., 4., 5.], &[1, 1, 5])?;
    for (mode, expected) in [
        ("nearest", [3., 7., 5.]),
        ("nearest-exact", [3., 3., 9.]),
        ("linear", [2.2, 5.4, 7.4]),
        ("area", [2., 6., 7.]),
    ] {
        let y = (ops::interpolate(&row, to(&[5]), None, mode, None)? * &weights)?.sum(..)?;
        let gradient = y
            .backward()?
            .get(&row)?
            .ok_or_else(|| Error::msg("no gradient"))?;
        holds(mode, &gradient, &[1, 1, 3], &expected)?;
    }
    let image = f32s(&[0., 3., 1., 2., 5., -4.], &[1, 1, 2, 3])?.into_parameter()?;
    let weights = ops::arange(1, 9, 1, Some(DType::F32))?.reshape((1, 1, 2, 4))?;
    for (mode, expected) in [
        ("bilinear", [1.75, 3.125, 5.125, 7.25, 8.125, 10.625]),
        (
            "bicubic",
            [1.462891, 3.388672, 5.148438, 6.751953, 8.810547, 10.4375],
        ),
    ] {
        let y = (ops::interpolate(&image, to(&[2, 4]), None, mode, None)? * &weights)?.sum(..)?;
        let gradient = y
            .backward()?
            .get(&image)?
            .ok_or_else(|| Error::msg("no gradient"))?;
        holds(mode, &gradient, &[1, 1, 2, 3], &expected)?;
    }
    Ok(())
}

fn refused<T>(result: Result<T>, words: &[&str]) {
    let error = result.err().map(|e| e.to_string()).unwrap_or_default();
    for word in words {
        assert!(error.contains(word), "{word:?} in {error:?}");
    }
}

#[test]
fn defect_t3_v1_what_pytorch_refuses_is_refused() -> Result<()> {
    let row = Tensor::ones((1, 2, 4))?;
    let image = Tensor::ones((1, 2, 4, 4))?;
    let by = |x: &Tensor, mode: &str, corners| ops::interpolate(x, None, 2.0, mode, corners);
    refused(
        by(&row, "bilinear", None),
        &["interpolate", "\"bilinear\"", "4 dims", "\"linear\""],
    );
    refused(
        by(&image, "linear", None),
        &["\"linear\"", "3 dims", "\"bilinear\""],
    );
    refused(by(&image, "trilinear", None), &["5 dims"]);
    refused(by(&row, "bicubic", None), &["\"bicubic\"", "4 dims"]);
    refused(
        by(&Tensor::ones((4, 4))?, "nearest", None),
        &["[4, 4]", "[N, C, L]"],
    );
    refused(
        by(&Tensor::ones((1, 1, 1, 1, 2, 2))?, "nearest", None),
        &["6 dims"],
    );
    refused(by(&image, "area", Some(false)), &["align_corners"]);
    refused(by(&image, "nearest-exact", Some(true)), &["align_corners"]);
    refused(
        by(&image.to_dtype(DType::I64)?, "nearest", None),
        &["floating point or uint8", "int64"],
    );
    refused(by(&image.gt(0.0)?, "nearest", None), &["bool"]);
    refused(
        by(&row.to_dtype(DType::U8)?, "linear", None),
        &["floating point", "uint8"],
    );
    refused(
        by(&Tensor::ones((2, 0, 4))?, "nearest", None),
        &["no channels"],
    );
    refused(
        ops::interpolate(&image, to(&[3, 3, 3]), None, "nearest", None),
        &["size", "2 dims"],
    );
    refused(
        ops::interpolate(&image, None, vec![2.0; 3], "nearest", None),
        &["scale_factor", "2 dims"],
    );
    refused(
        ops::interpolate(&image, None, 0.1, "nearest", None),
        &["at least one pixel"],
    );
    let with = |x: &Tensor, mode: &str, antialias| {
        ops::interpolate_with(x, to(&[2, 2]), None, mode, None, None, antialias)
    };
    refused(with(&image, "nearest", true), &["antialias"]);
    refused(with(&image, "lanczos", false), &["lanczos", "antialias"]);
    refused(
        with(&image.to_dtype(DType::F16)?, "bilinear", true),
        &["antialias", "float16"],
    );
    let both = ops::interpolate_with(
        &image,
        to(&[2, 2]),
        None,
        "nearest",
        None,
        Some(true),
        false,
    );
    refused(both, &["recompute_scale_factor"]);
    Ok(())
}

#[test]
fn defect_t3_v1_sizes_with_names_are_known() -> Result<()> {
    let shape = |gm: &GraphModule| -> String {
        let node = gm.graph().nodes().find(|node| node.name() == "interpolate");
        let meta =
            node.and_then(|node| node.meta::<fx_nn::ir::ValueMeta>().map(ToString::to_string));
        meta.unwrap_or_default()
    };
    let by = |factor: f64, mode: &'static str| {
        traced!(move |x: &Tensor| ops::interpolate(x, None, factor, mode, None))
    };
    for (factor, mode, spec, expected) in [
        (2.0, "linear", spec!["n", 3, "l"; F32], "float32[n, 3, 2*l]"),
        (
            0.5,
            "nearest",
            spec!["n", 3, "l"; F32],
            "float32[n, 3, l // 2]",
        ),
        (
            1.5,
            "bilinear",
            spec!["n", 3, "h", 4; F32],
            "float32[n, 3, h + h // 2, 6]",
        ),
        (
            3.0,
            "trilinear",
            spec![1, 1, "d", 2, "w"; F32],
            "float32[1, 1, 3*d, 6, 3*w]",
        ),
    ] {
        let mut gm = symbolic_trace(by(factor, mode))?;
        gm.infer_shapes(&[spec])?;
        assert_eq!(shape(&gm).replace(['(', ')'], ""), expected);
    }
    let mut gm = symbolic_trace(by(1.3, "linear"))?;
    refused(
        gm.infer_shapes(&[spec![1, 1, "l"; F32]]),
        &["1.3", "give `size`"],
    );
    Ok(())
}

#[test]
fn defect_t3_v1_a_saved_layer_keeps_size_and_factors() -> Result<()> {
    for layer in [
        nn::Upsample::to_size(vec![3, 5]).mode("bicubic"),
        nn::Upsample::new([1.5, 2.0])
            .mode("bilinear")
            .align_corners(true),
        nn::Upsample::new(2),
    ] {
        let x = Tensor::rand((1, 2, 3, 4))?;
        let gm = symbolic_trace(&nn::Sequential::new().push(layer.clone()))?;
        let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
        let (before, after) = (layer.forward(&x)?, loaded.forward::<Tensor>(&x)?);
        assert_eq!(before.to_vec()?, after.to_vec()?);
    }
    assert_eq!(Scales::from(2), Scales::One(2.0));
    Ok(())
}
