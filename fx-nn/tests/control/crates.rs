//! Models with branches and loops as crates: `written/` has their sources, which are compiled here.
//!
//! `UPDATE_SOURCE=1` writes them anew.

use fx_nn::graph_module::Folder;

use super::*;

#[path = "written/adaptive.rs"]
#[rustfmt::skip]
#[allow(clippy::all, reason = "generated")]
mod adaptive;
#[path = "written/experts.rs"]
#[rustfmt::skip]
#[allow(clippy::all, reason = "generated")]
mod experts;
#[path = "written/ode.rs"]
#[rustfmt::skip]
#[allow(clippy::all, reason = "generated")]
mod ode;
#[path = "written/rnn.rs"]
#[rustfmt::skip]
#[allow(clippy::all, reason = "generated")]
mod rnn;

/// Checks that a crate's source is the one that is compiled here, and returns its weights.
fn written(gm: &GraphModule, name: &str, source: &str) -> Result<std::path::PathBuf> {
    let scratch = std::env::temp_dir();
    let folder = scratch.join(format!("fx_control_{name}_{}", std::process::id()));
    Folder::new(name)
        .dependencies_by_path(true)
        .write(gm, &folder)?;
    let text = std::fs::read_to_string(folder.join("src/lib.rs")).map_err(Error::other)?;
    let weights = folder.with_extension("safetensors");
    std::fs::rename(folder.join("weights.safetensors"), &weights).map_err(Error::other)?;
    std::fs::remove_dir_all(&folder).map_err(Error::other)?;
    if std::env::var_os("UPDATE_SOURCE").is_some() {
        let file = format!("tests/control/written/{}.rs", name.to_lowercase());
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        std::fs::write(file, &text).map_err(Error::other)?;
    }
    assert!(text == source, "{text}");
    Ok(weights)
}

#[test]
fn a_loop_as_a_crate() -> Result<()> {
    let model = ode()?;
    let gm = symbolic_trace(&model)?;
    let weights = written(&gm, "Ode", include_str!("written/ode.rs"))?;
    let crated = ode::Ode::load(&weights);
    std::fs::remove_file(&weights).map_err(Error::other)?;
    let crated = crated?;
    let again = symbolic_trace(&crated)?;
    for end in [0.1, 1.0, 3.0] {
        let y = Tensor::randn((2, 3))?;
        let (eager, evaluations) = model.forward(&y, Float::from(end))?;
        let (written, counted) = crated.forward(&y, Float::from(end))?;
        assert_eq!(written.to_vec()?, eager.to_vec()?);
        assert_eq!(counted.concrete(), evaluations.concrete());
        let (traced, _): (Tensor, i64) = again.forward((&y, end))?;
        assert_eq!(traced.to_vec()?, eager.to_vec()?);
    }
    Ok(())
}

#[test]
fn branches_with_layers_as_a_crate() -> Result<()> {
    let model = adaptive()?;
    let gm = symbolic_trace(&model)?;
    let weights = written(&gm, "Adaptive", include_str!("written/adaptive.rs"))?;
    let crated = adaptive::Adaptive::load(&weights);
    std::fs::remove_file(&weights).map_err(Error::other)?;
    let crated = crated?;
    let again = symbolic_trace(&crated)?;
    for _ in 0..12 {
        let x = Tensor::randn((2, 5, 8))?;
        let (eager, depth) = model.forward(&x)?;
        let (written, counted) = crated.forward(&x)?;
        assert_eq!(written.to_vec()?, eager.to_vec()?);
        assert_eq!(counted.concrete(), depth.concrete());
        let (traced, _): (Tensor, i64) = again.forward(&x)?;
        assert_eq!(traced.to_vec()?, eager.to_vec()?);
    }
    Ok(())
}

#[test]
fn a_layer_that_several_sides_call_is_one_field() -> Result<()> {
    let model = experts()?;
    let gm = symbolic_trace(&model)?;
    let weights = written(&gm, "Experts", include_str!("written/experts.rs"))?;
    let crated = experts::Experts::load(&weights);
    std::fs::remove_file(&weights).map_err(Error::other)?;
    let crated = crated?;
    for _ in 0..10 {
        let x = Tensor::randn((5, 4))?;
        let eager = model.forward(&x)?.to_vec()?;
        assert_eq!(crated.forward(&x)?.to_vec()?, eager);
        assert_eq!(
            symbolic_trace(&crated)?.forward::<Tensor>(&x)?.to_vec()?,
            eager
        );
    }
    Ok(())
}

#[test]
fn a_scan_is_a_field() -> Result<()> {
    let model = rnn()?;
    let gm = symbolic_trace(&model)?;
    let weights = written(&gm, "Rnn", include_str!("written/rnn.rs"))?;
    let crated = rnn::Rnn::load(&weights);
    std::fs::remove_file(&weights).map_err(Error::other)?;
    let crated = crated?;
    let again = symbolic_trace(&crated)?;
    for length in [1, 5] {
        let (xs, h) = (Tensor::randn((length, 2, 3))?, Tensor::zeros((2, 4))?);
        let eager = model.forward(&xs, &h)?.to_vec()?;
        assert_eq!(crated.forward(&xs, &h)?.to_vec()?, eager);
        assert_eq!(again.forward::<Tensor>((&xs, &h))?.to_vec()?, eager);
    }
    Ok(())
}

/// A layer that two branches call.
#[derive(Module)]
struct Twice {
    linear: nn::Linear,
}

#[trace(control_flow)]
impl Twice {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut h = x.clone();
        if h.sum(..)? > 0.0 {
            h = self.linear.forward(&h)?;
        }
        if h.sum(..)? > 0.0 {
            h = (self.linear.forward(&h)? * 2.0)?;
        }
        Ok(h)
    }
}

#[test]
fn layers_at_one_path_share_a_field_while_they_are_the_same() -> Result<()> {
    let model = Twice {
        linear: nn::Linear::new(4, 4)?,
    };
    let mut gm = symbolic_trace(&model)?;
    let source = Folder::new("Twice").source(&gm)?;
    assert_eq!(source.matches("nn::Linear").count(), 1, "{source}");
    assert_eq!(
        source.matches("self.linear.forward(").count(),
        2,
        "{source}"
    );
    let side = gm.submodule_as_mut::<GraphModule>("cond_1.then")?;
    side.set_submodule("linear", nn::Linear::new(4, 4)?)?;
    let source = Folder::new("Twice").source(&gm)?;
    assert_eq!(source.matches("nn::Linear").count(), 2, "{source}");
    assert!(source.contains("self.linear_1.forward("), "{source}");
    Ok(())
}
