//! PyTorch's files: a zip file with a pickle that names tensors, or an exported program, and a file of elements for each
//! storage.
//!
//! Invariant: a tensor that is listed lies inside of its storage, whose bytes the file has.

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use fx_core::tensor::TensorData;
use fx_core::value::DType;
use fx_core::{Error, Result};
use indexmap::IndexMap;
use zip::read::{ArchiveOffset, Config};
use zip::{CompressionMethod, ZipArchive};

use super::pickle::{Id, Item, Pickle};
use super::pt2;
use super::stored::{Files, Stored};
use crate::tensor::saved::PATH;

/// How many bytes are read at once: a whole number of elements of any type.
const PIECE: usize = 1 << 18;

/// An opened file.
pub(super) struct Pth {
    file: RefCell<File>,
    tensors: IndexMap<String, Stored>,
}

/// The keys under which training checkpoints have the model's tensors.
const KEYS: [&str; 3] = ["state_dict", "model_state_dict", "model"];

impl Pth {
    /// Opens a file, and reads its pickle.
    ///
    /// # Errors
    /// Returns an error if it is no zip file with a pickle, a pickle has no tensors by name, or one of them does not fit
    /// the elements that the file has.
    pub fn open(file: File) -> Result<Self> {
        let length = file.metadata().map_err(Error::msg)?.len();
        // Zip files may lie inside of it, which a search for its start would find.
        let config = Config {
            archive_offset: ArchiveOffset::Known(0),
        };
        let file = BufReader::new(file);
        let mut archive = ZipArchive::with_config(config, file).map_err(Error::msg)?;
        let mut files = Files::new();
        let mut packed = None;
        for at in 0..archive.len() {
            let entry = archive.by_index_raw(at).map_err(Error::msg)?;
            let name = entry.name().map_err(Error::msg)?.into_owned();
            match (entry.compression(), entry.data_start()) {
                (CompressionMethod::Stored, Some(start)) => {
                    let there = length.saturating_sub(start);
                    files.insert(name, (start, entry.size().min(there)));
                }
                _ => packed = Some(name),
            }
        }
        let mut file = archive.into_inner().into_inner();
        let order = files.iter().find(|(name, _)| name.ends_with("/byteorder"));
        if let Some((_, place)) = order
            && whole(&mut file, *place)? == b"big"
        {
            return Err(Error::msg(
                "its numbers have their large digits first: save it again on another machine",
            ));
        }
        let exported = pt2::tensors(&files, |place| whole(&mut file, place))?;
        if !exported.is_empty() {
            return Ok(Pth {
                file: RefCell::new(file),
                tensors: exported,
            });
        }
        let mut tensors = IndexMap::new();
        let mut pickles: Vec<&String> = files.keys().filter(|n| n.ends_with("data.pkl")).collect();
        pickles.sort_unstable();
        for name in pickles {
            let folder = name.strip_suffix(".pkl").unwrap_or(name);
            let bytes = whole(&mut file, files[name])?;
            let pickle = Pickle::read(&bytes)?;
            tensors.extend(state_dict(&pickle, folder, &files)?);
        }
        match (tensors.is_empty(), packed) {
            (false, _) => Ok(Pth {
                file: RefCell::new(file),
                tensors,
            }),
            (true, Some(name)) => Err(Error::msg(format_args!(
                "`{name}` is compressed, which PyTorch's files are not: save it again with `torch.save`"
            ))),
            (true, None) => Err(Error::msg("it has no tensors by name: save a `state_dict`")),
        }
    }

    pub fn tensors(&self) -> impl Iterator<Item = (&str, &Stored)> {
        let tensors = self.tensors.iter();
        tensors.map(|(name, stored)| (name.as_str(), stored))
    }

    fn stored(&self, name: &str) -> Result<(&Stored, DType)> {
        let stored = self.tensors.get(name);
        let stored =
            stored.ok_or_else(|| Error::msg(format_args!("the file has no tensor `{name}`")))?;
        match &stored.dtype {
            Ok(dtype) => Ok((stored, *dtype)),
            Err(name) => Err(Error::msg(format_args!(
                "fx has no element type for {name}"
            ))),
        }
    }

    /// The element type of a tensor.
    ///
    /// # Errors
    /// Returns an error if there is no such tensor, or fx has no such elements.
    pub fn dtype(&self, name: &str) -> Result<DType> {
        self.stored(name).map(|(_, dtype)| dtype)
    }

    /// The elements of a tensor.
    ///
    /// # Errors
    /// Returns an error if there is no such tensor, fx has no such elements, or the file cannot be read.
    pub fn tensor(&self, name: &str) -> Result<TensorData<'_>> {
        let (stored, dtype) = self.stored(name)?;
        let shape = stored.shape.clone();
        if !stored.is_contiguous() {
            let bytes = stored.gathered(&mut self.file.borrow_mut(), dtype.size_in_bytes())?;
            return TensorData::new(PATH, dtype, shape, bytes);
        }
        let length = stored.span * dtype.size_in_bytes();
        TensorData::streamed(PATH, dtype, shape, move |sink| {
            let mut file = self.file.borrow_mut();
            file.seek(SeekFrom::Start(stored.start))
                .map_err(Error::msg)?;
            let mut piece = vec![0; length.min(PIECE)];
            let mut left = length;
            while left > 0 {
                let bytes = &mut piece[..left.min(PIECE)];
                file.read_exact(bytes).map_err(Error::msg)?;
                sink(bytes)?;
                left -= bytes.len();
            }
            Ok(())
        })
    }
}

/// The bytes of a file inside of the zip file.
fn whole(file: &mut File, (start, size): (u64, u64)) -> Result<Vec<u8>> {
    file.seek(SeekFrom::Start(start)).map_err(Error::msg)?;
    let mut bytes = vec![0; usize::try_from(size).map_err(Error::msg)?];
    file.read_exact(&mut bytes).map_err(Error::msg)?;
    Ok(bytes)
}

/// The tensors by name of a pickle: its own, or those of the model in a training checkpoint.
fn state_dict(
    pickle: &Pickle<'_>,
    folder: &str,
    files: &Files,
) -> Result<IndexMap<String, Stored>> {
    let root = match pickle.root() {
        Item::Built { object, state } => match pickle.item(*object) {
            Item::Call { callable, .. }
                if matches!(pickle.item(*callable), Item::Class("__torch__", "Module")) =>
            {
                pickle.item(*state)
            }
            _ => return Ok(IndexMap::new()),
        },
        root => root,
    };
    let own = named(pickle, root, folder, files)?;
    if !own.is_empty() {
        return Ok(own);
    }
    let Item::Dict(pairs) = root else {
        return Ok(own);
    };
    for wanted in KEYS {
        let is_wanted =
            |(key, _): &&(Id, Id)| matches!(pickle.item(*key), Item::Text(key) if *key == wanted);
        if let Some((_, value)) = pairs.iter().rfind(is_wanted) {
            let inner = named(pickle, pickle.item(*value), folder, files)?;
            if !inner.is_empty() {
                return Ok(inner);
            }
        }
    }
    Ok(own)
}

/// The tensors of a dict by name.
fn named(
    pickle: &Pickle<'_>,
    dict: &Item<'_>,
    folder: &str,
    files: &Files,
) -> Result<IndexMap<String, Stored>> {
    let Item::Dict(pairs) = dict else {
        return Ok(IndexMap::new());
    };
    let mut tensors = IndexMap::new();
    for (key, value) in pairs {
        if let (Item::Text(name), Some((function, args))) =
            (pickle.item(*key), made(pickle, *value))
        {
            let stored = stored(pickle, function, args, folder, files);
            let stored = stored.map_err(|e| Error::msg(format_args!("`{name}`: {e}")))?;
            tensors.insert((*name).to_string(), stored);
        }
    }
    Ok(tensors)
}

/// The function that makes a tensor of its storage, and its arguments; `None` of what is no tensor.
fn made<'p>(pickle: &'p Pickle<'_>, value: Id) -> Option<(&'p str, &'p [Id])> {
    let mut call = match pickle.item(value) {
        Item::Call { callable, args } => (*callable, *args),
        _ => return None,
    };
    // Parameters and tensors of other classes are made of tensors: a few calls inside of each other.
    for _ in 0..8 {
        let (Item::Class(module, function), Item::Tuple(args)) =
            (pickle.item(call.0), pickle.item(call.1))
        else {
            return None;
        };
        call = match (*module, *function) {
            ("torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2" | "_rebuild_tensor_v3") => {
                return Some((function, args));
            }
            ("torch._tensor", "_rebuild_from_type_v2") => (*args.first()?, *args.get(2)?),
            ("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state") => {
                match pickle.item(*args.first()?) {
                    Item::Call { callable, args } => (*callable, *args),
                    _ => return None,
                }
            }
            _ => return None,
        };
    }
    None
}

/// The element type of a storage's class or of a `torch.dtype`.
fn dtype_of(name: &str) -> Option<DType> {
    Some(match name {
        "BoolStorage" | "bool" => DType::Bool,
        "ByteStorage" | "uint8" => DType::U8,
        "CharStorage" | "int8" => DType::I8,
        "ShortStorage" | "int16" => DType::I16,
        "IntStorage" | "int32" => DType::I32,
        "LongStorage" | "int64" => DType::I64,
        "uint16" => DType::U16,
        "uint32" => DType::U32,
        "BFloat16Storage" | "bfloat16" => DType::BF16,
        "HalfStorage" | "float16" => DType::F16,
        "FloatStorage" | "float32" => DType::F32,
        "DoubleStorage" | "float64" => DType::F64,
        _ => return None,
    })
}

/// A tensor by the arguments of its call: the storage, the first element's place in it, sizes and strides.
fn stored(
    pickle: &Pickle<'_>,
    function: &str,
    args: &[Id],
    folder: &str,
    files: &Files,
) -> Result<Stored> {
    let wrong = || Error::msg("the file does not say where its elements are");
    let item = |at: usize| args.get(at).map(|id| pickle.item(*id)).ok_or_else(wrong);
    let size = |item: &Item<'_>| match item {
        Item::Int(number) => usize::try_from(*number)
            .map_err(|_| Error::msg(format_args!("{number} is no size, stride or place"))),
        _ => Err(wrong()),
    };
    let sizes = |at: usize| match item(at)? {
        Item::Tuple(parts) => parts.iter().map(|id| size(pickle.item(*id))).collect(),
        _ => Err(wrong()),
    };
    let Item::Persistent(storage) = item(0)? else {
        return Err(wrong());
    };
    let Item::Tuple(storage) = pickle.item(*storage) else {
        return Err(wrong());
    };
    let of_storage = |at: usize| storage.get(at).map(|id| pickle.item(*id)).ok_or_else(wrong);
    let Item::Class(_, class) = of_storage(1)? else {
        return Err(wrong());
    };
    let Item::Text(key) = of_storage(2)? else {
        return Err(wrong());
    };
    let name = match (function, item(6)) {
        ("_rebuild_tensor_v3", Ok(Item::Class(_, dtype))) => *dtype,
        _ => *class,
    };
    let dtype = dtype_of(name).ok_or_else(|| name.to_string());
    let place = files.get(&format!("{folder}/{key}"));
    let place = place.ok_or_else(|| {
        Error::msg(format_args!(
            "the file has no `{folder}/{key}` with its elements"
        ))
    })?;
    let (shape, strides) = (sizes(2)?, sizes(3)?);
    Stored::new(
        dtype,
        shape,
        strides,
        size(item(1)?)?,
        *place,
        &format!("{folder}/{key}"),
    )
}
