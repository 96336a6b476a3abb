//! `Trained`: the parameters of a module that an optimizer trains, by path, with the optimizer's
//! state of each.
//!
//! Invariant: a shared parameter is here once, under its first path; its state has its shape.

use candle_core::{Tensor as Candle, Var};
use fx_core::module::Component;
use fx_core::{Error, ErrorKind, Result};
use indexmap::IndexMap;

use crate::error::Fx;
use crate::nn::named_variables;
use crate::tensor::writes::written;
use crate::tensor::{Gradients, Number, Tensor};

/// A parameter that is trained.
#[derive(Debug)]
pub(super) struct Parameter {
    var: Var,
    /// How often it was changed.
    pub step: u64,
    /// The optimizer's state: one tensor for each of its names, once the parameter was changed.
    remembered: Vec<Candle>,
}

impl Parameter {
    /// The state under the name at an index; zeros before the first change.
    pub fn remembered(&self, at: usize) -> candle_core::Result<Candle> {
        match self.remembered.get(at) {
            Some(tensor) => Ok(tensor.clone()),
            None => self.var.as_tensor().detach().zeros_like(),
        }
    }

    pub fn value(&self) -> Candle {
        self.var.as_tensor().detach()
    }

    /// Sets a new value, and the state after this change.
    pub fn change(&mut self, value: &Candle, remembered: Vec<Candle>) -> candle_core::Result<()> {
        self.var.set(value)?;
        written(self.var.as_tensor());
        self.remembered = remembered;
        self.step += 1;
        Ok(())
    }
}

/// The trained parameters of a module.
#[derive(Debug)]
pub(super) struct Trained {
    parameters: IndexMap<String, Parameter>,
    /// The names of the state in PyTorch's optimizer.
    names: &'static [&'static str],
}

impl Trained {
    /// # Errors
    /// Returns an error if a parameter is symbolic, or none is trained.
    pub fn of(module: &(impl Component + ?Sized), names: &'static [&'static str]) -> Result<Self> {
        let parameters = named_variables(module)?.into_iter().map(|(path, var)| {
            let parameter = Parameter {
                var,
                step: 0,
                remembered: Vec::new(),
            };
            (path, parameter)
        });
        let parameters: IndexMap<String, Parameter> = parameters.collect();
        match parameters.is_empty() {
            true => Err(Error::msg(
                "the module has no parameters to train: unfreeze some with `nn::set_requires_grad`",
            )),
            false => Ok(Trained { parameters, names }),
        }
    }

    /// Changes every parameter that has a gradient.
    pub fn step(
        &mut self,
        gradients: &Gradients,
        mut change: impl FnMut(&mut Parameter, Candle) -> candle_core::Result<()>,
    ) -> Result<()> {
        for (path, parameter) in &mut self.parameters {
            if let Some(gradient) = gradients.candle().get(&parameter.var) {
                let changed = change(parameter, gradient.detach());
                changed.map_err(|e| Error::msg(format_args!("`{path}`: {e}")))?;
            }
        }
        Ok(())
    }

    /// The state, by `path.name`, and how often each parameter was changed, by `path.step`.
    pub fn state_dict(&self) -> Result<IndexMap<String, Tensor>> {
        let mut state = IndexMap::new();
        for (path, parameter) in &self.parameters {
            if parameter.step == 0 {
                continue;
            }
            let step = i64::try_from(parameter.step).expect("a program does not take 2^63 steps");
            state.insert(format!("{path}.step"), Tensor::from_vec(vec![step], ())?);
            for (name, tensor) in self.names.iter().zip(&parameter.remembered) {
                state.insert(format!("{path}.{name}"), tensor.clone().into());
            }
        }
        Ok(state)
    }

    /// # Errors
    /// Returns an error if an entry belongs to no parameter, has a different shape, or lacks
    /// another part; nothing is changed then.
    pub fn load_state_dict(&mut self, state: &IndexMap<String, Tensor>) -> Result<()> {
        let mut problems = Vec::new();
        let mut used = 0;
        let mut loaded = Vec::with_capacity(self.parameters.len());
        for (path, parameter) in &self.parameters {
            let Some(step) = state.get(&format!("{path}.step")) else {
                loaded.push((0, Vec::new()));
                continue;
            };
            used += 1;
            let own = parameter.var.as_tensor();
            let mut remembered = Vec::with_capacity(self.names.len());
            for name in self.names {
                let name = format!("{path}.{name}");
                match state.get(&name) {
                    None => problems.push(format!("`{name}` is missing")),
                    Some(tensor) if tensor.dims()? != own.dims() => problems.push(format!(
                        "`{name}` has shape {:?}, and the parameter {:?}",
                        tensor.dims()?,
                        own.dims()
                    )),
                    Some(tensor) => {
                        used += 1;
                        // A copy: no other tensor shares the state.
                        let data = tensor.candle()?.detach().to_dtype(own.dtype());
                        remembered.push(data.and_then(|data| data.copy()).fx()?);
                    }
                }
            }
            match step.number()? {
                Number::Int(step @ 0..) => loaded.push((step.unsigned_abs(), remembered)),
                _ => problems.push(format!("`{path}.step` is not a count of steps")),
            }
        }
        if problems.is_empty() && used != state.len() {
            let is_known = |name: &str| {
                self.parameters.keys().any(|path| {
                    let rest = name
                        .strip_prefix(&**path)
                        .and_then(|rest| rest.strip_prefix('.'));
                    rest.is_some_and(|rest| rest == "step" || self.names.contains(&rest))
                })
            };
            let unknown = state.keys().filter(|name| !is_known(name));
            problems
                .extend(unknown.map(|name| format!("`{name}` belongs to no trained parameter")));
        }
        if !problems.is_empty() {
            return Err(ErrorKind::Weights(problems.join("\n")).into());
        }
        for (parameter, (step, remembered)) in self.parameters.values_mut().zip(loaded) {
            (parameter.step, parameter.remembered) = (step, remembered);
        }
        Ok(())
    }
}
