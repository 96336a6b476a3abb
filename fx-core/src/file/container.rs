//! The container: a safetensors file, written and read tensor by tensor.
//!
//! Invariants: no allocation is larger than the file; the elements are never all in memory as
//! bytes.

use std::borrow::Cow;
use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use indexmap::IndexMap;
use indexmap::map::Entry;
use rustc_hash::FxBuildHasher;
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};

use super::disk;
use super::json::Excerpt;
use super::limits::MAX_HEADER;
use crate::error::{Error, Result};
use crate::value::data::TensorData;
use crate::value::dtype::DType;
use crate::value::object::Object;
use crate::value::value::Value;

/// The header key for everything that is not a tensor.
const METADATA: &str = "__metadata__";

/// The size of the length field before the header.
const PREFIX: usize = size_of::<u64>();

/// How many bytes of a tensor are read at once: a whole number of elements of any type.
const PIECE: usize = 1 << 18;

/// The file's element type for each of fx's.
fn file_dtype(dtype: DType) -> Dtype {
    match dtype {
        DType::Bool => Dtype::BOOL,
        DType::U8 => Dtype::U8,
        DType::U16 => Dtype::U16,
        DType::U32 => Dtype::U32,
        DType::U64 => Dtype::U64,
        DType::I8 => Dtype::I8,
        DType::I16 => Dtype::I16,
        DType::I32 => Dtype::I32,
        DType::I64 => Dtype::I64,
        DType::BF16 => Dtype::BF16,
        DType::F16 => Dtype::F16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
    }
}

fn fx_dtype(dtype: Dtype) -> Result<DType> {
    let own = DType::ALL
        .iter()
        .copied()
        .find(|own| file_dtype(*own) == dtype);
    own.ok_or_else(|| {
        Error::saved(format_args!(
            "element type {dtype} has no counterpart in fx"
        ))
    })
}

fn not_whole(problem: impl fmt::Display) -> Error {
    Error::saved(format_args!("not a complete safetensors file: {problem}"))
}

fn of_tensor(name: &str, error: impl fmt::Display) -> Error {
    Error::saved(format_args!("tensor {}: {error}", Excerpt(name)))
}

/// A tensor to be written: its header entry, and where its elements are.
#[derive(Debug)]
pub struct Outgoing {
    pub(super) type_path: Box<str>,
    pub(super) parameter: bool,
    dtype: DType,
    shape: Vec<usize>,
    len: usize,
    tensor: Value,
    /// Converts it to the element type it is saved as, if that differs.
    cast: Option<Cast>,
}

/// Converts a tensor to another element type.
type Cast = fn(&dyn Object, DType) -> Result<Value>;

impl Outgoing {
    /// Takes a tensor, which is shared and not copied if its type shares its elements.
    ///
    /// # Errors
    /// Returns an error if the type cannot be saved, or the tensor is symbolic.
    pub fn of(tensor: &dyn Object) -> Result<Self> {
        let data = tensor.to_data()?;
        Ok(Outgoing {
            type_path: data.type_path().into(),
            parameter: data.is_parameter(),
            dtype: data.dtype(),
            shape: data.shape().to_vec(),
            len: data.byte_len(),
            tensor: tensor.to_value(),
            cast: None,
        })
    }

    /// Same as [`of`](Outgoing::of), in another element type; `cast` converts it while it is
    /// written.
    ///
    /// # Errors
    /// Returns an error as for `of`, or if the byte count overflows.
    pub fn cast(tensor: &dyn Object, dtype: DType, cast: Cast) -> Result<Self> {
        let own = Outgoing::of(tensor)?;
        let count = own.len / own.dtype.size_in_bytes();
        let len = count.checked_mul(dtype.size_in_bytes());
        Ok(Outgoing {
            dtype,
            len: len.ok_or_else(|| Error::saved("the tensor would be too large"))?,
            cast: Some(cast),
            ..own
        })
    }

    /// The number of bytes that its elements take in the file.
    pub fn byte_len(&self) -> usize {
        self.len
    }

    fn write(&self, out: &mut dyn Write) -> Result<()> {
        let no_tensor = || {
            Error::saved(format_args!(
                "{} is not a tensor, as which it would be saved",
                self.tensor.describe()
            ))
        };
        let tensor = self.tensor.as_object().ok_or_else(no_tensor)?;
        let cast = self.cast.map(|cast| cast(tensor, self.dtype)).transpose()?;
        let tensor = match &cast {
            Some(cast) => cast.as_object().ok_or_else(no_tensor)?,
            None => tensor,
        };
        let data = tensor.to_data()?;
        if (data.dtype(), data.shape()) != (self.dtype, &self.shape) {
            return Err(Error::saved("its shape or type changed while it was saved"));
        }
        data.for_each_chunk(&mut |bytes| out.write_all(bytes).map_err(Error::saved))
    }
}

/// A file that is ready to be written.
#[derive(Debug)]
pub struct Prepared {
    /// The header with its length.
    head: Vec<u8>,
    tensors: Vec<(String, Outgoing)>,
    len: usize,
}

impl Prepared {
    /// Prepares a file from tensors by name and one metadata text by key. Equal input gives equal
    /// bytes.
    ///
    /// # Errors
    /// Returns an error if a tensor's name is not allowed in a file, or the header is too long.
    pub fn new(
        tensors: impl IntoIterator<Item = (String, Outgoing)>,
        metadata: Option<(&str, String)>,
    ) -> Result<Self> {
        let mut tensors: Vec<_> = tensors.into_iter().collect();
        // Same order as the safetensors library: larger element types first, so that all tensors
        // are aligned.
        tensors.sort_by(|(a, one), (b, other)| {
            let key = |tensor: &Outgoing| Reverse(file_dtype(tensor.dtype));
            key(one).cmp(&key(other)).then_with(|| a.cmp(b))
        });
        let mut at = 0usize;
        let mut infos = Vec::with_capacity(tensors.len());
        for (name, tensor) in &tensors {
            check_name(name)?;
            let end = at.checked_add(tensor.len);
            let end = end.ok_or_else(|| of_tensor(name, "the file would be too large"))?;
            infos.push((
                name.clone(),
                TensorInfo {
                    dtype: file_dtype(tensor.dtype),
                    shape: tensor.shape.clone(),
                    data_offsets: (at, end),
                },
            ));
            at = end;
        }
        // About as much as the header takes, with its quotes escaped, so that it is not
        // reallocated.
        let text = metadata.as_ref().map_or(0, |(_, text)| text.len());
        let mut head = Vec::with_capacity(PREFIX + text + text / 3 + infos.len() * 128);
        head.resize(PREFIX, 0);
        let metadata = metadata.map(|(key, text)| HashMap::from([(key.to_string(), text)]));
        let header = Metadata::new(metadata, infos).map_err(Error::saved)?;
        serde_json::to_writer(&mut head, &header).map_err(Error::saved)?;
        head.resize(head.len().next_multiple_of(PREFIX), b' ');
        let header_len = (head.len() - PREFIX) as u64;
        if header_len > MAX_HEADER {
            return Err(Error::saved(
                "the graph is larger than the 100 MB that a file's header may have: split it into modules of their own files",
            ));
        }
        head[..PREFIX].copy_from_slice(&header_len.to_le_bytes());
        let len = head.len().checked_add(at);
        Ok(Prepared {
            len: len.ok_or_else(|| Error::saved("the file would be too large"))?,
            head,
            tensors,
        })
    }

    /// Writes the file, tensor by tensor.
    ///
    /// # Errors
    /// Returns an error if writing fails, or a tensor cannot be read.
    pub fn write(&self, out: &mut dyn Write) -> Result<()> {
        out.write_all(&self.head).map_err(Error::saved)?;
        write_tensors(&self.tensors, out)
    }

    /// The file's bytes.
    ///
    /// # Errors
    /// Returns an error if there is not enough memory, or a tensor cannot be read.
    pub fn into_bytes(self) -> Result<Vec<u8>> {
        let mut bytes = self.head;
        let rest = self.len - bytes.len();
        bytes.try_reserve_exact(rest).map_err(Error::saved)?;
        write_tensors(&self.tensors, &mut bytes).map(|()| bytes)
    }

    /// Writes the file to a path, in one step.
    ///
    /// # Errors
    /// Returns an error as for [`write`](Prepared::write), or if the path exists and is not a file;
    /// errors name the file.
    pub fn save(&self, path: &Path) -> Result<()> {
        disk::replace(path, |out| self.write(out))
    }
}

fn write_tensors(tensors: &[(String, Outgoing)], out: &mut dyn Write) -> Result<()> {
    for (name, tensor) in tensors {
        tensor.write(out).map_err(|e| of_tensor(name, e))?;
    }
    Ok(())
}

/// Rejects a name that a tensor in a file cannot have.
pub(super) fn check_name(name: &str) -> Result<()> {
    match name.is_empty() || name == METADATA {
        false => Ok(()),
        true => Err(Error::saved(format_args!(
            "a file cannot have a tensor called `{name}`: rename it"
        ))),
    }
}

/// The header entry of each tensor, by name.
type Tensors = IndexMap<String, TensorInfo, FxBuildHasher>;

/// A header as stored in a file.
#[derive(Default)]
struct Header {
    metadata: HashMap<String, String>,
    tensors: Tensors,
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a tensor a name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
                let mut header = Header::default();
                while let Some(name) = map.next_key::<String>()? {
                    if name == METADATA {
                        let metadata: Option<_> = map.next_value()?;
                        header.metadata = metadata.unwrap_or_default();
                        continue;
                    }
                    let info = map.next_value();
                    let info = info.map_err(|e| A::Error::custom(of_tensor(&name, e)))?;
                    match header.tensors.entry(name) {
                        Entry::Vacant(place) => place.insert(info),
                        Entry::Occupied(place) => {
                            let told = of_tensor(place.key(), "it occurs twice");
                            return Err(A::Error::custom(told));
                        }
                    };
                }
                Ok(header)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// An open file: its header has been checked, its tensors are read on demand.
#[derive(Debug)]
pub struct Container<R> {
    input: RefCell<R>,
    /// The offset of the first tensor.
    start: u64,
    metadata: HashMap<String, String>,
    tensors: Tensors,
}

impl<R: Read + Seek> Container<R> {
    /// Reads the header, and checks it against the file's length.
    ///
    /// # Errors
    /// Returns an error if the input is not a safetensors file, or is truncated.
    pub fn open(mut input: R) -> Result<Self> {
        let unread = |e| Error::saved(format_args!("cannot be read: {e}"));
        let len = input.seek(SeekFrom::End(0)).map_err(unread)?;
        input.seek(SeekFrom::Start(0)).map_err(unread)?;
        let mut prefix = [0; PREFIX];
        if len < PREFIX as u64 {
            return Err(not_whole(format_args!(
                "it has {len} bytes, fewer than the {PREFIX} of its header's length"
            )));
        }
        input.read_exact(&mut prefix).map_err(unread)?;
        let header_len = u64::from_le_bytes(prefix);
        if header_len > MAX_HEADER {
            return Err(not_whole(format_args!(
                "its header would have {header_len} bytes, more than the {MAX_HEADER} that it may have"
            )));
        }
        let start = PREFIX as u64 + header_len;
        if start > len {
            return Err(not_whole(format_args!(
                "its header ends at byte {start}, and the file at {len}: it was cut"
            )));
        }
        let mut header = Vec::with_capacity(header_len as usize);
        let mut rest = input.by_ref().take(header_len);
        rest.read_to_end(&mut header).map_err(unread)?;
        let header: Header = serde_json::from_slice(&header)
            .map_err(|e| not_whole(format_args!("its header is malformed: {e}")))?;
        let mut tensors = header.tensors;
        tensors.sort_by(|_, a, _, b| a.data_offsets.cmp(&b.data_offsets));
        let end =
            check(&tensors, len - start).map_err(|(name, e)| not_whole(of_tensor(name, e)))?;
        if end != len - start {
            return Err(not_whole(format_args!(
                "its last tensor ends at byte {} and the file at {len}",
                start + end
            )));
        }
        Ok(Container {
            input: RefCell::new(input),
            start,
            metadata: header.metadata,
            tensors,
        })
    }

    /// Removes the text under a metadata key and returns it.
    pub fn take_metadata(&mut self, key: &str) -> Option<String> {
        self.metadata.remove(key)
    }

    /// The names of the tensors, in file order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// The header's entry for each tensor, in file order: name, shape and byte count.
    pub fn infos(&self) -> impl Iterator<Item = (&str, &[usize], usize)> {
        self.tensors.iter().map(|(name, info)| {
            let (start, end) = info.data_offsets;
            (name.as_str(), &*info.shape, end - start)
        })
    }

    /// A tensor whose elements are read on demand, with the type registered as `type_path`.
    ///
    /// # Errors
    /// Returns an error if there is no tensor of that name, or fx does not have its element type.
    pub fn tensor<'c>(
        &'c self,
        name: &str,
        type_path: impl Into<Cow<'c, str>>,
    ) -> Result<TensorData<'c>> {
        let Some((name, info)) = self.tensors.get_key_value(name) else {
            return Err(Error::saved(
                "the file has no such tensor: it was cut or edited after it was saved",
            ));
        };
        let read = |sink: &mut dyn FnMut(&[u8]) -> Result<()>| self.read(name, info, sink);
        TensorData::streamed(type_path, fx_dtype(info.dtype)?, info.shape.clone(), read)
    }

    fn read(
        &self,
        name: &str,
        info: &TensorInfo,
        sink: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let unread = |e| of_tensor(name, format_args!("cannot be read: {e}"));
        let mut input = self.input.try_borrow_mut().map_err(|_| {
            of_tensor(
                name,
                "another tensor of the file is being read: read one after the other",
            )
        })?;
        let (start, end) = info.data_offsets;
        // The offsets are within the file, whose length is a `u64`.
        let place = SeekFrom::Start(self.start + start as u64);
        input.seek(place).map_err(unread)?;
        let mut left = end - start;
        let mut piece = vec![0; left.min(PIECE)];
        while left > 0 {
            piece.truncate(left);
            input.read_exact(&mut piece).map_err(unread)?;
            sink(&piece)?;
            left -= piece.len();
        }
        Ok(())
    }
}

/// Checks the tensors in order of their offsets: each begins where the previous one ends, has as
/// many bytes as its shape and type require, and ends within the file. Returns the end of the last
/// one, or the name of the first invalid one.
fn check(tensors: &Tensors, len: u64) -> Result<u64, (&str, String)> {
    let mut at = 0;
    for (name, info) in tensors {
        let wrong = |problem: String| (name.as_str(), problem);
        let TensorInfo {
            dtype,
            shape,
            data_offsets: (start, end),
        } = info;
        if *start != at || end < start {
            return Err(wrong(format!(
                "its bytes {start} to {end} do not begin where those before it end, at {at}"
            )));
        }
        let bits = shape
            .iter()
            .try_fold(dtype.bitsize(), |bits, dim| bits.checked_mul(*dim));
        if bits != (end - start).checked_mul(8) {
            return Err(wrong(format!(
                "{} bytes cannot be a tensor of shape {shape:?} with elements {dtype}",
                end - start
            )));
        }
        if *end as u64 > len {
            return Err(wrong(format!(
                "its bytes {start} to {end} end after the file, which has {len} behind its header: it was cut"
            )));
        }
        at = *end;
    }
    Ok(at as u64)
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Error as IoError};

    use super::*;

    fn file(header: &str, elements: usize) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.resize(bytes.len() + elements, 1);
        bytes
    }

    fn problem(bytes: &[u8]) -> String {
        let opened = Container::open(Cursor::new(bytes));
        opened.map_or_else(|e| e.to_string(), |_| "opened".into())
    }

    #[track_caller]
    fn told(bytes: &[u8], expected: &str) {
        let problem = problem(bytes);
        let expected = format!("not a complete safetensors file: {expected}");
        assert!(
            problem.starts_with(&expected),
            "{problem}\n  instead of\n{expected}"
        );
    }

    const TWO: &str = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}}"#;

    #[test]
    fn a_file_that_was_cut_names_its_first_tensor_that_is_not_whole() {
        let whole = file(TWO, 11);
        assert_eq!(problem(&whole), "opened");
        told(
            &whole[..whole.len() - 1],
            "tensor `b`: its bytes 8 to 11 end after the file, which has 10 behind",
        );
        told(
            &whole[..whole.len() - 4],
            "tensor `a`: its bytes 0 to 8 end after the file, which has 7 behind",
        );
        told(
            &whole[..20],
            "its header ends at byte 115, and the file at 20",
        );
        told(&whole[..7], "it has 7 bytes, fewer than the 8");
        told(
            &file(TWO, 12),
            "its last tensor ends at byte 126 and the file at 127",
        );
    }

    #[test]
    fn sizes_are_compared_with_the_file_before_anything_is_allocated() {
        for huge in [u64::MAX, 1 << 62, MAX_HEADER + 1] {
            told(&huge.to_le_bytes(), "its header would have ");
        }
        told(
            &MAX_HEADER.to_le_bytes(),
            "its header ends at byte 100000008",
        );
        let vast = r#"{"a":{"dtype":"F64","shape":[1152921504606846976],"data_offsets":[0,9223372036854775808]}}"#;
        told(&file(vast, 8), "tensor `a`: ");
        let large = r#"{"a":{"dtype":"U8","shape":[1152921504606846976],"data_offsets":[0,1152921504606846976]}}"#;
        told(
            &file(large, 8),
            "tensor `a`: its bytes 0 to 1152921504606846976 end after the file, which has 8 behind",
        );
    }

    #[test]
    fn a_header_that_contradicts_itself_names_the_tensor() {
        let changed = |from: &str, to: &str| file(&TWO.replace(from, to), 11);
        told(
            &changed("[8,11]", "[7,10]"),
            "tensor `b`: its bytes 7 to 10 do not begin where",
        );
        told(
            &changed("[8,11]", "[9,12]"),
            "tensor `b`: its bytes 9 to 12 do not begin where",
        );
        told(&changed("[8,11]", "[8,7]"), "tensor `b`: its bytes 8 to 7");
        told(
            &changed("[3]", "[4]"),
            "tensor `b`: 3 bytes cannot be a tensor of shape [4]",
        );
        told(
            &changed("[2]", "[4294967296,4294967296]"),
            "tensor `a`: 8 bytes cannot be",
        );
        told(
            &changed("U8", "Q7"),
            "its header is malformed: tensor `b`: unknown variant",
        );
        told(
            &changed("\"b\"", "\"a\""),
            "its header is malformed: tensor `a`: it occurs twice",
        );
        told(
            &changed("[3]", "\"3\""),
            "its header is malformed: tensor `b`: invalid type",
        );
        told(&file("[]", 0), "its header is malformed: ");
    }

    #[test]
    fn an_element_type_that_fx_has_not_is_refused_where_it_is_asked_for() -> Result<()> {
        let file = file(&TWO.replace("U8", "F8_E4M3"), 11);
        let container = Container::open(Cursor::new(&file))?;
        assert_eq!(container.tensor("a", "x::T")?.bytes()?.len(), 8);
        let told = container
            .tensor("b", "x::T")
            .map(|_| ())
            .map_err(|e| e.to_string());
        assert_eq!(
            told,
            Err("element type F8_E4M3 has no counterpart in fx".into())
        );
        Ok(())
    }

    /// A file that fails after so many bytes, before its declared length.
    struct Broken(Cursor<Vec<u8>>, u64);

    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            match self.0.position() >= self.1 {
                true => Err(IoError::other("the disk is gone")),
                false => self.0.read(buffer),
            }
        }
    }

    impl Seek for Broken {
        fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
            self.0.seek(to)
        }
    }

    #[test]
    fn a_disk_that_fails_names_the_tensor_that_was_read() -> Result<()> {
        let whole = file(TWO, 11);
        let end = whole.len() as u64 - 3;
        let container = Container::open(Broken(Cursor::new(whole), end))?;
        assert_eq!(*container.tensor("a", "x::T")?.bytes()?, [1; 8]);
        let data = container.tensor("b", "x::T")?;
        let told = data.bytes().map_err(|e| e.to_string());
        assert_eq!(
            told,
            Err("tensor `b`: cannot be read: the disk is gone".into())
        );
        Ok(())
    }

    #[test]
    fn every_element_type_has_one_of_files() {
        for dtype in DType::ALL.iter().copied() {
            let stored = file_dtype(dtype);
            assert_eq!(fx_dtype(stored).ok(), Some(dtype));
            assert_eq!(stored.bitsize(), dtype.size_in_bytes() * 8);
            let row = format!("| `{stored}` | `{dtype}` | {} |", dtype.size_in_bytes());
            assert!(include_str!("../../docs/format.md").contains(&row), "{row}");
        }
    }
}
