//! `Place`: what a name of a checkpoint leads to: a tensor of a file, rows of one, or several of one shape, stacked.
//!
//! Invariant: shapes are known, and the pieces fit, before anything is read.

use std::ops::Range;

use fx_core::{Error, Result};

use super::part::Part;
use crate::nn::QuantizedMatrix;
use crate::ops;
use crate::tensor::Tensor;

/// A tensor of a file.
#[derive(Clone)]
pub(super) struct InFile {
    pub part: usize,
    /// The name in the file.
    pub name: String,
}

/// What a name leads to.
pub(super) struct Place {
    from: From,
    pub shape: Vec<usize>,
    /// The bytes of its elements once they are loaded, in the type that they are read as.
    pub bytes: u64,
}

enum From {
    Whole(InFile),
    Rows(InFile, Range<usize>),
    Stack(Vec<InFile>),
}

impl Place {
    pub fn whole(tensor: InFile, shape: Vec<usize>, bytes: u64) -> Self {
        let from = From::Whole(tensor);
        Place { from, shape, bytes }
    }

    /// The rows of this one, as many for each as asked.
    ///
    /// # Errors
    /// Returns an error unless this is a tensor of a file with as many rows.
    pub fn split(&self, counts: &[usize]) -> Result<Vec<Place>> {
        let (From::Whole(tensor), Some((rows, rest))) = (&self.from, self.shape.split_first())
        else {
            return Err(Error::msg(
                "only a tensor of a file that has rows can be split",
            ));
        };
        let sum = counts
            .iter()
            .try_fold(0usize, |sum, count| sum.checked_add(*count));
        if sum != Some(*rows) {
            return Err(Error::msg(format_args!(
                "it has {rows} rows, and cannot be split into {counts:?}"
            )));
        }
        let row = self.bytes / (*rows).max(1) as u64;
        let mut start = 0;
        let split = counts.iter().map(|count| {
            let rows = start..start + count;
            start += count;
            Place {
                from: From::Rows(tensor.clone(), rows),
                shape: [&[*count], rest].concat(),
                bytes: row * *count as u64,
            }
        });
        Ok(split.collect())
    }

    /// Several, one behind another along a new first dim.
    ///
    /// # Errors
    /// Returns an error unless all are tensors of files with one shape.
    pub fn stacked(places: &[&Place]) -> Result<Place> {
        let Some(first) = places.first() else {
            return Err(Error::msg("there is nothing to stack"));
        };
        let mut tensors = Vec::with_capacity(places.len());
        for place in places {
            match &place.from {
                From::Whole(tensor) if place.shape == first.shape => tensors.push(tensor.clone()),
                _ => {
                    return Err(Error::msg(format_args!(
                        "only whole tensors of one shape can be stacked: `{}` has {:?}, and the first one {:?}",
                        place.name(),
                        place.shape,
                        first.shape
                    )));
                }
            }
        }
        Ok(Place {
            shape: [&[places.len()], &*first.shape].concat(),
            bytes: places.iter().map(|place| place.bytes).sum(),
            from: From::Stack(tensors),
        })
    }

    /// The name in the file; of several, of the first.
    pub fn name(&self) -> &str {
        match &self.from {
            From::Whole(tensor) | From::Rows(tensor, _) => &tensor.name,
            From::Stack(tensors) => tensors.first().map_or("", |tensor| &tensor.name),
        }
    }

    fn tensors(&self) -> &[InFile] {
        match &self.from {
            From::Whole(tensor) | From::Rows(tensor, _) => std::slice::from_ref(tensor),
            From::Stack(tensors) => tensors,
        }
    }

    /// Returns an error if a type cannot be read, without reading.
    pub fn check(&self, parts: &[Part], widen: bool) -> Result<()> {
        let mut tensors = self.tensors().iter();
        tensors.try_for_each(|tensor| parts[tensor.part].check(&tensor.name, widen))
    }

    /// A tensor, in the type that it has in the file; quantised ones as `float32`.
    pub fn tensor(&self, parts: &[Part], widen: bool, parameter: bool) -> Result<Tensor> {
        let read =
            |tensor: &InFile, parameter| parts[tensor.part].tensor(&tensor.name, widen, parameter);
        let made = match &self.from {
            From::Whole(tensor) => return read(tensor, parameter),
            From::Rows(tensor, rows) => {
                let (start, count) = (rows.start as i64, rows.len() as i64);
                read(tensor, false)?.narrow(0, start, count)?.contiguous()?
            }
            From::Stack(tensors) => {
                let all = tensors.iter().map(|tensor| read(tensor, false));
                ops::stack(&all.collect::<Result<Vec<_>>>()?, 0)?
            }
        };
        match parameter && made.dtype()?.is_floating_point() {
            true => made.into_parameter(),
            false => Ok(made),
        }
    }

    /// Reads into the memory of `own`, which has its shape, in the type of `own`.
    pub fn read_into(&self, parts: &[Part], widen: bool, own: &mut Tensor) -> Result<()> {
        match &self.from {
            From::Whole(tensor) => parts[tensor.part].read_into(&tensor.name, widen, own),
            _ => own.copy_from(&self.tensor(parts, widen, false)?),
        }
    }

    /// A matrix with its blocks unchanged.
    pub fn quantized(&self, parts: &[Part]) -> Result<QuantizedMatrix> {
        let read = |tensor: &InFile| {
            let matrix = parts[tensor.part].quantized(&tensor.name);
            matrix.and_then(QuantizedMatrix::of)
        };
        match &self.from {
            From::Whole(tensor) => read(tensor),
            From::Rows(tensor, rows) => read(tensor)?.rows(&rows.clone().collect::<Vec<_>>()),
            From::Stack(_) => Err(Error::msg("stacked tensors are no matrix")),
        }
    }

    /// How it is quantised.
    pub fn quantization(&self, parts: &[Part]) -> Option<candle_core::quantized::GgmlDType> {
        let first = self.tensors().first()?;
        parts[first.part].quantization(&first.name)
    }
}
