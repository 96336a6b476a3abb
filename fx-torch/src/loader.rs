//! `Loader`: an exported program as a graph module.
//!
//! Invariant: a program that is refused says which node is at fault, and nothing is made of what it does not have.

use std::path::Path;
use std::sync::Arc;

use fx_nn::ir::ParamSpec;
use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;
use fx_nn::shapes::{Spec, SpecSize};
use fx_nn::weights::Checkpoint;
use fx_nn::{Error, Result};
use indexmap::IndexMap;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::archive::Limits;
use crate::read::{Held, Input, Layers, Parameter, Root, Weight, settle, written};
use crate::schema::{Argument, Constant, InputSpec, Program, Size, Sym};
use crate::tree::Tree;
use crate::{archive, element, older, opaque, operator, size};

/// Which modules of PyTorch are modules of the graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Hierarchy {
    /// None: the graph has the operators.
    Flat,
    /// Those of `torch.nn` that fx has: they are called, with their weights at PyTorch's paths.
    #[default]
    Layers,
    /// All: those that fx does not have are graph modules, one inside of the other, as PyTorch's `unflatten` makes them.
    Modules,
}

/// How a program is read.
///
/// ```no_run
/// use fx_torch::{Hierarchy, Loader};
/// let model = Loader::new().trainable(true).hierarchy(Hierarchy::Modules).load("model.pt2")?;
/// println!("{}", model.code());
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Loader {
    trainable: bool,
    hierarchy: Hierarchy,
    limits: Limits,
}

/// Reads a program as a graph module, in evaluation and with frozen parameters.
///
/// ```no_run
/// use fx_nn::prelude::*;
/// let model = fx_torch::load("model.pt2")?;
/// let y: Tensor = model.forward(&Tensor::randn((1, 3, 224, 224))?)?;
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// As [`Loader::load`].
pub fn load(path: impl AsRef<Path>) -> Result<GraphModule> {
    Loader::new().load(path)
}

impl Loader {
    /// Reads a program as it is, with frozen parameters.
    pub fn new() -> Self {
        Loader::default()
    }

    /// Whether parameters need gradients, and the program trains where it was exported in training. Without, dropout is
    /// left out, and batch norms use and keep their running statistics.
    pub fn trainable(mut self, trainable: bool) -> Self {
        self.trainable = trainable;
        self
    }

    /// Which modules of PyTorch are modules of the graph; layers, unless this says otherwise.
    pub fn hierarchy(mut self, hierarchy: Hierarchy) -> Self {
        self.hierarchy = hierarchy;
        self
    }

    /// What a file may ask for.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Reads a file.
    ///
    /// What a run of the program writes, a run of the graph does, at its end and in place: parameters, buffers, and inputs,
    /// whose tensors the caller holds. A tensor that is given with several elements in one place cannot be written.
    ///
    /// # Errors
    /// Returns an error with the node and its line of Python: if the file is no exported program or is cut, or if an
    /// operator is not known.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<GraphModule> {
        let path = path.as_ref();
        operator::registered()?;
        let program = archive::program(path, self.limits)?;
        let about = |e: Error| Error::msg(format_args!("{}: {e}", path.display()));
        let (root, specs) = self.root(program, path).map_err(about)?;
        let traced = Trace::new(&root)
            .inputs(specs.clone())
            .graph_module()
            .map_err(about)?;
        let mut module =
            GraphModule::new(traced.attributes().clone(), traced.graph().clone(), "Graph")?;
        settle(&mut module)?;
        module.eliminate_dead_code()?;
        if !self.trainable {
            nn::set_requires_grad(&mut module, false)?;
            module.eval();
        }
        module.infer_shapes(&specs)?;
        if self.hierarchy == Hierarchy::Modules {
            module.nest_modules("**")?;
        }
        Ok(module)
    }

    fn root(&self, program: Program, path: &Path) -> Result<(Root, Vec<Spec>)> {
        let (weights, tensors) = weights(&program, path)?;
        let leaves = leaves(&program)?;
        let call = program
            .graph_module
            .module_call_graph
            .iter()
            .find(|call| call.fqn.is_empty());
        let signature = call.and_then(|call| call.signature.as_ref());
        let signature =
            signature.ok_or_else(|| Error::msg("the file does not say how it is called"))?;
        let (given, results) = (
            Tree::parse(&signature.in_spec)?,
            Tree::parse(&signature.out_spec)?,
        );
        let Tree::Tuple(both) = given else {
            return Err(Error::msg("the arguments are no tuple"));
        };
        let names = signature.forward_arg_names.as_deref().unwrap_or_default();
        let mut trees: Vec<(Option<String>, Tree)> = Vec::new();
        match both.as_slice() {
            [Tree::Tuple(args), Tree::Dict(kwargs)] => {
                for (at, tree) in args.iter().enumerate() {
                    trees.push((names.get(at).cloned(), tree.clone()));
                }
                trees.extend(
                    kwargs
                        .iter()
                        .map(|(key, tree)| (Some(key.to_string()), tree.clone())),
                );
            }
            _ => return Err(Error::msg("the arguments are no tuple and dict")),
        }
        let mut leaves = leaves.into_iter();
        let (mut arguments, mut params, mut specs) = (Vec::new(), Vec::new(), Vec::new());
        let mut taken: FxHashSet<String> =
            trees.iter().filter_map(|(name, _)| name.clone()).collect();
        for (at, (name, tree)) in trees.into_iter().enumerate() {
            let own: Vec<(Input, Spec)> = leaves.by_ref().take(tree.leaves()).collect();
            let by_leaf = || {
                let (Input::Given(leaf, _) | Input::Fixed(leaf, _)) = &own.first()?.0;
                older::argument(&tree, leaf).filter(|name| taken.insert(name.clone()))
            };
            let name = name.or_else(by_leaf).unwrap_or_else(|| format!("arg_{at}"));
            if own.len() < tree.leaves() {
                return Err(Error::msg(
                    "the arguments have more leaves than there are inputs",
                ));
            }
            let is_given = own
                .iter()
                .any(|(input, _)| matches!(input, Input::Given(..)));
            let (inputs, each): (Vec<Input>, Vec<Spec>) = own.into_iter().unzip();
            if is_given {
                let ty = match (&tree, inputs.as_slice()) {
                    (Tree::Leaf, [Input::Given(_, ty)]) => *ty,
                    _ => "Value",
                };
                params.push(ParamSpec::of_text(name, ty));
                specs.push(tree.spec(&mut each.into_iter())?);
            }
            arguments.push(Parameter {
                tree,
                inputs,
                is_given,
            });
        }
        let layers = match self.hierarchy {
            Hierarchy::Flat => Layers::default(),
            _ => {
                let written = written(&program, &weights)?;
                Layers::of(&program.graph_module.graph, &weights, &tensors, &written)
            }
        };
        let root = Root {
            layers,
            opaque: opaque::leaves(&program.graph_module.graph),
            program: Arc::new(program),
            tensors,
            weights: Arc::new(weights),
            arguments: Arc::new(arguments),
            params,
            results,
            training: self.trainable,
        };
        Ok((root, specs))
    }
}

type Tensors = IndexMap<String, (Held, Tensor)>;

/// The tensors of a program: by the names that nodes read, and by path.
fn weights(program: &Program, path: &Path) -> Result<(Vec<Weight>, Tensors)> {
    let (mut weights, mut tensors) = (Vec::new(), Tensors::new());
    let mut checkpoint = None;
    for input in &program.graph_module.signature.input_specs {
        let (arg, path_in, held) = match input {
            InputSpec::Parameter {
                arg,
                parameter_name,
            } => (arg, parameter_name, Held::Parameter),
            InputSpec::Buffer {
                arg, buffer_name, ..
            } => (arg, buffer_name, Held::Buffer),
            InputSpec::TensorConstant {
                arg,
                tensor_constant_name,
            } => (arg, tensor_constant_name, Held::Constant),
            _ => continue,
        };
        if !tensors.contains_key(path_in) {
            if checkpoint.is_none() {
                checkpoint = Some(Checkpoint::open(path)?);
            }
            let checkpoint = checkpoint.as_ref().expect("it was opened");
            let tensor = match held {
                Held::Parameter => checkpoint.parameter(path_in)?,
                Held::Buffer | Held::Constant => checkpoint.tensor(path_in)?,
            };
            fits(program, &arg.name, path_in, &tensor)?;
            tensors.insert(path_in.clone(), (held, tensor));
        }
        weights.push(Weight {
            name: arg.name.clone(),
            path: path_in.clone(),
        });
    }
    Ok((weights, tensors))
}

/// Whether a tensor is what the graph says of it.
fn fits(program: &Program, name: &str, path: &str, tensor: &Tensor) -> Result<()> {
    let Some(meta) = program.graph_module.graph.tensor_values.get(name) else {
        return Ok(());
    };
    let sizes = tensor.dims()?;
    let is_size = |(known, own): (&Size, &usize)| match known {
        Size::AsInt(number) => usize::try_from(*number) == Ok(*own),
        Size::AsExpr(_) => true,
    };
    let dtype = element::dtype(meta.dtype)?;
    let fits = meta.sizes.len() == sizes.len() && meta.sizes.iter().zip(sizes).all(is_size);
    let shown = meta.sizes.iter().map(|size| match size {
        Size::AsInt(number) => number.to_string(),
        Size::AsExpr(of) => size::text(&of.expr_str).unwrap_or_default(),
    });
    let shown: Vec<String> = shown.collect();
    match fits && Tensor::dtype(tensor)? == dtype {
        true => Ok(()),
        false => Err(Error::msg(format_args!(
            "the tensor `{path}` is {}, and the graph has it as {dtype} of [{}]",
            Value::object(tensor.clone()).describe(),
            shown.join(", ")
        ))),
    }
}

/// The leaves of the arguments, each with what it will be.
fn leaves(program: &Program) -> Result<Vec<(Input, Spec)>> {
    let graph = &program.graph_module.graph;
    let mut ranges: FxHashMap<&str, (i64, Option<i64>)> = FxHashMap::default();
    for (name, range) in &program.range_constraints {
        // A least size of 2 is what `torch.export` assumes of every open size; its programs run with 0 and 1.
        let least = range.min_val.filter(|least| *least > 2).unwrap_or(0);
        ranges.insert(
            name,
            (least, range.max_val.filter(|most| *most < i64::MAX / 2)),
        );
    }
    let mut leaves = Vec::new();
    for input in &program.graph_module.signature.input_specs {
        match input {
            InputSpec::UserInput { arg } => leaves.push(match arg {
                Argument::AsTensor(named) => {
                    let meta = graph.tensor_values.get(&named.name).ok_or_else(|| {
                        Error::msg(format_args!(
                            "the file does not say what the input `{}` is",
                            named.name
                        ))
                    })?;
                    let (mut sizes, mut names) = (Vec::new(), Vec::new());
                    for size in &meta.sizes {
                        sizes.push(match size {
                            Size::AsInt(number) => SpecSize::from(*number),
                            Size::AsExpr(of) => {
                                names.push(size::text(&of.expr_str)?);
                                SpecSize::from(names[names.len() - 1].as_str())
                            }
                        });
                    }
                    let mut spec = Spec::tensor(sizes, element::dtype(meta.dtype)?);
                    for name in names {
                        let Some((least, most)) = ranges.remove(&*name) else {
                            continue;
                        };
                        if least > 0 {
                            spec = spec.constrained(&format!("{name} >= {least}"));
                        }
                        if let Some(most) = most {
                            spec = spec.constrained(&format!("{name} <= {most}"));
                        }
                    }
                    (Input::Given(named.name.clone(), "&Tensor"), spec)
                }
                Argument::AsSymInt(Sym::AsName(name)) => {
                    (Input::Given(name.clone(), "Int"), Spec::int(name.as_str()))
                }
                other => return Err(Error::msg(format_args!("an input is {other:?}"))),
            }),
            InputSpec::ConstantInput { name, value } => {
                let value = match value {
                    Constant::AsNone(_) => Value::None,
                    Constant::AsInt(number) => Value::Int(*number),
                    Constant::AsBool(boolean) => Value::Bool(*boolean),
                    Constant::AsString(text) => Value::Str(text.as_str().into()),
                    Constant::AsFloat(number) => Value::Float(number.value().unwrap_or(f64::NAN)),
                };
                let spec = Spec::of(value.clone());
                leaves.push((Input::Fixed(name.clone(), value), spec));
            }
            InputSpec::CustomObj(_) => {
                return Err(Error::msg(
                    "an input is an object of the user's own class, which is not run",
                ));
            }
            _ => {}
        }
    }
    Ok(leaves)
}
