//! Defects once found in images of other sizes: none may come back. ONNX Runtime gives the same numbers for these files.

use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::{Scales, Sizes};
use fx_onnx::{Export, Load, OnnxExt};

/// A call, and the shape of its images.
struct Case {
    mode: &'static str,
    size: Option<Vec<i64>>,
    scales: Scales,
    corners: Option<bool>,
    antialias: bool,
    shape: Vec<usize>,
}

fn case(
    mode: &'static str,
    shape: &[usize],
    size: Option<&[i64]>,
    scales: impl Into<Scales>,
) -> Case {
    Case {
        mode,
        size: size.map(<[i64]>::to_vec),
        scales: scales.into(),
        corners: None,
        antialias: false,
        shape: shape.to_vec(),
    }
}

fn traced(case: &Case) -> Result<GraphModule> {
    let Case {
        mode,
        size,
        scales,
        corners,
        antialias,
        ..
    } = case;
    let (mode, size, scales, corners, antialias) =
        (*mode, size.clone(), scales.clone(), *corners, *antialias);
    symbolic_trace(traced!(move |x: &Tensor| {
        let size = size.clone().map(Sizes::from);
        ops::interpolate_with(x, size, scales.clone(), mode, corners, None, antialias)
    }))
}

/// What is read back gives the numbers of the module.
fn comes_back(what: &str, gm: &GraphModule, spec: Spec, shapes: &[Vec<usize>]) -> Result<()> {
    let (bytes, _) = gm.to_onnx_bytes(&Export::specs([spec]))?;
    let back = Load::new().from_bytes(bytes)?.module;
    for shape in shapes {
        let count: usize = shape.iter().product();
        let x = ops::arange(0, count as i64, 1, Some(DType::F32))?
            .sin()?
            .reshape(shape.clone())?;
        let (own, read): (Tensor, Tensor) = (gm.forward(&x)?, back.forward(&x)?);
        assert_eq!(own.dims()?, read.dims()?, "{what}");
        for (own, read) in own.to_vec()?.iter().zip(read.to_vec()?) {
            assert!((own - read).abs() < 1e-5, "{what}: {own} and {read}");
        }
    }
    Ok(())
}

#[test]
fn defect_t3_v1_files_have_the_numbers_of_every_mode() -> Result<()> {
    let mut cases = vec![
        case("nearest", &[1, 2, 4], None, 2.0),
        case("nearest", &[1, 2, 6], Some(&[10]), None),
        case("nearest", &[1, 1, 5], None, 1.7),
        case("nearest-exact", &[1, 2, 5, 3], Some(&[7, 2]), None),
        case("linear", &[1, 2, 5], None, 1.7),
        case("linear", &[1, 2, 5], Some(&[1]), None),
        case("bilinear", &[1, 2, 5, 4], None, [1.7, 0.6]),
        case("trilinear", &[1, 1, 2, 3, 2], Some(&[3, 2, 4]), None),
        case("bicubic", &[1, 1, 5, 4], None, [1.7, 0.6]),
        case("area", &[1, 2, 6], Some(&[4]), None),
        case("area", &[1, 2, 6, 4], Some(&[3, 2]), None),
        case("area", &[1, 1, 2, 3, 4], Some(&[1, 2, 3]), None),
    ];
    for mode in ["bilinear", "bicubic"] {
        for corners in [None, Some(true)] {
            cases.push(Case {
                corners,
                ..case(mode, &[1, 1, 5, 4], Some(&[7, 3]), None)
            });
            cases.push(Case {
                corners,
                antialias: true,
                ..case(mode, &[1, 1, 7, 6], Some(&[3, 4]), None)
            });
        }
    }
    cases.push(Case {
        antialias: true,
        ..case("lanczos", &[1, 1, 7, 6], None, 0.5)
    });
    for case in &cases {
        let what = format!(
            "{} {:?} {:?} {:?}",
            case.mode, case.shape, case.size, case.scales
        );
        let spec = Spec::tensor(case.shape.iter().copied(), DType::F32);
        comes_back(
            &what,
            &traced(case)?,
            spec,
            std::slice::from_ref(&case.shape),
        )?;
    }
    Ok(())
}

#[test]
fn defect_t3_v1_what_onnx_lacks_is_refused_with_its_reason() -> Result<()> {
    let refused = |case: &Case, spec: Spec| -> Result<String> {
        let bytes = traced(case)?.to_onnx_bytes(&Export::specs([spec]));
        Ok(bytes
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default())
    };
    let image = |dtype| Spec::tensor([1usize, 1, 4, 4], dtype);
    let of_bytes = refused(
        &case("bilinear", &[1, 1, 4, 4], None, 2.0),
        image(DType::U8),
    )?;
    assert!(
        of_bytes.contains("uint8") && of_bytes.contains("float32"),
        "{of_bytes}"
    );
    let named = Spec::tensor(["n", "c", "l"], DType::F32);
    let area = refused(&case("area", &[1, 1, 4], Some(&[3]), None), named)?;
    assert!(area.contains("area") && area.contains("named"), "{area}");
    Ok(())
}
