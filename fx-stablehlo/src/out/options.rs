//! `Export`: what a program is written for, and how.

use fx_nn::ir::Function;
use fx_nn::ir::ValueMeta;
use fx_nn::lowering::{OpCall, Rules, Val};
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::trace::{CallArgs, IntoArgs};
use fx_nn::value::Dim;

use crate::out::Rule;
use crate::out::cx::Cx;

/// What a program is written for, and how.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::shapes::spec;
/// use fx_stablehlo::{Export, StableHloExt};
/// let gm = symbolic_trace(traced!(|x: &Tensor| x.reshape((x.size(0)?, -1))))?;
/// // A named size gets its number at the export.
/// let export = Export::specs([spec!["batch", 3, 4; F32]]).size("batch", 8);
/// let program = gm.to_stablehlo_text(&export)?;
/// assert!(program.contains("tensor<8x12xf32>"));
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Export {
    given: Inputs,
    sizes: Vec<(String, i64)>,
    pub(crate) donated: Vec<String>,
    pub(crate) rules: Rules<Cx>,
}

/// The arguments that a program is written for.
#[derive(Debug, Clone)]
enum Inputs {
    Example(CallArgs),
    Specs(Vec<Spec>),
}

impl Export {
    fn new(given: Inputs) -> Self {
        Export {
            given,
            sizes: Vec::new(),
            donated: Vec::new(),
            rules: Rules::default(),
        }
    }

    /// For calls with arguments of these shapes and types.
    pub fn example(args: impl IntoArgs) -> Self {
        Export::new(Inputs::Example(args.into_args()))
    }

    /// For calls with arguments like these specs. [`size`](Export::size) gives their named sizes numbers.
    pub fn specs(specs: impl IntoIterator<Item = Spec>) -> Self {
        Export::new(Inputs::Specs(specs.into_iter().collect()))
    }

    /// The number of a named size.
    pub fn size(mut self, name: &str, size: usize) -> Self {
        self.sizes
            .push((name.to_string(), i64::try_from(size).unwrap_or(i64::MAX)));
        self
    }

    /// Gives up the memory of inputs, by the names of their placeholders, or of tensors of the module, by their paths: a
    /// run writes a result of the same element type and sizes over it. State, caches and parameters that a run replaces
    /// are held once then, and not twice.
    ///
    /// ```
    /// use fx_nn::prelude::*;
    /// use fx_stablehlo::{Export, StableHloExt};
    /// let gm = symbolic_trace(traced!(|cache: &Tensor, x: &Tensor| Ok(((cache + x)?, x.sum(..)?))))?;
    /// let x = Tensor::ones((2, 3))?;
    /// let program = gm.to_stablehlo_text(&Export::example((&x, &x)).donate(["cache"]))?;
    /// assert!(program.contains("%a0: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}"));
    /// // No result is left for another one.
    /// assert!(gm.to_stablehlo_text(&Export::example((&x, &x)).donate(["cache", "x"])).is_err());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn donate<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.donated.extend(names.into_iter().map(Into::into));
        self
    }

    /// How calls of a function are written, in place of the rule that it has.
    pub fn op(
        self,
        function: Function,
        emit: impl Fn(&mut Cx, &OpCall<'_>) -> Result<Val> + Send + Sync + 'static,
    ) -> Self {
        self.rule(function, Rule::new(emit))
    }

    /// The rule of a function, in place of the one that it has.
    pub fn rule(mut self, function: Function, rule: Rule) -> Self {
        self.rules.insert(function, rule);
        self
    }

    /// What each input of a graph module will be, with numbers for all sizes.
    pub(crate) fn specs_of(&self, gm: &GraphModule) -> Result<Vec<Spec>> {
        let (args, given): (CallArgs, &[Spec]) = match &self.given {
            Inputs::Example(args) => (args.clone(), &[]),
            Inputs::Specs(specs) => {
                let args = specs.iter().map(Spec::fake_value).collect::<Result<_>>()?;
                let kwargs = Vec::new();
                (CallArgs { args, kwargs }, specs)
            }
        };
        let of = |name: &str| {
            let found = self.sizes.iter().find(|(known, _)| known == name);
            found.map(|(_, size)| Dim::from(*size))
        };
        let values = gm.process_inputs(args)?;
        let specs = values.into_iter().map(|value| match ValueMeta::of(&value) {
            ValueMeta::Single(meta) => {
                let shape = meta.shape.iter().map(|dim| dim.with(of));
                let shape: Vec<Dim> = shape.collect::<Result<_>>()?;
                let dtype = meta
                    .dtype
                    .ok_or_else(|| Error::msg("the element type of an input is not known"))?;
                Ok(Spec::tensor(crate::out::cx::known(&shape)?, dtype))
            }
            ValueMeta::Int(number) => Ok(Spec::int(number.with(of)?)),
            _ => Ok(Spec::of(value)),
        });
        let mut specs: Vec<Spec> = specs.collect::<Result<_>>()?;
        // What the user says of the sizes is of the whole call.
        if let Some(first) = specs.first_mut() {
            *first = first.clone().constrained_like(given);
            for (name, size) in self.sizes.iter().filter(|(_, size)| *size > 0) {
                *first = first.clone().constrained(&format!("{name} == {size}"));
            }
        }
        Ok(specs)
    }
}
