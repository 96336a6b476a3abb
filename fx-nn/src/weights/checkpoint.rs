//! `Checkpoint`: the tensors of one file or several, by name, to load a module from.
//!
//! Invariants: a name leads to one tensor; everything is checked before anything of a module is changed.

use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::path::{Path as FilePath, PathBuf};

use candle_core::quantized::gguf_file::Value;
use fx_core::__private::opened;
use fx_core::module::Component;
use fx_core::{Error, ErrorKind, Result};
use indexmap::IndexMap;
use indexmap::map::Entry;

use super::part::{Info, Part};
use super::place::{InFile, Place};
use super::report::Report;
use super::state::{fit, set};
use crate::nn::QuantizedLinear;
use crate::tensor::Tensor;

/// The tensors of a checkpoint by name: of a safetensors file, a PyTorch file (`.pth`, `.pt`,
/// `.bin`), a GGUF file, or a folder with an index of several files.
///
/// Only the files' headers are read at first; tensors are read one by one when they are asked for.
///
/// ```
/// use fx_nn::prelude::*;
/// use fx_nn::weights::Checkpoint;
/// #[derive(Module)]
/// struct Head { proj: nn::Linear }
/// # #[derive(Module)] struct Body { head: Head }
/// # #[derive(Module)] struct Model { body: Body }
/// # let path = std::env::temp_dir().join(format!("fx_doc_checkpoint_{}.safetensors", std::process::id()));
/// # let proj = nn::Linear::new(4, 2)?;
/// # fx_nn::weights::save(&Model { body: Body { head: Head { proj } } }, &path)?;
/// let mut head = Head { proj: nn::Linear::new(4, 2)? };
/// let checkpoint = Checkpoint::open(&path)?;
/// assert_eq!(checkpoint.names().collect::<Vec<_>>(), ["body.head.proj.bias", "body.head.proj.weight"]);
/// checkpoint.prefix("body.head.").load(&mut head)?;
/// # std::fs::remove_file(&path).map_err(Error::other)?;
/// # Ok::<(), Error>(())
/// ```
pub struct Checkpoint {
    path: PathBuf,
    parts: Vec<Part>,
    tensors: IndexMap<String, Place>,
    widen: bool,
    progress: Option<Box<OnProgress>>,
}

/// Called before each tensor is read, and once all are.
type OnProgress = dyn Fn(Progress<'_>);

/// The progress of a load.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// The next tensor to read; empty once all are read.
    pub name: &'a str,
    /// The bytes of the tensors read so far.
    pub bytes: u64,
    /// The bytes of all tensors to read.
    pub total: u64,
}

impl fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkpoint")
            .field("path", &self.path)
            .field("tensors", &self.tensors.len())
            .finish_non_exhaustive()
    }
}

/// The files that a folder's tensors are looked for in, in order: indices before files.
const IN_FOLDERS: [&str; 4] = [
    "model.safetensors.index.json",
    "model.safetensors",
    "pytorch_model.bin.index.json",
    "pytorch_model.bin",
];

impl Checkpoint {
    /// Opens a file, an index of several files (`.index.json`), or a folder in Hugging Face's
    /// layout.
    ///
    /// # Errors
    /// Returns an error if a file does not exist, has an unknown format, or is truncated; if an
    /// index names a file or a tensor that does not exist; or if two files have a tensor of one
    /// name. The error has a line for each.
    pub fn open(path: impl AsRef<FilePath>) -> Result<Self> {
        let path = path.as_ref();
        let open = || match path.is_dir() {
            true => Self::open_folder(path),
            false if path.extension().is_some_and(|e| e == "json") => Self::open_index(path),
            false => Self::open_files(&[path.to_path_buf()]),
        };
        let mut checkpoint = open().map_err(|e| in_file(path, &e))?;
        checkpoint.path = path.to_path_buf();
        Ok(checkpoint)
    }

    fn open_folder(folder: &FilePath) -> Result<Self> {
        let known = IN_FOLDERS.iter().map(|name| folder.join(name));
        match known.into_iter().find(|path| path.is_file()) {
            Some(path) if path.extension().is_some_and(|e| e == "json") => Self::open_index(&path),
            Some(path) => Self::open_files(&[path]),
            None => Err(Error::msg(format_args!(
                "the folder has no weights: there is none of {}",
                IN_FOLDERS.join(", ")
            ))),
        }
    }

    fn open_index(path: &FilePath) -> Result<Self> {
        let text = std::io::read_to_string(opened(path).map_err(Error::msg)?);
        let text = text.map_err(Error::msg)?;
        let index: serde_json::Value = serde_json::from_str(&text).map_err(Error::msg)?;
        let map = index.get("weight_map").and_then(|map| map.as_object());
        let map = map.ok_or_else(|| {
            Error::msg(
                "it is not an index: there is no `weight_map` from names of tensors to files",
            )
        })?;
        let mut files = BTreeSet::new();
        let mut problems = Vec::new();
        for (name, file) in map {
            // A file name beside the index, and no other path.
            match file.as_str().filter(|file| {
                let mut parts = FilePath::new(file).components();
                matches!(parts.next(), Some(std::path::Component::Normal(_)))
                    && parts.next().is_none()
            }) {
                Some(file) => {
                    files.insert(file);
                }
                None => problems.push(format!("`{name}` is in {file}, which is no file's name")),
            }
        }
        let folder = path.parent().unwrap_or(FilePath::new(""));
        let files: Vec<PathBuf> = files.into_iter().map(|file| folder.join(file)).collect();
        let checkpoint = Self::open_files(&files);
        match &checkpoint {
            Ok(checkpoint) => {
                let names = map.keys();
                let absent = names.filter(|name| !checkpoint.tensors.contains_key(*name));
                let told = absent.map(|name| format!("`{name}` is in the index, and in no file"));
                problems.extend(told);
            }
            Err(error) => problems.push(error.to_string()),
        }
        no_problems(&problems)?;
        checkpoint
    }

    fn open_files(paths: &[PathBuf]) -> Result<Self> {
        let mut checkpoint = Checkpoint {
            path: PathBuf::new(),
            parts: Vec::with_capacity(paths.len()),
            tensors: IndexMap::new(),
            widen: false,
            progress: None,
        };
        let mut problems = Vec::new();
        for path in paths {
            let file = path.file_name().unwrap_or_default().display();
            let named = |problem: &dyn fmt::Display| match paths {
                [_] => problem.to_string(),
                _ => format!("{file}: {problem}"),
            };
            match Part::open(path) {
                Ok((part, infos)) => {
                    let at = checkpoint.parts.len();
                    checkpoint.parts.push(part);
                    for Info { name, shape, bytes } in infos {
                        match checkpoint.tensors.entry(name) {
                            Entry::Occupied(taken) => problems.push(named(&format_args!(
                                "`{}` is in another file too",
                                taken.key()
                            ))),
                            Entry::Vacant(place) => {
                                let name = place.key().clone();
                                let part = at;
                                place.insert(Place::whole(InFile { part, name }, shape, bytes));
                            }
                        }
                    }
                }
                Err(error) => problems.push(named(&error)),
            }
        }
        no_problems(&problems)?;
        Ok(checkpoint)
    }

    /// The names of the tensors, as the rules have renamed them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// The shape of a tensor; `None` if there is no such tensor.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|place| &*place.shape)
    }

    /// How a tensor of a GGUF file is quantised, such as `Q4K`; `None` for other tensors.
    pub fn quantization(&self, name: &str) -> Option<String> {
        let dtype = self.tensors.get(name)?.quantization(&self.parts)?;
        Some(format!("{dtype:?}"))
    }

    /// A GGUF file's metadata under a key, such as `general.architecture`, as text; `None` if there
    /// is none.
    pub fn metadata(&self, key: &str) -> Option<String> {
        Some(match self.gguf_value(key)? {
            Value::String(text) => text.clone(),
            Value::U8(n) => n.to_string(),
            Value::I8(n) => n.to_string(),
            Value::U16(n) => n.to_string(),
            Value::I16(n) => n.to_string(),
            Value::U32(n) => n.to_string(),
            Value::I32(n) => n.to_string(),
            Value::U64(n) => n.to_string(),
            Value::I64(n) => n.to_string(),
            Value::F32(x) => x.to_string(),
            Value::F64(x) => x.to_string(),
            Value::Bool(b) => b.to_string(),
            Value::Array(items) => format!("{items:?}"),
        })
    }

    /// A GGUF file's metadata under a key as candle reads it, lists too; `None` if there is none.
    pub fn gguf_value(&self, key: &str) -> Option<&Value> {
        let mut all = self.parts.iter().filter_map(Part::metadata);
        all.find_map(|metadata| metadata.get(key))
    }

    /// Reads one tensor, in the element type of the file; a quantised one as `float32`.
    ///
    /// # Errors
    /// Returns an error if there is no tensor of that name, candle has no such element type, or the
    /// file cannot be read.
    pub fn tensor(&self, name: &str) -> Result<Tensor> {
        self.made(name, false)
    }

    /// Reads one tensor as [`tensor`](Checkpoint::tensor) does, as a parameter that is trained, unless its elements are no
    /// floats. They are read to where they stay; [`Tensor::into_parameter`] would copy them.
    ///
    /// # Errors
    /// As [`tensor`](Checkpoint::tensor).
    pub fn parameter(&self, name: &str) -> Result<Tensor> {
        self.made(name, true)
    }

    fn made(&self, name: &str, parameter: bool) -> Result<Tensor> {
        let tensor = self.place(name)?.tensor(&self.parts, self.widen, parameter);
        tensor.map_err(|e| in_file(&self.path, &format_args!("`{name}`: {e}")))
    }

    /// The quantised layer that a GGUF file has under a name (its `weight`, and `bias` if there is
    /// one), with its blocks unchanged: `blk.0.attn_q` for `blk.0.attn_q.weight`.
    ///
    /// # Errors
    /// Returns an error if there is no such matrix, or the file is not a GGUF file.
    pub fn quantized_linear(&self, name: &str) -> Result<QuantizedLinear> {
        let (weight, bias) = (format!("{name}.weight"), format!("{name}.bias"));
        let matrix = self.place(&weight)?.quantized(&self.parts);
        let bias = self.shape(&bias).map(|_| self.tensor(&bias));
        Ok(QuantizedLinear {
            weight: matrix.map_err(|e| in_file(&self.path, &format_args!("`{weight}`: {e}")))?,
            bias: bias.transpose()?,
        })
    }

    fn place(&self, name: &str) -> Result<&Place> {
        self.tensors.get(name).ok_or_else(|| {
            let error = Error::msg(format_args!("the checkpoint has no tensor `{name}`"));
            in_file(&self.path, &error)
        })
    }

    /// Keeps only the tensors whose names begin with `prefix`, and removes it: `"model."` makes
    /// `norm.weight` of `model.norm.weight`.
    #[must_use]
    pub fn prefix(mut self, prefix: &str) -> Self {
        let tensors = std::mem::take(&mut self.tensors);
        let inside = tensors.into_iter().filter_map(|(name, place)| {
            let name = name.strip_prefix(prefix)?.to_string();
            Some((name, place))
        });
        self.tensors = inside.collect();
        self
    }

    /// Renames tensors to the names that the module uses.
    ///
    /// ```
    /// # use fx_nn::prelude::*;
    /// # use fx_nn::weights::Checkpoint;
    /// # let path = std::env::temp_dir().join(format!("fx_doc_rename_{}.safetensors", std::process::id()));
    /// # #[derive(Module)] struct Saved { gamma: Tensor, beta: Tensor }
    /// # fx_nn::weights::save(&Saved { gamma: Tensor::ones(4)?, beta: Tensor::zeros(4)? }, &path)?;
    /// let mut norm = nn::LayerNorm::new(4)?;
    /// Checkpoint::open(&path)?
    ///     .rename(|name| name.replace("gamma", "weight").replace("beta", "bias"))?
    ///     .load(&mut norm)?;
    /// # std::fs::remove_file(&path).map_err(Error::other)?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if two tensors get one name.
    pub fn rename(mut self, rule: impl Fn(&str) -> String) -> Result<Self> {
        let tensors = std::mem::take(&mut self.tensors);
        for (name, place) in tensors {
            match self.tensors.entry(rule(&name)) {
                Entry::Vacant(free) => {
                    free.insert(place);
                }
                Entry::Occupied(taken) => {
                    let problem = format!(
                        "`{}` and `{}` both become `{}`: rename one of them to something else, or leave it out with `retain`",
                        taken.get().name(),
                        place.name(),
                        taken.key()
                    );
                    return Err(in_file(&self.path, &problem));
                }
            }
        }
        Ok(self)
    }

    /// Keeps only the tensors whose names the rule accepts.
    #[must_use]
    pub fn retain(mut self, keep: impl Fn(&str) -> bool) -> Self {
        self.tensors.retain(|name, _| keep(name));
        self
    }

    /// Makes several tensors of the rows of one, as many rows for each as told: for a module that has a layer for each of what
    /// a file has as one matrix.
    ///
    /// ```
    /// # use fx_nn::prelude::*;
    /// # use fx_nn::weights::Checkpoint;
    /// # let path = std::env::temp_dir().join(format!("fx_doc_split_{}.safetensors", std::process::id()));
    /// # #[derive(Module)] struct Saved { qkv: Tensor }
    /// # fx_nn::weights::save(&Saved { qkv: Tensor::arange(0, 12)?.view((6, 2))? }, &path)?;
    /// let checkpoint = Checkpoint::open(&path)?.split_rows("qkv", &[("q", 4), ("k", 1), ("v", 1)])?;
    /// assert_eq!(checkpoint.tensor("k")?.to_vec()?, [8.0, 9.0]);
    /// # std::fs::remove_file(&path).map_err(Error::other)?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if there is no such tensor in the files, it has another number of rows, or a name is taken.
    pub fn split_rows(mut self, name: &str, rows: &[(&str, usize)]) -> Result<Self> {
        let counts: Vec<usize> = rows.iter().map(|(_, count)| *count).collect();
        let split = self.place(name)?.split(&counts);
        let split = split.map_err(|e| in_file(&self.path, &format_args!("`{name}`: {e}")))?;
        self.tensors.shift_remove(name);
        for ((name, _), place) in rows.iter().zip(split) {
            self.add(name, place)?;
        }
        Ok(self)
    }

    /// Makes one tensor of several of one shape, which lie behind each other along a new first dim, in the order of `names`.
    ///
    /// ```
    /// # use fx_nn::prelude::*;
    /// # use fx_nn::weights::Checkpoint;
    /// # let path = std::env::temp_dir().join(format!("fx_doc_stack_{}.safetensors", std::process::id()));
    /// # #[derive(Module)] struct Saved { first: Tensor, second: Tensor }
    /// # fx_nn::weights::save(&Saved { first: Tensor::ones(4)?, second: Tensor::zeros(4)? }, &path)?;
    /// let checkpoint = Checkpoint::open(&path)?.stack(&["first", "second"], "both")?;
    /// assert_eq!(checkpoint.shape("both"), Some(&[2, 4][..]));
    /// # std::fs::remove_file(&path).map_err(Error::other)?;
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if there is no such tensor in the files, the shapes differ, or the name is taken.
    pub fn stack(mut self, names: &[impl AsRef<str>], into: &str) -> Result<Self> {
        let places: Result<Vec<&Place>> =
            names.iter().map(|name| self.place(name.as_ref())).collect();
        let stacked = Place::stacked(&places?);
        let stacked = stacked.map_err(|e| in_file(&self.path, &format_args!("`{into}`: {e}")))?;
        let taken: HashSet<&str> = names.iter().map(AsRef::as_ref).collect();
        self.tensors
            .retain(|name, _| !taken.contains(name.as_str()));
        self.add(into, stacked)?;
        Ok(self)
    }

    fn add(&mut self, name: &str, place: Place) -> Result<()> {
        match self.tensors.entry(name.to_string()) {
            Entry::Vacant(free) => {
                free.insert(place);
                Ok(())
            }
            Entry::Occupied(_) => {
                let problem = format!("there is a tensor `{name}` already");
                Err(in_file(&self.path, &problem))
            }
        }
    }

    /// Reads `int8` as `int16` and `uint16` as `int32`, which hold the same numbers, since candle
    /// has no such tensors; as for all others, the module decides the final type.
    #[must_use]
    pub fn widen(mut self) -> Self {
        self.widen = true;
        self
    }

    /// Calls `on_progress` before each tensor that a load reads, and once all are read.
    #[must_use]
    pub fn on_progress(mut self, on_progress: impl Fn(Progress<'_>) + 'static) -> Self {
        self.progress = Some(Box::new(on_progress));
        self
    }

    /// Sets every parameter and buffer of a module; dtypes are converted to the module's. A tensor with several names is set
    /// by any of them. The count of batches of a batch norm may be missing, as in PyTorch: it stays what it is.
    ///
    /// # Errors
    /// Returns an error if a tensor is missing, unexpected, of a different shape, or of an element
    /// type that candle lacks, with a line for each; the module is unchanged then. If the disk
    /// fails in the middle of a file that was whole when it was opened, the error names the tensor;
    /// those before it are set.
    pub fn load(&self, module: &mut (impl Component + ?Sized)) -> Result<()> {
        self.load_where(module, |_| true, Report::strict).map(drop)
    }

    /// Sets those parameters and buffers of a module that the checkpoint has in the same shape, and reports the others.
    ///
    /// # Errors
    /// Returns an error if a tensor that fits has elements that candle does not have, and, like
    /// [`load`](Checkpoint::load), if a file cannot be read.
    pub fn load_partial(&self, module: &mut (impl Component + ?Sized)) -> Result<Report> {
        self.load_where(module, |_| true, |_| Ok(()))
    }

    /// Loads the tensors whose names `keep` accepts, if `accept` succeeds for what does not fit.
    pub(crate) fn load_where(
        &self,
        module: &mut (impl Component + ?Sized),
        keep: impl Fn(&str) -> bool,
        accept: impl FnOnce(&Report) -> Result<()>,
    ) -> Result<Report> {
        let given = self.tensors.iter().filter(|(name, _)| keep(name));
        let given = given.map(|(name, place)| (name.as_str(), &*place.shape));
        let (names, report) = fit(module, &given.collect())?;
        accept(&report).map_err(|e| in_file(&self.path, &format_args!("\n{e}")))?;
        let wanted: BTreeSet<&str> = names.values().copied().collect();
        let unread = wanted.iter().filter_map(|name| {
            let checked = self.tensors[*name].check(&self.parts, self.widen);
            let error = checked.err()?;
            Some(format!("`{name}`: {error}"))
        });
        let unread: Vec<String> = unread.collect();
        no_problems(&unread).map_err(|e| in_file(&self.path, &e))?;
        let total = wanted.iter().map(|name| self.tensors[*name].bytes).sum();
        let tell = |name: &str, bytes: u64| {
            if let Some(progress) = &self.progress {
                progress(Progress { name, bytes, total });
            }
        };
        let mut bytes = 0;
        set(module, &names, |name, own| {
            tell(name, bytes);
            let place = &self.tensors[name];
            place.read_into(&self.parts, self.widen, own)?;
            bytes += place.bytes;
            Ok(())
        })
        .map_err(|e| in_file(&self.path, &e))?;
        tell("", total);
        Ok(report)
    }
}

/// # Errors
/// Returns an error if there are problems, with a line for each.
fn no_problems(problems: &[String]) -> Result<()> {
    match problems {
        [] => Ok(()),
        problems => Err(Error::msg(problems.join("\n"))),
    }
}

/// An error about a file, with its path.
pub(super) fn in_file(path: &FilePath, problem: &dyn fmt::Display) -> Error {
    ErrorKind::Weights(format!("{}: {problem}", path.display())).into()
}
