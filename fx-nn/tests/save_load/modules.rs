//! Every kind of field of a module, through a file.

use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;

use fx_nn::module::{ComponentExt, Tag};
use fx_nn::prelude::*;
use fx_nn::register_module;
use fx_nn::value::{DType, IntoValue};
use indexmap::IndexMap;

use super::support::{json_of, loads_the_same, run};

/// An enum that is not a module: plain data.
#[derive(Module, Clone, Debug, PartialEq)]
enum Mode {
    Plain,
    Scaled { by: f64, twice: Option<bool> },
    Named(String, i64),
}

#[derive(Module)]
enum Act {
    Relu(nn::ReLU),
    Gelu { inner: nn::GELU },
}

#[derive(Module)]
struct Everything {
    weight: Tensor,
    missing: Option<Tensor>,
    #[module(buffer)]
    mean: Tensor,
    layers: Vec<nn::Linear>,
    pair: (nn::ReLU, Option<nn::Linear>),
    array: [nn::Linear; 2],
    boxed: Box<dyn Module>,
    own_box: Box<nn::Linear>,
    shared: Arc<nn::Linear>,
    shared_dyn: Arc<dyn Module>,
    named: IndexMap<String, nn::Linear>,
    by_static: IndexMap<&'static str, Tensor>,
    #[module(flatten)]
    flat: IndexMap<String, Tensor>,
    act: Act,
    second_act: Act,
    modes: Vec<Mode>,
    tag: Tag,
    nothing: (),
    text: String,
    fixed: &'static str,
    owned: Arc<str>,
    file: PathBuf,
    letter: char,
    dtype: DType,
    marker: PhantomData<u8>,
    numbers: Vec<f64>,
    small: f32,
    counts: (i8, u64, usize),
    nested: Option<Option<Option<u8>>>,
    of_nothing: Option<()>,
    #[module(skip)]
    cache: Vec<u8>,
    training: bool,
}

#[trace(leaf)]
impl Everything {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut y = (x + &self.weight)?;
        for layer in self.layers.iter().chain(&self.array) {
            y = layer.forward(&y)?;
        }
        y = self.boxed.forward(&y)?;
        y = self.shared_dyn.forward(&self.shared.forward(&y)?)?;
        for layer in self.named.values() {
            y = layer.forward(&y)?;
        }
        y = match &self.act {
            Act::Relu(inner) => inner.forward(&y)?,
            Act::Gelu { inner } => inner.forward(&y)?,
        };
        for mode in &self.modes {
            y = match mode {
                Mode::Plain => y,
                Mode::Scaled { by, .. } => (y * *by)?,
                Mode::Named(_, n) => (y + *n)?,
            };
        }
        for number in &self.numbers {
            if number.is_finite() {
                y = (y + *number)?;
            }
        }
        y + &self.mean
    }
}

fn everything() -> Result<Everything> {
    let linear = || nn::Linear::new(3, 3);
    Ok(Everything {
        weight: Tensor::rand(3)?.into_parameter()?,
        missing: None,
        mean: Tensor::rand(3)?,
        layers: vec![linear()?, nn::Linear::new(3, 3)?.bias(false)],
        pair: (nn::ReLU::new(), Some(linear()?)),
        array: [linear()?, linear()?],
        boxed: Box::new(
            nn::Sequential::new()
                .push(linear()?)
                .push(nn::Dropout::new(0.25)?),
        ),
        own_box: Box::new(linear()?),
        shared: Arc::new(linear()?),
        shared_dyn: Arc::new(nn::LayerNorm::new([3])?),
        named: [("b".to_string(), linear()?), ("a".to_string(), linear()?)]
            .into_iter()
            .collect(),
        by_static: [("q", Tensor::rand(1)?)].into_iter().collect(),
        flat: [("outer".to_string(), Tensor::rand(1)?)]
            .into_iter()
            .collect(),
        act: Act::Relu(nn::ReLU::new()),
        second_act: Act::Gelu {
            inner: nn::GELU::new(),
        },
        modes: vec![
            Mode::Plain,
            Mode::Scaled {
                by: -0.0,
                twice: Some(false),
            },
            Mode::Named("n \"quoted\" \u{1F980}\n".into(), i64::MIN),
        ],
        tag: Tag::default(),
        nothing: (),
        text: "%x".into(),
        fixed: "fixed",
        owned: "owned".into(),
        file: "some/file".into(),
        letter: '\u{e9}',
        dtype: DType::BF16,
        marker: PhantomData,
        numbers: vec![
            0.1,
            1e300,
            5e-324,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ],
        small: 0.1,
        counts: (-128, u64::MAX, 7),
        nested: Some(Some(None)),
        of_nothing: Some(()),
        cache: vec![1, 2, 3],
        training: false,
    })
}

/// A graph that calls one module.
fn calling(module: impl Module) -> Result<GraphModule> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x + 0.0))?;
    gm.add_submodule("inner.module", module)?;
    let add = gm.graph().find_name("add").map(|node| node.id());
    let add = add.ok_or_else(|| Error::msg("the graph adds"))?;
    let mut graph = gm.graph_mut();
    let call = graph
        .inserting_after(add)?
        .call_module("inner.module", (add,), ())?;
    graph
        .node_mut(add)?
        .replace_uses_with_filter(call, |user| user.id() != call)?;
    drop(graph);
    Ok(gm)
}

fn loaded<M: Module + Sized>(gm: &GraphModule) -> Result<GraphModule> {
    let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
    assert!(loaded.submodule("inner.module")?.is::<M>());
    Ok(loaded)
}

#[test]
fn every_kind_of_field_comes_back() -> Result<()> {
    let gm = calling(everything()?)?;
    loads_the_same("everything", &gm, vec![Tensor::rand((2, 3))?.into_value()])?;
    let loaded = loaded::<Everything>(&gm)?;
    let any = loaded.submodule("inner.module")?;
    let it = any.downcast_ref::<Everything>();
    let it = it.ok_or_else(|| Error::msg("another type"))?;
    let made = everything()?;
    assert!(it.modes == made.modes && !it.training && it.missing.is_none());
    assert!(matches!(&it.modes[1], Mode::Scaled { by, .. } if by.is_sign_negative()));
    assert_eq!(
        (&it.text, it.fixed, &*it.owned, &it.file),
        (&made.text, "fixed", "owned", &made.file)
    );
    assert_eq!(
        (it.letter, it.dtype, it.counts, it.small),
        (made.letter, made.dtype, made.counts, 0.1)
    );
    assert_eq!((it.nested, it.of_nothing), (Some(Some(None)), Some(())));
    assert!(it.named.keys().eq(["b", "a"]) && it.by_static.contains_key("q"));
    let numbers = |e: &Everything| e.numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(numbers(it), numbers(&made));
    assert!(it.cache.is_empty(), "a skipped field is made by `Default`");
    assert!(it.pair.1.is_some() && it.own_box.bias.is_some());
    assert!(matches!(it.second_act, Act::Gelu { .. }));
    Ok(())
}

#[test]
fn training_flags_come_back() -> Result<()> {
    let mut gm = calling(nn::Dropout::new(0.5)?)?;
    for mode in [true, false] {
        gm.set_training(mode);
        let loaded = loaded::<nn::Dropout>(&gm)?;
        let any = loaded.submodule("inner.module")?;
        assert!(
            any.downcast_ref::<nn::Dropout>()
                .is_some_and(|d| d.training == mode)
        );
    }
    Ok(())
}

#[test]
fn graph_modules_nest_in_files() -> Result<()> {
    let inner = symbolic_trace(&nn::Sequential::new().push(nn::Linear::new(3, 3)?))?;
    let mut gm = calling(inner)?;
    for _ in 0..5 {
        gm = calling(gm)?;
    }
    loads_the_same("nested", &gm, vec![Tensor::rand((2, 3))?.into_value()])?;
    loaded::<GraphModule>(&gm)?;
    Ok(())
}

#[test]
fn modules_nested_too_deep_are_refused_when_saved() -> Result<()> {
    let mut module: Box<dyn Module> = Box::new(nn::ReLU::new());
    for _ in 0..100 {
        let mut outer = nn::Sequential::new();
        outer = outer.push(module);
        module = Box::new(outer);
    }
    let mut outer = nn::Sequential::new();
    outer = outer.push(module);
    let problem = calling(outer)?.to_bytes();
    assert!(problem.is_err_and(|e| {
        e.to_string()
            .ends_with("modules nest deeper than 64 levels")
    }));
    Ok(())
}

/// A layer around another.
#[derive(Module)]
struct Residual<M> {
    inner: M,
}

#[trace(leaf)]
impl<M: Module> Residual<M> {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x + self.inner.forward::<Tensor>(x)?
    }
}

register_module!(Residual<nn::ReLU>);
register_module!(Residual<nn::ReLU>, formerly = "old::Skip");

#[test]
fn generic_modules_are_registered_one_by_one() -> Result<()> {
    let gm = calling(Residual {
        inner: nn::ReLU::new(),
    })?;
    loads_the_same("residual", &gm, vec![Tensor::rand(3)?.into_value()])?;
    loaded::<Residual<nn::ReLU>>(&gm)?;

    let other = calling(Residual {
        inner: nn::GELU::new(),
    })?;
    let text = other.to_bytes().err().map(|e| e.to_string());
    let text = text.unwrap_or_default();
    assert!(
        text.starts_with("modules[0]: the module type `behaviour::save_load::modules::Residual<"),
        "{text}"
    );
    assert!(
        text.ends_with("write `fx_core::register_module!(Residual<GELU>);`"),
        "{text}"
    );
    Ok(())
}

#[test]
fn a_type_that_has_moved_is_found_by_its_former_name() -> Result<()> {
    let gm = calling(Residual {
        inner: nn::ReLU::new(),
    })?;
    let bytes = gm.to_bytes()?;
    let mut json = json_of(&bytes)?;
    json["modules"][0]["type"] = "old::Skip".into();
    let old = super::support::with_json(&bytes, &json.to_string())?;
    let loaded = GraphModule::from_bytes(&old)?;
    run(&loaded, vec![Tensor::rand(3)?.into_value()])?;
    // And it is saved under the current name.
    assert!(loaded.to_bytes()? == bytes);
    Ok(())
}

#[derive(Clone)]
struct Handle;

/// A layer with a field that cannot be recreated.
#[derive(Module)]
struct Connected {
    tag: fx_nn::module::Tag,
    #[module(skip)]
    handle: Handle,
}

#[trace(leaf)]
impl Connected {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let _ = &self.handle;
        Ok(x.clone())
    }
}

#[test]
fn a_skipped_field_without_default_is_told() -> Result<()> {
    let gm = calling(Connected {
        tag: fx_nn::module::Tag::default(),
        handle: Handle,
    })?;
    assert_eq!(
        gm.to_bytes()
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default(),
        "modules[0].config.handle: the field is skipped, and its type `Handle` has no `Default` to load it by: \
         implement it, or do not skip the field"
    );
    Ok(())
}

/// A hand-written component, which does not define how it is saved.
struct ByHand;

impl fx_nn::module::Component for ByHand {
    fn duplicate(&self) -> Self {
        ByHand
    }
}

#[derive(Module)]
struct Holder {
    tag: fx_nn::module::Tag,
    by_hand: ByHand,
}

#[trace(leaf)]
impl Holder {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let _ = &self.by_hand;
        Ok(x.clone())
    }
}

#[test]
fn a_component_by_hand_is_told_how() -> Result<()> {
    let gm = calling(Holder {
        tag: fx_nn::module::Tag::default(),
        by_hand: ByHand,
    })?;
    assert_eq!(
        gm.to_bytes()
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default(),
        "modules[0].config.by_hand: a `ByHand` cannot be kept in a file: its type does not implement \
         `Component::to_saved`, which #[derive(Module)] does"
    );
    Ok(())
}
