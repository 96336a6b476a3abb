//! A user's operation, stated once with `#[op]`: it is traced, run, differentiated and checked by every route, it is
//! compiled inside of a fused chain, exported to ONNX and StableHLO, and sharded.
//!
//! `cargo run -p fx-tests --example custom_op`
#![allow(clippy::print_stdout, reason = "an example prints")]

use fx_nn::cpu::{Binary, Cpu, Point, Points, Unary};
use fx_nn::passes::DecomposedCall;
use fx_nn::passes::backend::{Compile, LowerReport};
use fx_nn::prelude::*;
use fx_nn::shapes::spec;
use fx_nn::testing::{Given, Route, Sample, check_op, routes, samples};
use fx_nn::{OpInfo, OpKind, op};
use fx_onnx::OnnxExt;
use fx_onnx::testing::ReadBack;
use fx_stablehlo::StableHloExt;
use fx_stablehlo::shard::{mesh, shard, shard_rules};
use fx_stablehlo::testing::Written;

/// x / sqrt(1 + x²): between -1 and 1.
#[op(unary, decomposed = by_others, cpu = steps)]
fn softclip(x: &Tensor) -> Result<Tensor> {
    x / (1.0 + (x * x)?)?.sqrt()?
}

/// How exporters write it.
fn by_others(call: &DecomposedCall<'_>) -> Result<Tensor> {
    let x: Tensor = call.arg("x")?;
    &x / (1.0 + (&x * &x)?)?.sqrt()?
}

/// How compiled code computes an element.
fn steps(points: &mut Points<'_, '_>) -> Option<Point> {
    let x = points.tensor("x")?;
    let square = points.binary(Binary::Mul, x, x);
    let sum = points.add(square, 1.0);
    let root = points.unary(Unary::Sqrt, sum);
    Some(points.binary(Binary::Div, x, root))
}

fn main() -> Result<()> {
    // What is known of it.
    let info = OpInfo::of(function!(softclip))?;
    assert_eq!(info.kind, Some(OpKind::Unary));

    // Traced, run, with a gradient.
    let mut gm = symbolic_trace(traced!(|x: &Tensor| (softclip(&(x * 2.0)?)? + 1.0)?.relu()))?;
    let x = Tensor::from_vec(vec![0.5f32, -2.0, 3.0, 0.0], (2, 2))?.into_parameter()?;
    let y: Tensor = gm.forward(&x)?;
    let gradients = y.sum(..)?.backward()?;
    println!("y {:?}", y.to_vec()?);
    println!(
        "gradient {:?}",
        gradients.get(&x)?.map(|g| g.to_vec()).transpose()?
    );

    // Checked by every route.
    let written = Written(|_: &Sample<'_>, _: &str| Ok(Given::Agrees));
    let mut all: Vec<&dyn Route> = routes();
    all.extend([&ReadBack as &dyn Route, &written]);
    let report = check_op("softclip", &samples::one_float(function!(softclip))?, &all);
    println!("{report}");
    assert!(report.is_right());

    // Compiled inside of a fused chain: one step.
    let x = Tensor::randn((64, 64))?;
    let fast = gm.compile(Compile::new(Cpu::new()).like(&x))?;
    let (expected, found): (Tensor, Tensor) = (gm.forward(&x)?, fast.forward(&x)?);
    assert!(fx_nn::allclose(&found, &expected, 1e-5, 1e-6)?.close);
    let report = fast.meta::<LowerReport>();
    for part in report.iter().flat_map(|report| &report.parts) {
        let code = fast.submodule_as::<GraphModule>(&part.path)?.compiled();
        let steps = code.map(|code| code.steps()).unwrap_or_default();
        let names: Vec<&str> = steps.iter().map(|step| &*step.name).collect();
        println!("steps {names:?}");
        assert_eq!(names.len(), 1);
    }

    // Exported.
    let (bytes, _) = gm.to_onnx_bytes(&fx_onnx::Export::example(&x))?;
    println!("ONNX {} bytes", bytes.len());
    let text = gm.to_stablehlo_text(&fx_stablehlo::Export::example(&x))?;
    println!("StableHLO {} lines", text.lines().count());

    // Sharded over two devices, by what its kind does to dims.
    gm.infer_shapes(&[spec![64, 64; F32]])?;
    let mesh = mesh!["data" = 2]?;
    let report = shard(&mut gm, &mesh, &shard_rules! { "x" => ["data", _] })?;
    println!("{report}");
    Ok(())
}
