//! Files that fx wrote with a size that has a name, read back with the size still open.

use fx_nn::prelude::*;
use fx_onnx::{Export, Load, OnnxExt};

/// Writes a graph with the dim `dim` of its inputs named, reads it back, and compares both on every set of inputs.
fn comes_back(gm: &GraphModule, dim: usize, each: &[Vec<Tensor>]) -> Result<()> {
    let written = |error: Error| Error::msg(format_args!("while it is written: {error}"));
    let same = |found: &Tensor, wanted: &Tensor| -> Result<bool> {
        Ok(found.dims()? == wanted.dims()? && fx_nn::allclose(found, wanted, 1e-5, 1e-6)?.close)
    };
    let call = |inputs: &[Tensor]| fx_nn::trace::CallArgs {
        args: inputs.iter().cloned().map(Value::object).collect(),
        ..Default::default()
    };
    let names: Vec<String> = gm
        .graph()
        .placeholders()
        .map(|node| node.target().to_string())
        .collect();
    let places = names.iter().map(|name| (name.as_str(), dim));
    let export = Export::example(call(&each[0])).dynamic("n", places);
    let (bytes, _) = gm.to_onnx_bytes(&export).map_err(written)?;
    let read = Load::new().from_bytes(bytes)?.module;
    for inputs in each {
        let wanted: Tensor = gm.forward(call(inputs))?;
        let found: Tensor = read.forward(call(inputs))?;
        if !same(&found, &wanted)? {
            return Err(Error::msg(format_args!("{found:?} for {wanted:?}")));
        }
    }
    Ok(())
}

/// Layers with the output alone.
#[derive(Module, Clone, Debug)]
struct Last {
    lstm: nn::LSTM,
}

#[trace]
impl Last {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.lstm.forward(x, None)?.0)
    }
}

#[derive(Module, Clone, Debug)]
struct Gated {
    gru: nn::GRU,
}

#[trace]
impl Gated {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        Ok(self.gru.forward(x, None)?.0)
    }
}

#[test]
fn defect_t3_e6_files_with_named_sizes_are_read_back() -> Result<()> {
    let each = |sizes: [usize; 2], of: &dyn Fn(usize) -> Result<Vec<Tensor>>| {
        sizes.into_iter().map(of).collect::<Result<Vec<_>>>()
    };
    let rows = each([5, 8], &|n| Ok(vec![Tensor::randn((1, 2, n))?]))?;
    let images = each([3, 5], &|n| Ok(vec![Tensor::randn((1, 2, n, 4))?]))?;
    let pairs = each([3, 5], &|n| {
        Ok(vec![
            Tensor::randn((1, 2, n, 4))?,
            Tensor::randn((1, 2, n, 6))?,
        ])
    })?;
    let two_rows = each([5, 8], &|n| {
        Ok(vec![Tensor::randn((1, 2, n))?, Tensor::randn((1, 2, n))?])
    })?;
    let texts = each([3, 7], &|n| Ok(vec![Tensor::randn((n, 2, 4))?]))?;
    let stepped = traced!(|x: &Tensor| x.i((.., .., every(2).of(1..))));
    let like = traced!(|x: &Tensor, like: &Tensor| {
        let size = vec![like.size(2)?, like.size(3)?];
        ops::interpolate(x, Some(size.into()), None, "bilinear", None)
    });
    let from_the_end = traced!(|x: &Tensor, last: &Tensor| {
        let end = (Int::from(0i64) - (last.size(2)? - 2)?)?;
        x.i((.., .., ..end))
    });
    let lstm = Last {
        lstm: nn::LSTM::new(4, 3)?,
    };
    let gru = Gated {
        gru: nn::GRU::new(4, 3)?,
    };
    let cases = [
        (
            "reflect",
            symbolic_trace(&nn::ReflectionPad1d::new([2, 1]))?,
            2,
            &rows,
        ),
        (
            "replicate",
            symbolic_trace(&nn::ReplicationPad1d::new([2, 1]))?,
            2,
            &rows,
        ),
        (
            "circular",
            symbolic_trace(&nn::CircularPad1d::new([2, 1]))?,
            2,
            &rows,
        ),
        ("a stepped slice", symbolic_trace(stepped)?, 2, &rows),
        (
            "Upsample",
            symbolic_trace(&nn::Upsample::new(2).mode("bilinear"))?,
            2,
            &images,
        ),
        ("interpolate", symbolic_trace(like)?, 2, &pairs),
        (
            "a slice from the end",
            symbolic_trace(from_the_end)?,
            2,
            &two_rows,
        ),
        ("LSTM", symbolic_trace(&lstm)?, 0, &texts),
        ("GRU", symbolic_trace(&gru)?, 0, &texts),
    ];
    let failed = cases.iter().filter_map(|(what, gm, dim, each)| {
        let error = comes_back(gm, *dim, each).err()?;
        Some(format!("{what}: {error}"))
    });
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// Up to the last but one: of no rows there are none.
#[test]
fn a_slice_that_counts_from_the_end_may_end_before_its_start() -> Result<()> {
    let rest = traced!(|x: &Tensor| {
        let rows = ops::nonzero(x)?;
        let last = (rows.size(0)? - 1)?;
        rows.i((..last, ..))?.to_dtype(DType::F32)
    });
    let gm = symbolic_trace(rest)?;
    let each = [vec![Tensor::ones((3, 2))?], vec![Tensor::zeros((4, 2))?]];
    comes_back(&gm, 0, &each)
}
