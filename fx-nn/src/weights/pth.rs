//! PyTorch's files: a zip file with a pickle that names tensors, or an exported program, and a file of elements for each
//! storage. Older exported programs have such zip files inside of them.
//!
//! Invariant: a tensor that is listed lies inside of its storage, whose bytes the file has.

use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use fx_core::tensor::TensorData;
use fx_core::value::DType;
use fx_core::{Error, Result};
use indexmap::IndexMap;

use super::pickle::{Id, Item, Pickle};
use super::stored::{Files, Stored};
use super::{nested, pt2};
use crate::tensor::saved::PATH;

/// How many bytes are read at once: a whole number of elements of any type.
const PIECE: usize = 1 << 18;

/// What a pickle with the tensors of an exported program names; nothing of it is called.
const KNOWN: [(&str, &[&str]); 6] = [
    ("collections", &["OrderedDict", "defaultdict"]),
    ("torch", &["device", "Size"]),
    ("torch._tensor", &["_rebuild_from_type_v2"]),
    (
        "torch._utils",
        &[
            "_rebuild_tensor",
            "_rebuild_tensor_v2",
            "_rebuild_tensor_v3",
            "_rebuild_parameter",
            "_rebuild_parameter_with_state",
        ],
    ),
    ("torch.nn.parameter", &["Parameter", "Buffer"]),
    ("torch.storage", &["UntypedStorage", "TypedStorage"]),
];

/// Element types of `torch` that fx does not have: their tensors are listed.
const OTHER_TYPES: [&str; 9] = [
    "uint64",
    "complex32",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
];

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
    pub fn open(mut file: File) -> Result<Self> {
        let length = file.metadata().map_err(Error::msg)?.len();
        let mut files = Files::new();
        let mut packed = nested::listed(&mut file, (0, length), "", &mut files)?;
        let has_tensors = |name: &&String| nested::has_tensors(name);
        let mut inner: Vec<String> = files.keys().filter(has_tensors).cloned().collect();
        inner.sort_unstable();
        for name in &inner {
            let prefix = format!("{name}/");
            let found = nested::listed(&mut file, files[name], &prefix, &mut files);
            let found = found.map_err(|e| Error::msg(format_args!("`{name}`: {e}")))?;
            packed = packed.or(found);
        }
        let orders = files
            .iter()
            .filter(|(name, _)| name.ends_with("/byteorder"));
        for (_, place) in orders {
            if whole(&mut file, *place)? == b"big" {
                return Err(Error::msg(
                    "its numbers have their large digits first: save it again on another machine",
                ));
            }
        }
        let exported = pt2::tensors(&files, |place| whole(&mut file, place))?;
        if !exported.is_empty() {
            return Ok(Pth {
                file: RefCell::new(file),
                tensors: exported,
            });
        }
        let mut tensors = IndexMap::new();
        // Of an exported program only the files with its tensors; what else it has is the user's.
        let is_inside = |name: &str| {
            let mut inner = inner.iter();
            inner.any(|outer| {
                name.strip_prefix(&**outer)
                    .is_some_and(|n| n.starts_with('/'))
            })
        };
        let is_own = |name: &&String| inner.is_empty() || is_inside(name);
        let pickles = files.keys().filter(|name| name.ends_with("data.pkl"));
        let mut pickles: Vec<&String> = pickles.filter(is_own).collect();
        pickles.sort_unstable();
        for name in pickles {
            let folder = name.strip_suffix(".pkl").unwrap_or(name);
            let bytes = whole(&mut file, files[name])?;
            let about = |e: Error| match inner.is_empty() {
                true => e,
                false => Error::msg(format_args!("`{name}`: {e}")),
            };
            let pickle = Pickle::read(&bytes).map_err(about)?;
            if inner.is_empty() {
                tensors.extend(state_dict(&pickle, folder, &files)?);
                continue;
            }
            only_tensors(&pickle).map_err(about)?;
            tensors.extend(named(&pickle, pickle.root(), folder, &files).map_err(about)?);
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

/// Refuses a pickle that names something else than tensors are made of.
///
/// # Errors
/// Returns an error with the name.
fn only_tensors(pickle: &Pickle<'_>) -> Result<()> {
    for (module, name) in pickle.classes() {
        let known = KNOWN.iter().find(|(known, _)| *known == module);
        let is_type = || {
            let is_other = name.ends_with("Storage") || OTHER_TYPES.contains(&name);
            module == "torch" && (is_other || dtype_of(name).is_some())
        };
        if !known.is_some_and(|(_, names)| names.contains(&name)) && !is_type() {
            return Err(Error::msg(format_args!(
                "its pickle names `{module}.{name}`, of which no tensor is made, and nothing of a pickle is run: export the \
                 model with tensors of its own"
            )));
        }
    }
    Ok(())
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
