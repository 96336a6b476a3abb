//! Calls that compiled code makes as they are, and a crate cannot: what only moves elements is asked where they go, and a
//! few others are steps of other kernels.
//!
//! Invariant: where elements go is what the function itself says.

use std::collections::HashMap;

use fx_core::ir::{Argument, Function, FunctionTable};
use fx_core::value::{NodeId, Value};
use fx_core::{Error, Result, function, operator};
use fx_kernels::pointwise::Binary;
use fx_static::{Places, PoolSpec, Pooled};

use super::floats::Floats;
use super::items::{Given, Planner};
use crate::cpu::array::Dims;
use crate::cpu::draft::{Id, PointOp};
use crate::cpu::views::Viewing;
use crate::lowering::wrapped;
use crate::op_kind::OpKind;
use crate::{Tensor, ops};

/// The most elements whose places `f32` has.
const MOST: usize = 1 << 24;

impl Planner<'_> {
    /// What a call gives that no item is for.
    pub fn host(
        &mut self,
        function: Function,
        args: &[Argument],
        items: &HashMap<NodeId, Id>,
    ) -> Result<Given> {
        let given = |argument: Option<&Argument>| {
            let node = argument.and_then(Argument::as_node)?;
            items.get(&node).copied()
        };
        if function == operator::getitem
            && let (Some(id), Some(Argument::Int(at))) = (given(args.first()), args.get(1))
            && let Given::Parts(parts) = &self.given[id]
        {
            let at = usize::try_from(wrapped(*at, parts.len()));
            let part = at.ok().and_then(|at| parts.get(at));
            let part = part.ok_or_else(|| Error::msg("there is no such result"))?;
            return Ok(Given::Floats(part.clone()));
        }
        let kind = FunctionTable::<OpKind>::registered()?.get(function);
        if let Some(x) = given(args.first()) {
            if kind == Some(&OpKind::View) || turns().contains(&function) {
                return self.moved(function, args, items);
            }
            if function == function!(ops::prelu)
                && let Some(weight) = given(args.get(1))
            {
                return self.prelu(x, weight).map(Given::Floats);
            }
            if let Some(numbers) = args[1..].iter().map(number).collect::<Option<Vec<usize>>>()
                && let Some(pooled) = self.pooled_rows(function, x, &numbers)?
            {
                return Ok(Given::Floats(pooled));
            }
        }
        Err(Error::msg(format_args!(
            "there is no kernel for this call of `{}`",
            function.path()
        )))
    }

    /// The results of a function that only moves elements.
    fn moved(
        &mut self,
        function: Function,
        args: &[Argument],
        items: &HashMap<NodeId, Id>,
    ) -> Result<Given> {
        let mut moved = None;
        let mut values = Vec::with_capacity(args.len());
        for argument in args {
            values.push(argument.to_value(&mut |node| {
                let id = *items
                    .get(&node)
                    .ok_or_else(|| Error::msg("an operand is not there"))?;
                match &self.given[id] {
                    Given::Int(number) => Ok(Value::Int(*number)),
                    Given::Floats(x) if moved.is_none() && x.numel() < MOST => {
                        moved = Some(x.clone());
                        // 0 is an element of no tensor.
                        let places = (1..=x.numel()).map(|at| at as f32).collect();
                        Ok(Value::of(Tensor::from_vec(places, &x.dims[..])?))
                    }
                    _ => Err(Error::msg(
                        "it moves elements of several tensors, or of too many",
                    )),
                }
            })?);
        }
        let x = moved.ok_or_else(|| Error::msg("it moves elements of no tensor of f32"))?;
        let lent: Vec<&Value> = values.iter().collect();
        let mut out = Value::None;
        function.run(&lent, &mut out)?;
        let x = self.contiguous(x)?;
        match &out {
            Value::List(results) | Value::Tuple(results) => {
                let parts = results.iter().map(|result| self.at_places(&x, result));
                Ok(Given::Parts(parts.collect::<Result<_>>()?))
            }
            result => self.at_places(&x, result).map(Given::Floats),
        }
    }

    /// Elements at the places that a result has: as a view, if they lie evenly.
    fn at_places(&mut self, x: &Floats, result: &Value) -> Result<Floats> {
        let result = result
            .downcast_ref::<Tensor>()
            .ok_or_else(|| Error::msg("it gives what is no tensor"))?;
        let dims: Dims = result.dims()?.iter().copied().collect();
        let places: Vec<f32> = result.reshape(-1)?.to_vec1()?;
        if places.contains(&0.0) {
            return Err(Error::msg("it gives elements that it was not given"));
        }
        let places: Vec<usize> = places.into_iter().map(|at| at as usize - 1).collect();
        if let Some(view) = even(x, &dims, &places) {
            return Ok(view);
        }
        let chosen = table(&dims, &places, x.numel());
        self.kernel(chosen, &[x], dims)
    }

    /// `x` where it is above 0, else times the weight of its channel.
    fn prelu(&mut self, x: Id, weight: Id) -> Result<Floats> {
        let x = self.floats(x)?;
        let mut weight = self.floats(weight)?;
        if weight.numel() == 1 {
            weight = self.contiguous(weight)?;
            while !weight.dims.is_empty() {
                weight = weight.without(0);
            }
        } else {
            for _ in 2..x.dims.len() {
                weight = weight.with_one(weight.dims.len());
            }
        }
        let points = vec![
            PointOp::Input(0),
            PointOp::Input(1),
            PointOp::Binary(Binary::Mul, 0, 1),
            PointOp::Number(0.0),
            PointOp::Binary(Binary::Less, 3, 0),
            PointOp::Select(4, 0, 2),
        ];
        self.points_of(&[x, weight], points)
    }

    /// A pool over rows, as one over images of height 1; `None` for another function.
    fn pooled_rows(
        &mut self,
        function: Function,
        x: Id,
        numbers: &[usize],
    ) -> Result<Option<Floats>> {
        let mut spec = PoolSpec::new(1);
        let how = match *numbers {
            [kernel, stride, padding, dilation, ceil] if function == function!(ops::max_pool1d) => {
                (spec.kernel[1], spec.stride[1]) = (kernel, stride);
                (spec.padding[1], spec.dilation[1]) = (padding, dilation);
                spec.ceil_mode = ceil != 0;
                Some(Pooled::Largest)
            }
            [kernel, stride, padding, ceil, counts_padding]
                if function == function!(ops::avg_pool1d) =>
            {
                (spec.kernel[1], spec.stride[1]) = (kernel, stride);
                spec.padding[1] = padding;
                spec.ceil_mode = ceil != 0;
                spec.count_include_pad = counts_padding != 0;
                Some(Pooled::Mean)
            }
            [_] if function == function!(ops::adaptive_avg_pool1d) => None,
            _ => return Ok(None),
        };
        let rows = self.floats(x)?;
        let dim = rows.dims.len().saturating_sub(1);
        let images = rows.with_one(dim);
        let made = match how {
            Some(how) => self.pool(images, &spec, how)?,
            None => self.adaptive_pool(images, [1, numbers[0] as i64])?,
        };
        Ok(Some(made.without(dim)))
    }
}

/// Functions of the kind [`OpKind::Along`] that only move elements.
fn turns() -> [Function; 2] {
    [function!(ops::flip), function!(ops::roll)]
}

/// A whole number or a truth that is written down.
fn number(argument: &Argument) -> Option<usize> {
    match argument {
        Argument::Int(number) => usize::try_from(*number).ok(),
        Argument::Bool(truth) => Some(usize::from(*truth)),
        _ => None,
    }
}

/// The view of `x` with these places, if strides say them.
fn even(x: &Floats, dims: &[usize], places: &[usize]) -> Option<Floats> {
    let first = *places.first()?;
    let mut view = Floats::of(x.memory, dims.into());
    let in_order = view.strides.clone();
    for (dim, size) in dims.iter().enumerate() {
        view.strides[dim] = match size {
            1 => 0,
            _ => places[in_order[dim]].checked_sub(first)?,
        };
    }
    let is_there = |(at, place): (usize, &usize)| {
        let (mut rest, mut sum) = (at, first);
        for (own, stride) in in_order.iter().zip(&view.strides) {
            sum += rest / own * stride;
            rest %= own;
        }
        sum == *place
    };
    places.iter().enumerate().all(is_there).then(|| {
        view.start = x.start + first;
        view
    })
}

/// The shortest table of places: of rows that lie together, for outer places that are alike.
fn table(dims: &[usize], places: &[usize], count: usize) -> Places<Vec<usize>> {
    let mut shortest = Places {
        sizes: [1, count, 1],
        places: places.to_vec(),
    };
    if places.is_empty() {
        return shortest;
    }
    for split in 0..dims.len() {
        let inner: usize = dims[split + 1..].iter().product();
        let is_row = |row: &[usize]| {
            row[0].is_multiple_of(inner) && row.iter().enumerate().all(|(at, p)| *p == row[0] + at)
        };
        if inner == 0 || !count.is_multiple_of(inner) || !places.chunks_exact(inner).all(is_row) {
            continue;
        }
        let rows: Vec<usize> = places.iter().step_by(inner).map(|at| at / inner).collect();
        let each = count / inner;
        for outer in (0..=split).map(|to| dims[..to].iter().product::<usize>()) {
            if outer == 0 || !each.is_multiple_of(outer) || !rows.len().is_multiple_of(outer) {
                continue;
            }
            let (length, step) = (rows.len() / outer, each / outer);
            let is_alike = |(at, part): (usize, &[usize])| {
                let first = rows[..length].iter();
                part.iter()
                    .zip(first)
                    .all(|(p, first)| *p == first + at * step)
            };
            let fits = rows[..length].iter().all(|place| *place < step);
            if length < shortest.places.len()
                && fits
                && rows.chunks_exact(length).enumerate().all(is_alike)
            {
                shortest = Places {
                    sizes: [outer, step, inner],
                    places: rows[..length].to_vec(),
                };
            }
        }
    }
    shortest
}
