//! What branches, loops and scans give: sides are joined, and what a loop carries settles.
//!
//! Invariant: a size or a number that is not the same on all ways is a new symbol, and a tensor of other numbers of dims
//! has no shape; what a way claims of a symbol decides nothing outside of it.

use std::any::Any;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::graph::Inference;
use crate::control::{Cond, Scan, While};
use crate::error::{Error, Result};
use crate::graph_module::GraphModule;
use crate::ir::tensor_meta::TensorMeta;
use crate::ir::value_meta::ValueMeta;
use crate::module::module::Module;
use crate::shapes::ShapeEnv;
use crate::text::count;
use crate::value::dim::Dim;
use crate::value::dtype::DType;

impl Inference {
    /// What a branch, a loop or a scan gives; `None` if the module is something else.
    pub(super) fn region(
        &mut self,
        module: &dyn Module,
        args: &[ValueMeta],
    ) -> Result<Option<ValueMeta>> {
        let any: &dyn Any = module;
        let given = if let Some(branch) = any.downcast_ref::<Cond>() {
            self.branch(branch, args)
        } else if let Some(turns) = any.downcast_ref::<While>() {
            self.turns(turns, args)
        } else if let Some(scan) = any.downcast_ref::<Scan>() {
            self.scan(scan, args)
        } else {
            return Ok(None);
        };
        given.map(Some)
    }

    fn branch(&mut self, branch: &Cond, args: &[ValueMeta]) -> Result<ValueMeta> {
        let (condition, operands) = split_condition(args)?;
        if let Some(truth) = condition {
            let side = match truth {
                true => branch.then(),
                false => branch.otherwise(),
            };
            return self.side(side, operands.to_vec());
        }
        let then = self.side(branch.then(), operands.to_vec())?;
        let otherwise = self.side(branch.otherwise(), operands.to_vec())?;
        Joined::default().join(&mut self.env, &then, &otherwise)
    }

    fn turns(&mut self, turns: &While, args: &[ValueMeta]) -> Result<ValueMeta> {
        let (condition, rest) = split_condition(args)?;
        let (init, captured) = rest
            .split_at_checked(turns.carries())
            .ok_or_else(|| Error::expected("the carried values", count(rest.len(), "argument")))?;
        if condition == Some(false) {
            return Ok(one_or_tuple(init.to_vec()));
        }
        let (state, _) = self.settled(turns.body(), init, captured, 1)?;
        Ok(one_or_tuple(state))
    }

    fn scan(&mut self, scan: &Scan, args: &[ValueMeta]) -> Result<ValueMeta> {
        let missing = || Error::expected("the arguments of a scan", count(args.len(), "argument"));
        let (init, rest) = args.split_at_checked(scan.carries()).ok_or_else(missing)?;
        let (sequences, captured) = rest
            .split_at_checked(scan.sequences())
            .ok_or_else(missing)?;
        let mut length: Option<Dim> = None;
        let mut inputs = Vec::with_capacity(sequences.len() + captured.len());
        for sequence in sequences {
            let (own, item) = item_of(sequence)?;
            if let Some(length) = &length
                && !self.env.same(length, &own)?
            {
                return Err(Error::msg(format_args!(
                    "a scan takes items of sequences of {length} and of {own}: all have one length"
                )));
            }
            length.get_or_insert(own);
            inputs.push(item);
        }
        inputs.extend_from_slice(captured);
        let length = length.ok_or_else(missing)?;
        let (mut all, results) = self.settled(scan.step(), init, &inputs, 0)?;
        let lists = results.into_iter();
        all.extend(lists.map(|item| ValueMeta::Repeated(Box::new(item), length.clone())));
        Ok(one_or_tuple(all))
    }

    /// What a body carries after any number of turns, and what else it gives besides the first
    /// `before` results.
    fn settled(
        &mut self,
        body: &GraphModule,
        init: &[ValueMeta],
        rest: &[ValueMeta],
        before: usize,
    ) -> Result<(Vec<ValueMeta>, Vec<ValueMeta>)> {
        let mut state = init.to_vec();
        let mut made = Joined::default();
        // Each turn makes one size or more a symbol, or is the last.
        loop {
            let inputs = state.iter().chain(rest).cloned().collect();
            let given = self.side(body, inputs)?;
            let results = given.items().unwrap_or(std::slice::from_ref(&given));
            let next = results.get(before..before + state.len());
            let next = next.ok_or_else(|| {
                Error::expected("the carried values", count(results.len(), "result"))
            })?;
            let mut is_settled = true;
            for (now, next) in state.iter_mut().zip(next) {
                let joined = made.join(&mut self.env, now, next)?;
                is_settled &= joined == *now;
                *now = joined;
            }
            if is_settled {
                let more = results[before + state.len()..].to_vec();
                return Ok((state, more));
            }
        }
    }

    fn side(&mut self, side: &GraphModule, inputs: Vec<ValueMeta>) -> Result<ValueMeta> {
        let before = self.env.ranges();
        let given = self.graph(side.graph(), side.attributes(), inputs);
        self.env.widen(before);
        given
    }
}

/// The condition, if it is known, and the other arguments.
fn split_condition(args: &[ValueMeta]) -> Result<(Option<bool>, &[ValueMeta])> {
    match args {
        [ValueMeta::Bool(truth), rest @ ..] => Ok((*truth, rest)),
        [_, rest @ ..] => Ok((None, rest)),
        [] => Err(Error::expected("a condition", "no argument")),
    }
}

fn one_or_tuple(items: Vec<ValueMeta>) -> ValueMeta {
    match <[ValueMeta; 1]>::try_from(items) {
        Ok([one]) => one,
        Err(items) => ValueMeta::Tuple(items),
    }
}

/// The length of a sequence, and an item of it.
fn item_of(sequence: &ValueMeta) -> Result<(Dim, ValueMeta)> {
    match sequence {
        ValueMeta::Single(meta) if let [length, rest @ ..] = &meta.shape[..] => {
            let mut item = TensorMeta::new(rest.to_vec());
            item.dtype = meta.dtype;
            item.device = meta.device;
            Ok((length.clone(), ValueMeta::from(item)))
        }
        ValueMeta::Repeated(item, length) => Ok((length.clone(), (**item).clone())),
        other => match other.items() {
            Some([first, ..]) => Ok((
                Dim::from(other.items().map_or(0, <[_]>::len)),
                first.clone(),
            )),
            _ => Err(Error::expected(
                "a tensor with a first dim to scan over",
                other.describe(),
            )),
        },
    }
}

/// What ways have in common, and the symbols that were made for it.
#[derive(Default)]
struct Joined(FxHashSet<Dim>);

impl Joined {
    /// What holds on both ways.
    fn join(&mut self, env: &mut ShapeEnv, a: &ValueMeta, b: &ValueMeta) -> Result<ValueMeta> {
        Ok(match (a, b) {
            (ValueMeta::Single(one), ValueMeta::Single(other)) => {
                if one == other {
                    return Ok(a.clone());
                }
                if one.shape.len() != other.shape.len() {
                    let dtype = one.dtype.filter(|dtype| other.dtype == Some(*dtype));
                    return Ok(ValueMeta::Unranked(dtype));
                }
                let shape = one.shape.iter().zip(&other.shape);
                let shape = shape.map(|(a, b)| self.size(env, a, b, 0));
                let mut meta = TensorMeta::new(shape.collect::<Result<Vec<_>>>()?);
                meta.dtype = one.dtype.filter(|dtype| other.dtype == Some(*dtype));
                meta.device = one.device.filter(|device| other.device == Some(*device));
                meta.requires_grad = one
                    .requires_grad
                    .filter(|grad| other.requires_grad == Some(*grad));
                ValueMeta::Single(Arc::new(meta))
            }
            (ValueMeta::Int(one), ValueMeta::Int(other)) => {
                ValueMeta::Int(self.size(env, one, other, i64::MIN)?)
            }
            (ValueMeta::Float(one), ValueMeta::Float(other)) => {
                let same = one.map(f64::to_bits) == other.map(f64::to_bits);
                ValueMeta::Float(one.filter(|_| same))
            }
            (ValueMeta::Bool(one), ValueMeta::Bool(other)) => {
                ValueMeta::Bool(one.filter(|_| one == other))
            }
            (ValueMeta::Tuple(one), ValueMeta::Tuple(other)) if one.len() == other.len() => {
                ValueMeta::Tuple(self.all(env, one, other)?)
            }
            (ValueMeta::List(one), ValueMeta::List(other)) if one.len() == other.len() => {
                ValueMeta::List(self.all(env, one, other)?)
            }
            (
                ValueMeta::Int(_) | ValueMeta::Float(_) | ValueMeta::Bool(_),
                ValueMeta::Float(_) | ValueMeta::Bool(_) | ValueMeta::Int(_),
            ) => ValueMeta::Float(None),
            (ValueMeta::Single(tensor), number) | (number, ValueMeta::Single(tensor))
                if is_number_like(tensor, number) =>
            {
                let mut meta = TensorMeta::new([0usize; 0]);
                meta.dtype = tensor.dtype;
                ValueMeta::from(meta)
            }
            (ValueMeta::Plain(_), ValueMeta::Plain(_)) if a == b => a.clone(),
            (ValueMeta::Unranked(one), ValueMeta::Unranked(other)) => {
                ValueMeta::Unranked(one.filter(|dtype| *other == Some(*dtype)))
            }
            (ValueMeta::Single(tensor), ValueMeta::Unranked(dtype))
            | (ValueMeta::Unranked(dtype), ValueMeta::Single(tensor)) => {
                ValueMeta::Unranked(dtype.filter(|dtype| tensor.dtype == Some(*dtype)))
            }
            _ => {
                return Err(Error::msg(format_args!(
                    "the ways give {} and {}, which have no shape in common",
                    a.describe(),
                    b.describe()
                )));
            }
        })
    }

    fn all(
        &mut self,
        env: &mut ShapeEnv,
        one: &[ValueMeta],
        other: &[ValueMeta],
    ) -> Result<Vec<ValueMeta>> {
        one.iter()
            .zip(other)
            .map(|(a, b)| self.join(env, a, b))
            .collect()
    }

    /// The size or the number that both are, or a new symbol; one that was made for another turn stays.
    fn size(&mut self, env: &mut ShapeEnv, a: &Dim, b: &Dim, low: i64) -> Result<Dim> {
        if a == b || self.0.contains(a) {
            return Ok(a.clone());
        }
        let symbol = env.fresh(low, None)?;
        self.0.insert(symbol.clone());
        Ok(symbol)
    }
}

/// Whether a tensor of one element stands for such a number too: a condition is a tensor on one way, and `false` on
/// the way of a `break`.
fn is_number_like(tensor: &TensorMeta, number: &ValueMeta) -> bool {
    let is_of_kind = |dtype: DType| match number {
        ValueMeta::Bool(_) => dtype == DType::Bool,
        ValueMeta::Int(_) => dtype != DType::Bool && !dtype.is_floating_point(),
        ValueMeta::Float(_) => dtype.is_floating_point(),
        _ => false,
    };
    tensor.dtype.is_some_and(is_of_kind) && tensor.numel() == Some(1)
}
