//! Kernels whose weights a run decides, as those of a training step are: linear layers, norms and embeddings, and what
//! their gradients are made of.
//!
//! Invariant: each element of a result is written by one thread, in an order that the number of threads does not change.

use std::borrow::Cow;

use fx_core::ir::Argument;
use fx_core::value::DType;
use fx_core::{Error, Result, operator};
use fx_kernels::matrix::{Finish, Matrices, Sizes, matmul};
use fx_kernels::pointwise::Binary;
use fx_kernels::{SizeError, embedding, norm, scatter, transpose};
use smallvec::SmallVec;

use super::array::{Array, Dims, Memory};
use super::call::{Args, Lowering};
use super::draft::{Id, Kind, NormOf, PointOp};
use super::frame::{Reading, Register, array, place};
use super::memory::Pool;
use super::over;
use crate::Tensor;

impl Lowering<'_> {
    /// A linear layer; its weight is `[outputs, inputs]`.
    pub fn linear_of(&mut self, args: &Args<'_>) -> Option<Id> {
        let mut inputs = vec![self.floats(args, "x")?, self.floats(args, "weight")?];
        if !args.is_none("bias") {
            inputs.push(self.floats(args, "bias")?);
        }
        self.push(args, Kind::LinearOf, inputs)
    }

    pub fn norm_of(&mut self, args: &Args<'_>, is_layer: bool) -> Option<Id> {
        let mut inputs = vec![self.floats(args, "x")?];
        let [size] = args.ints("normalized_shape")?[..] else {
            return None;
        };
        let mut given = |name: &str| -> Option<bool> {
            if args.is_none(name) {
                return Some(false);
            }
            inputs.push(self.floats(args, name)?);
            Some(true)
        };
        let kind = NormOf {
            is_layer,
            size: usize::try_from(size).ok()?,
            eps: args.float("eps")? as f32,
            has_weight: given("weight")?,
            has_bias: is_layer && given("bias")?,
        };
        self.push(args, Kind::NormOf(kind), inputs)
    }

    pub fn embedding_of(&mut self, args: &Args<'_>) -> Option<Id> {
        // What the function refuses is refused by it.
        if !args.is_none("padding_idx") && args.int("padding_idx")? < 0 {
            return None;
        }
        let x = self.item_of(&*args.get("x")?)?;
        let weight = self.floats(args, "weight")?;
        self.push(args, Kind::EmbeddingOf, vec![x, weight])
    }

    /// Rows that are added to others, at indices.
    pub fn index_add(&mut self, args: &Args<'_>) -> Option<Id> {
        if args.int("dim")? != 0 || args.float("alpha")? != 1.0 {
            return None;
        }
        let index = self.item_of(&*args.get("index")?)?;
        let inputs = vec![self.floats(args, "x")?, index, self.floats(args, "source")?];
        self.push(args, Kind::AddRows, inputs)
    }

    /// Elements at indices along a dim.
    pub fn take_along(&mut self, args: &Args<'_>) -> Option<Id> {
        let dim = args.int("dim")?;
        let inputs = vec![self.floats(args, "x")?, self.item_of(&*args.get("index")?)?];
        self.push(args, Kind::TakeAlong(dim), inputs)
    }

    /// Elements that are added at indices along a dim.
    pub fn add_along(&mut self, args: &Args<'_>) -> Option<Id> {
        let dim = args.int("dim")?;
        let index = self.item_of(&*args.get("index")?)?;
        let inputs = vec![self.floats(args, "x")?, index, self.floats(args, "src")?];
        self.push(args, Kind::AddAlong(dim), inputs)
    }

    /// One number in the sizes of a tensor.
    pub fn filled_like(&mut self, args: &Args<'_>, number: f64) -> Option<Id> {
        match args.get("dtype").as_deref() {
            None | Some(Argument::None) => {}
            Some(Argument::DType(dtype)) if self.is_computed(*dtype) => {}
            _ => return None,
        }
        let x = self.floats(args, "x")?;
        self.push(args, Kind::Filled(number as f32), vec![x])
    }

    /// Where a comparison of floats holds, as ones and zeros.
    pub fn mask(&mut self, function: fx_core::ir::Function, args: &Args<'_>) -> Option<Id> {
        let (f, is_turned) = [
            (operator::lt, Binary::Less, false),
            (operator::le, Binary::LessEqual, false),
            (operator::gt, Binary::Less, true),
            (operator::ge, Binary::LessEqual, true),
            (operator::eq, Binary::Equal, false),
            (operator::ne, Binary::NotEqual, false),
        ]
        .into_iter()
        .find_map(|(of, f, is_turned)| (of == function).then_some((f, is_turned)))?;
        let mut inputs = Vec::new();
        let mut steps = Vec::new();
        for index in [0, 1] {
            let name = args.param(index)?;
            steps.push(match args.float(name) {
                Some(number) => PointOp::Number(number as f32),
                None => {
                    inputs.push(self.floats(args, name)?);
                    PointOp::Input(inputs.len() - 1)
                }
            });
        }
        let [a, b] = if is_turned { [1, 0] } else { [0, 1] };
        steps.push(PointOp::Binary(f, a, b));
        match inputs.is_empty() {
            true => None,
            false => self.push(args, Kind::Pointwise(steps), inputs),
        }
    }
}

impl Reading<'_> {
    pub fn linear_of(&self, inputs: &[Id], pool: &mut Pool) -> Result<Register> {
        let (x, weight) = (self.array(inputs[0], pool)?, self.array(inputs[1], pool)?);
        let ([.., depth], [outputs, width]) = (&x.dims[..], &weight.dims[..]) else {
            return Err(Error::msg(
                "the weight of a linear layer has two dimensions",
            ));
        };
        if depth != width {
            return Err(Error::msg("the input of a linear layer has another width"));
        }
        let (depth, outputs) = (*depth, *outputs);
        let mut dims = x.dims.clone();
        let last = dims.len() - 1;
        dims[last] = outputs;
        let rows = dims[..last].iter().product();
        let x = match x.reshaped(&[rows, depth]) {
            Some(x) => x,
            None => {
                let x = self.contiguous(x, pool)?;
                x.reshaped(&[rows, depth])
                    .ok_or_else(|| Error::msg("rows in order are rows"))?
            }
        };
        let bias = inputs.get(2).map(|id| self.in_order(*id, pool));
        let bias = bias.transpose()?;
        let sizes = Sizes {
            batch: &[],
            rows,
            depth,
            columns: outputs,
        };
        let finish = Finish {
            bias: bias.as_ref().map(|bias| self.floats(bias)),
            ..Finish::default()
        };
        let left = self.matrix(&x, false);
        let right = self.matrix(&weight, true);
        array(dims, pool, |out| {
            matmul(self.level, sizes, left, right, 1.0, finish, out)
        })
    }

    /// A matrix, or what its rows are as columns.
    fn matrix<'a>(&'a self, x: &'a Array, is_turned: bool) -> Matrices<'a> {
        let (row, column) = (x.strides[0], x.strides[1]);
        Matrices {
            data: self.memory(x),
            start: x.start,
            batch: &[],
            row: if is_turned { column } else { row },
            column: if is_turned { row } else { column },
        }
    }

    pub fn norm_of(&self, inputs: &[Id], how: NormOf, pool: &mut Pool) -> Result<Register> {
        let mut weights: SmallVec<[Array; 2]> = SmallVec::new();
        for id in &inputs[1..] {
            weights.push(self.in_order(*id, pool)?);
        }
        let mut weights = weights.iter();
        let mut next = |has: bool| has.then(|| weights.next()).flatten();
        let (weight, bias) = (next(how.has_weight), next(how.has_bias));
        let (weight, bias) = (
            weight.map(|weight| self.floats(weight)),
            bias.map(|bias| self.floats(bias)),
        );
        let (level, size, eps) = (self.level, how.size, how.eps);
        self.rows(inputs[0], size, pool, |x, out| match how.is_layer {
            true => norm::layer_norm(level, size, x, weight, bias, eps, out),
            false => norm::rms_norm(level, size, x, weight, eps, out),
        })
    }

    /// The integers of a register, in order, which are at least 0.
    pub fn indices(&self, id: Id) -> Result<(Dims, SmallVec<[usize; 32]>)> {
        let Register::Value(value) = &self.registers[id] else {
            return Err(Error::msg("indices are integers"));
        };
        let tensor = value.downcast_ref::<Tensor>();
        let tensor = tensor.ok_or_else(|| Error::msg("the indices are no tensor"))?;
        let wide = match tensor.dtype()? {
            DType::I64 => Cow::Borrowed(tensor),
            _ => Cow::Owned(tensor.to_dtype(DType::I64)?),
        };
        let flat = wide.candle()?.flatten_all().map_err(Error::other)?;
        let flat: Vec<i64> = flat.to_vec1().map_err(Error::other)?;
        let found = flat.iter().map(|at| usize::try_from(*at).ok());
        let found: Option<SmallVec<[usize; 32]>> = found.collect();
        let found = found.ok_or_else(|| Error::msg("an index is negative"))?;
        Ok((tensor.dims()?.iter().copied().collect(), found))
    }

    pub fn embedding_of(&self, inputs: &[Id], pool: &mut Pool) -> Result<Register> {
        let (mut dims, places) = self.indices(inputs[0])?;
        let table = self.in_order(inputs[1], pool)?;
        let [_, size] = table.dims[..] else {
            return Err(Error::msg("the table of an embedding has two dimensions"));
        };
        dims.push(size);
        array(dims, pool, |out| {
            embedding::gather(size, self.floats(&table), &places, out)
        })
    }

    pub fn add_rows(&self, inputs: &[Id], pool: &mut Pool) -> Result<Register> {
        let (_, rows) = self.indices(inputs[1])?;
        let (x, source) = (
            self.array(inputs[0], pool)?,
            self.in_order(inputs[2], pool)?,
        );
        if source.dims.first() != Some(&rows.len()) || source.dims[1..] != x.dims[1..] {
            return Err(Error::msg("rows that are added have other sizes"));
        }
        let size: usize = x.dims[1..].iter().product();
        self.added_to(inputs[0], x, pool, |out| {
            scatter::add_rows(size, self.floats(&source), &rows, out)
        })
    }

    pub fn take_along(&self, inputs: &[Id], dim: i64, pool: &mut Pool) -> Result<Register> {
        let (dims, places) = self.indices(inputs[1])?;
        let x = self.in_order(inputs[0], pool)?;
        let dim = place(dim, x.dims.len())?;
        let sizes = along(&x.dims, &dims, dim)?;
        array(dims, pool, |out| {
            scatter::take_along(sizes, self.floats(&x), &places, out)
        })
    }

    pub fn add_along(&self, inputs: &[Id], dim: i64, pool: &mut Pool) -> Result<Register> {
        let (dims, places) = self.indices(inputs[1])?;
        let (x, source) = (self.array(inputs[0], pool)?, self.array(inputs[2], pool)?);
        let dim = place(dim, x.dims.len())?;
        let sizes = along(&x.dims, &dims, dim)?;
        if source.dims != dims {
            return Err(Error::msg(
                "elements that are added have other sizes than their indices",
            ));
        }
        let source = self.contiguous(source, pool)?;
        self.added_to(inputs[0], x, pool, |out| {
            scatter::add_along(sizes, self.floats(&source), &places, out)
        })
    }

    /// The array of an input with what is added to it: in its place if nothing else reads it.
    fn added_to(
        &self,
        id: Id,
        x: Array,
        pool: &mut Pool,
        add: impl FnOnce(&mut [f32]) -> Result<(), SizeError>,
    ) -> Result<Register> {
        if let Some(own) = pool.taken_over(id, &x.dims) {
            drop(x);
            return over::write(own, pool, add);
        }
        array(x.dims.clone(), pool, |out| {
            // One number everywhere, as most are.
            if x.strides.iter().all(|stride| *stride == 0)
                && let Some(number) = self.memory(&x).get(x.start)
            {
                out.fill(*number);
                return add(out);
            }
            let Array {
                start,
                dims,
                strides,
                ..
            } = &x;
            let memory = self.memory(&x);
            transpose::contiguous(self.level, memory, *start, dims, strides, out)?;
            add(out)
        })
    }

    /// One number in the sizes of a register.
    pub fn filled_like(&self, id: Id, number: f32, pool: &mut Pool) -> Result<Register> {
        let dims = self.dims(id)?;
        let buffer = pool.buffer(1, |out| {
            out.fill(number);
            Ok(())
        })?;
        let one = Array::of(Memory::Buffer(buffer), Dims::new());
        let made = one.expanded(&dims);
        let made = made.ok_or_else(|| Error::msg("one number is of any sizes"))?;
        Ok(Register::Array(made))
    }
}

/// The sizes of indices along a dim, which differ from those of the elements in that dim alone: before it, of it in
/// both, and behind it.
fn along(x: &[usize], index: &[usize], dim: usize) -> Result<[usize; 4]> {
    let others = |dims: &[usize]| {
        let mut dims: Dims = dims.into();
        dims[dim] = 0;
        dims
    };
    if x.len() != index.len() || others(x) != others(index) {
        return Err(Error::msg(
            "indices along a dimension are of fewer places in another one",
        ));
    }
    Ok([
        x[..dim].iter().product(),
        x[dim],
        index[dim],
        x[dim + 1..].iter().product(),
    ])
}
