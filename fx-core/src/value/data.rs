//! A tensor's elements as bytes.
//!
//! Invariant: the byte count matches shape and dtype before anything is built from the bytes.

use std::borrow::Cow;
use std::fmt;

use super::dtype::DType;
use crate::error::{Error, Result};

/// Passes all elements to a sink, in order.
type Source<'d> = dyn Fn(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> + 'd;

/// A tensor as a file keeps it: its elements in row-major order, little-endian.
///
/// The elements are in memory ([`new`](TensorData::new)), or are streamed in pieces
/// ([`streamed`](TensorData::streamed)) from a tensor being saved or a file being loaded.
pub struct TensorData<'d> {
    type_path: Cow<'d, str>,
    dtype: DType,
    shape: Vec<usize>,
    len: usize,
    elements: Elements<'d>,
    parameter: bool,
}

enum Elements<'d> {
    Held(Cow<'d, [u8]>),
    Streamed(Box<Source<'d>>),
}

impl fmt::Debug for TensorData<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("TensorData");
        shown
            .field("type_path", &self.type_path)
            .field("dtype", &self.dtype)
            .field("shape", &self.shape)
            .field("parameter", &self.parameter);
        match &self.elements {
            Elements::Held(bytes) => shown.field("bytes", bytes).finish(),
            Elements::Streamed(_) => shown.finish_non_exhaustive(),
        }
    }
}

/// The number of bytes of a tensor.
///
/// # Errors
/// Returns an error if the number overflows.
fn len_of(dtype: DType, shape: &[usize]) -> Result<usize> {
    let size = shape
        .iter()
        .try_fold(dtype.size_in_bytes(), |size, dim| size.checked_mul(*dim));
    size.ok_or_else(|| {
        Error::saved(format_args!(
            "a {dtype} tensor of shape {shape:?} has more bytes than can be counted"
        ))
    })
}

/// The error for a tensor whose byte count does not match its shape.
fn wrong_len(bytes: usize, dtype: DType, shape: &[usize]) -> Error {
    Error::saved(format_args!(
        "{bytes} bytes cannot be a {dtype} tensor of shape {shape:?}"
    ))
}

impl<'d> TensorData<'d> {
    /// The data of a tensor whose type is [registered](crate::register_tensor) as `type_path`.
    ///
    /// ```
    /// use fx_core::tensor::TensorData;
    /// use fx_core::value::DType;
    /// let data = TensorData::new("my_crate::Array", DType::I16, vec![2], vec![1, 0, 2, 0])?;
    /// assert_eq!((data.shape(), &*data.bytes()?), (&[2][..], &[1, 0, 2, 0][..]));
    /// assert!(TensorData::new("my_crate::Array", DType::I16, vec![3], vec![1, 0]).is_err());
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the number of bytes does not match shape and dtype.
    pub fn new(
        type_path: impl Into<Cow<'d, str>>,
        dtype: DType,
        shape: Vec<usize>,
        bytes: impl Into<Cow<'d, [u8]>>,
    ) -> Result<Self> {
        let bytes = bytes.into();
        if len_of(dtype, &shape)? != bytes.len() {
            return Err(wrong_len(bytes.len(), dtype, &shape));
        }
        Ok(TensorData {
            type_path: type_path.into(),
            dtype,
            shape,
            len: bytes.len(),
            elements: Elements::Held(bytes),
            parameter: false,
        })
    }

    /// Same as [`new`](TensorData::new), for elements that are not in memory as bytes: whenever
    /// they are needed, `source` passes all of them to the given sink, in pieces of whole elements.
    /// A tensor saved this way is never copied as a whole.
    ///
    /// ```
    /// use fx_core::tensor::TensorData;
    /// use fx_core::value::DType;
    /// let numbers = [1.0f64, 2.0, 3.0];
    /// let data = TensorData::streamed("my_crate::Array", DType::F64, vec![3], |sink| {
    ///     numbers.iter().try_for_each(|number| sink(&number.to_le_bytes()))
    /// })?;
    /// assert_eq!(data.elements()?.collect::<Vec<_>>(), numbers);
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the byte count of that shape overflows.
    pub fn streamed(
        type_path: impl Into<Cow<'d, str>>,
        dtype: DType,
        shape: Vec<usize>,
        source: impl Fn(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> + 'd,
    ) -> Result<Self> {
        Ok(TensorData {
            type_path: type_path.into(),
            dtype,
            len: len_of(dtype, &shape)?,
            shape,
            elements: Elements::Streamed(Box::new(source)),
            parameter: false,
        })
    }

    /// Marks the tensor as one that gradients are computed for.
    #[must_use]
    pub fn with_parameter(mut self, parameter: bool) -> Self {
        self.parameter = parameter;
        self
    }

    /// The path under which the tensor type is registered.
    pub fn type_path(&self) -> &str {
        &self.type_path
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The sizes.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of bytes of all elements.
    pub fn byte_len(&self) -> usize {
        self.len
    }

    /// Passes the elements to a sink, in order, in pieces of whole elements. Use it to read a
    /// tensor from a file directly into its final memory.
    ///
    /// ```
    /// use fx_core::tensor::TensorData;
    /// use fx_core::value::DType;
    /// let data = TensorData::new("my_crate::Array", DType::I16, vec![2], vec![1, 0, 2, 0])?;
    /// let mut numbers: Vec<i16> = Vec::with_capacity(2);
    /// data.for_each_chunk(&mut |bytes| {
    ///     numbers.extend(bytes.as_chunks().0.iter().map(|bytes| i16::from_le_bytes(*bytes)));
    ///     Ok(())
    /// })?;
    /// assert_eq!(numbers, [1, 2]);
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the elements cannot be read, their number does not match shape and
    /// dtype, or the sink fails.
    pub fn for_each_chunk(&self, sink: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let source = match &self.elements {
            Elements::Held(bytes) => return sink(bytes),
            Elements::Streamed(source) => source,
        };
        let mut count = 0usize;
        source(&mut |bytes| {
            count = count.saturating_add(bytes.len());
            if count > self.len || bytes.len() % self.dtype.size_in_bytes() != 0 {
                return Err(wrong_len(count, self.dtype, &self.shape));
            }
            sink(bytes)
        })?;
        match count == self.len {
            true => Ok(()),
            false => Err(wrong_len(count, self.dtype, &self.shape)),
        }
    }

    /// All elements at once; copied, unless they are in memory as bytes.
    ///
    /// # Errors
    /// Returns an error if they cannot be read, or there is not enough memory.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>> {
        if let Elements::Held(bytes) = &self.elements {
            return Ok(Cow::Borrowed(bytes));
        }
        let mut all = Vec::new();
        all.try_reserve_exact(self.len).map_err(Error::saved)?;
        self.for_each_chunk(&mut |bytes| {
            all.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(Cow::Owned(all))
    }

    /// The elements as numbers, row-major; booleans are 0 and 1. Integers beyond 2^53 are rounded.
    ///
    /// ```
    /// use fx_core::tensor::TensorData;
    /// use fx_core::value::DType;
    /// let data = TensorData::new("my_crate::Array", DType::BF16, vec![2], vec![0x80, 0x3f, 0x00, 0xc0])?;
    /// assert_eq!(data.elements()?.collect::<Vec<_>>(), [1.0, -2.0]);
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`bytes`](TensorData::bytes).
    pub fn elements(&self) -> Result<impl ExactSizeIterator<Item = f64>> {
        let (dtype, size, bytes) = (self.dtype, self.dtype.size_in_bytes(), self.bytes()?);
        let count = bytes.len() / size;
        Ok((0..count).map(move |i| dtype.element(&bytes[i * size..(i + 1) * size])))
    }

    /// Whether gradients are computed for it.
    pub fn is_parameter(&self) -> bool {
        self.parameter
    }
}
