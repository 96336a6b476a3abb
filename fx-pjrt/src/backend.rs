//! `Pjrt`: the devices of a client as a backend of graph modules.
//!
//! Invariant: a part that the plugin refuses stays a graph, and the report says why.

use std::path::Path;
use std::sync::Arc;

use fx_nn::ir::{Argument, Op, ValueMeta};
use fx_nn::lowering::{Form, Rules, Val};
use fx_nn::module::{Call, Callee, Module};
use fx_nn::passes::Region;
use fx_nn::passes::backend::{Backend, Executable, Metas, Support};
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::trace::Trace;
use fx_stablehlo::Cx;

use crate::cache::Cache;
use crate::client::{Client, ClientOptions};
use crate::code::{Code, Settings, example};
use crate::plugin::Plugin;

/// The environment variable with the path of a plugin.
pub const PLUGIN_VARIABLE: &str = "FX_PJRT_PLUGIN";

/// The devices of a plugin as a [`Backend`]: graphs are written as StableHLO, and run where the
/// plugin runs them. Weights are placed once, and again after they were written on the host.
///
/// ```no_run
/// use fx_nn::prelude::*;
/// use fx_nn::models::resnet::resnet18;
/// use fx_nn::passes::backend::Compile;
/// use fx_pjrt::Pjrt;
/// let mut model = resnet18(1000)?;
/// model.eval();
/// let x = Tensor::randn((1, 3, 224, 224))?;
/// let gm = symbolic_trace(&model)?;
/// let there = gm.compile(Compile::new(Pjrt::cpu()?).like(&x))?;
/// let y: Tensor = there.forward(&x)?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Pjrt(Settings);

impl Pjrt {
    /// The devices of a client.
    pub fn new(client: Client) -> Self {
        Pjrt(Settings {
            client,
            buckets: Vec::new(),
            cache: None,
        })
    }

    /// The CPU by the plugin whose path is in `FX_PJRT_PLUGIN`.
    ///
    /// # Errors
    /// Returns an error if the variable is not set, or names another kind of plugin; or as [`Plugin::load`] and
    /// [`Client::new`].
    pub fn cpu() -> Result<Self> {
        let pjrt = Pjrt::from_env()?;
        match pjrt.client().platform() {
            "cpu" => Ok(pjrt),
            other => Err(Error::msg(format_args!(
                "{PLUGIN_VARIABLE} names a plugin for `{other}`, and not for CPUs: `Pjrt::from_env` takes any"
            ))),
        }
    }

    /// The devices of the plugin whose path is in `FX_PJRT_PLUGIN`.
    ///
    /// # Errors
    /// As [`cpu`](Pjrt::cpu), of any kind.
    pub fn from_env() -> Result<Self> {
        let path = std::env::var_os(PLUGIN_VARIABLE).filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| {
            Error::msg(format_args!(
                "{PLUGIN_VARIABLE} is not set: it is the path of a PJRT plugin, such as pjrt_c_api_cpu_plugin.so of the package lammps-jax-pjrt-cpu; the guide `devices.md` lists them"
            ))
        })?;
        let plugin = Plugin::load(path)?;
        Ok(Pjrt::new(Client::new(plugin, &ClientOptions::new())?))
    }

    /// The devices of the plugin of a name, such as `cuda13`, from the packages of a Python.
    ///
    /// ```no_run
    /// let pjrt = fx_pjrt::Pjrt::named("cuda13", "venv/bin/python")?;
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`plugin`](crate::plugin()) and [`Client::new`].
    pub fn named(name: &str, python: impl AsRef<Path>) -> Result<Self> {
        let plugin = crate::find::plugin(name, python)?;
        Ok(Pjrt::new(Client::new(plugin, &ClientOptions::new())?))
    }

    /// Pads batches to the next of these sizes: one program serves all batches up to each, where
    /// others are compiled for. A graph in which a sample depends on others or on the size of the
    /// batch, and a batch above the largest size, is compiled as it is. The steps of the code say
    /// which it was: [`Compiled::steps`](fx_nn::passes::backend::Compiled::steps).
    ///
    /// ```no_run
    /// # use fx_pjrt::Pjrt;
    /// let pjrt = Pjrt::cpu()?.batch_sizes([8, 32, 128]);
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    #[must_use]
    pub fn batch_sizes(mut self, sizes: impl IntoIterator<Item = usize>) -> Self {
        self.0.buckets = sizes.into_iter().collect();
        self
    }

    /// Keeps compiled programs in a folder.
    #[must_use]
    pub fn cache(mut self, cache: Cache) -> Self {
        self.0.cache = Some(cache);
        self
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.0.client
    }
}

impl Backend for Pjrt {
    fn name(&self) -> &str {
        "pjrt"
    }

    fn supports(&self, call: &Call<'_>, metas: &Metas<'_>) -> Support {
        // What shapes say is written as a number.
        if metas.result().and_then(known).is_some() {
            return Support::IfFused;
        }
        match supports_call(call) {
            Ok(support) => support,
            Err(error) => Support::no(error.to_string()),
        }
    }

    fn worth(&self, gm: &GraphModule, part: &Region) -> bool {
        let nodes = part.nodes().iter();
        let nodes = nodes.filter_map(|id| gm.graph().node(*id).ok());
        // A layer is several calls.
        let calls = nodes.map(|node| match node.op() {
            Op::CallModule(_) => 2,
            op => usize::from(op.is_call()),
        });
        calls.sum::<usize>() >= 2
    }

    fn prepare(&self, module: &mut GraphModule) -> Result<()> {
        nn::set_requires_grad(module, false)
    }

    fn compile(
        &self,
        part: &GraphModule,
        inputs: &[Option<ValueMeta>],
    ) -> Result<Arc<dyn Executable>> {
        Ok(Arc::new(Code::of(&self.0, part, inputs)?))
    }
}

fn supports_call(call: &Call<'_>) -> Result<Support> {
    if let Some(function) = call.function() {
        let form = Rules::<Cx>::default().form(function)?;
        return Ok(match form {
            Some(Form::Operations | Form::OtherFunctions) => Support::Yes,
            Some(Form::Refused(reason)) => Support::no(reason),
            _ => Support::no(format!("StableHLO has no form of {}", function.path())),
        });
    }
    match call.callee() {
        Callee::Module(layer) if !layer.graph_names().is_empty() => Ok(Support::Yes),
        Callee::Module(layer) => supports_layer(*layer, call),
        _ => Ok(Support::no("the callee is not known")),
    }
}

fn supports_layer(layer: &dyn Module, call: &Call<'_>) -> Result<Support> {
    let mut body = Trace::new(layer).graph_module()?;
    // With the shapes of this call, if they are known, sizes are numbers.
    if let Some(specs) = specs(&body, call) {
        let _ = body.infer_shapes(&specs);
    }
    for node in body.graph().nodes().filter(|node| node.op().is_call()) {
        if node.meta().and_then(known).is_some() {
            continue;
        }
        if let no @ Support::No(_) = supports_call(&body.call(node)?)? {
            return Ok(no);
        }
    }
    Ok(Support::Yes)
}

/// What a layer's inputs are in a call, as far as they are tensors or constants; `None` if one is not known.
fn specs(body: &GraphModule, call: &Call<'_>) -> Option<Vec<Spec>> {
    let bound = call.bind().ok()?;
    let inputs = body.graph().placeholders().map(|input| {
        let argument = bound.get(input.target())?;
        match &*argument {
            Argument::Node(id) => {
                let mut given = call.node().all_input_nodes();
                let meta = given.find(|node| node.id() == *id)?.meta::<ValueMeta>()?;
                example(meta).map(Spec::of)
            }
            Argument::None => Some(Spec::of(Value::None)),
            Argument::Bool(truth) => Some(Spec::of(Value::Bool(*truth))),
            Argument::Int(number) => Some(Spec::of(Value::Int(*number))),
            Argument::Float(number) => Some(Spec::of(Value::Float(*number))),
            _ => None,
        }
    });
    inputs.collect()
}

/// The number that a value is known to be.
fn known(meta: &ValueMeta) -> Option<Val> {
    Val::known(meta, &|dim| dim.as_number().is_some())
}
