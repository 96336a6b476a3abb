//! The bytes of a file. Weights go from the tensors to the disk piece by piece: there is no second copy of them.
//!
//! Invariant: a file that could not be written whole is not at its path.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use fx_nn::{Error, Result};
use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len, message};

use super::context::{Constant, Elements, Mark, entry};
use super::model::Model;
use super::options::{Export, Weights};
use crate::dtype::{TEXT, code};
use crate::proto::{
    GraphProto, ModelProto, OperatorSetIdProto, StringStringEntryProto, TensorProto,
};

/// What protobuf can hold in one file.
const LARGEST: u64 = i32::MAX as u64;

/// About how many bytes a node takes with its marks and with what is said of its result.
const NODE: usize = 256;

/// The bytes of a piece of a list, more than what allocators take for small.
const PIECE: usize = 128 << 10;

/// Where the elements of external tensors begin.
const ALIGNED: u64 = 4096;

/// A tensor of the file: the message without its elements, and how many bytes those are.
struct Part<'c> {
    proto: TensorProto,
    constant: &'c Constant,
    inline: Option<u64>,
}

impl Part<'_> {
    fn len(&self) -> u64 {
        let head = self.proto.encoded_len() as u64;
        match self.inline {
            Some(bytes) => head + key_len(9) as u64 + encoded_len_varint(bytes) as u64 + bytes,
            None => head,
        }
    }
}

fn byte_len(constant: &Constant) -> Result<u64> {
    let count = constant
        .dims
        .iter()
        .try_fold(constant.dtype.size_in_bytes() as u64, |n, dim| {
            n.checked_mul(*dim as u64)
        });
    count.ok_or_else(|| {
        Error::msg(format_args!(
            "`{}` has more bytes than a file holds",
            constant.name
        ))
    })
}

/// Passes the elements of a constant on.
fn elements(constant: &Constant, sink: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    match &constant.elements {
        Elements::Bytes(bytes) => sink(bytes),
        Elements::Texts(_) => Ok(()),
        Elements::Tensor(value) => {
            let object = value
                .as_object()
                .ok_or_else(|| Error::msg("a weight is no tensor"))?;
            object.to_data()?.for_each_chunk(sink)
        }
    }
}

/// The message around the graph.
fn head(model: &Model) -> ModelProto {
    let set = |domain: &str, version| OperatorSetIdProto {
        domain: domain.to_string(),
        version,
    };
    let mut opset_import = vec![set("", model.opset)];
    opset_import.extend(
        model
            .domains
            .iter()
            .map(|(domain, version)| set(domain, *version)),
    );
    ModelProto {
        ir_version: if model.opset >= 23 { 11 } else { 10 },
        producer_name: "fx".to_string(),
        producer_version: env!("CARGO_PKG_VERSION").to_string(),
        opset_import,
        functions: model.functions.clone(),
        ..ModelProto::default()
    }
}

/// The bytes of a graph without its tensors. Each node is marked, written and dropped in turn.
pub(super) fn graph(mut graph: GraphProto, marks: Vec<Arc<Mark>>) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(graph.node.len() * NODE);
    let mut marks = marks.into_iter();
    in_pieces(std::mem::take(&mut graph.node), |mut node| {
        if let Some(mark) = marks.next() {
            mark.put(&mut node);
        }
        message::encode(1, &node, &mut bytes);
    });
    in_pieces(std::mem::take(&mut graph.value_info), |info| {
        message::encode(13, &info, &mut bytes);
    });
    graph.encode(&mut bytes).map_err(Error::other)?;
    Ok(bytes)
}

/// Does something with each item, which is dropped then.
///
/// An allocator may join the small pieces of memory that were freed when it gets a large one back. So that it
/// finds them in the cache, and not all of them at the end, the items are moved into pieces of the list first.
fn in_pieces<T>(items: Vec<T>, mut f: impl FnMut(T)) {
    let count = (PIECE / size_of::<T>().max(1)).max(1);
    let mut items = items.into_iter();
    while items.len() > 0 {
        let piece: Vec<T> = items.by_ref().take(count).collect();
        piece.into_iter().for_each(&mut f);
    }
}

/// Writes the file, with these tensors.
fn stream(
    model: &Model,
    parts: &[Part<'_>],
    out: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let graph_len = model.graph.len() as u64
        + parts
            .iter()
            .map(|part| key_len(5) as u64 + encoded_len_varint(part.len()) as u64 + part.len())
            .sum::<u64>();
    let head = head(model).encode_to_vec();
    let total =
        head.len() as u64 + key_len(7) as u64 + encoded_len_varint(graph_len) as u64 + graph_len;
    if total > LARGEST {
        return Err(Error::msg(format_args!(
            "the file would have {total} bytes, and one with its weights inside holds {LARGEST}: use `Weights::External`"
        )));
    }
    out(&head)?;
    let mut buffer = Vec::new();
    encode_key(7, WireType::LengthDelimited, &mut buffer);
    encode_varint(graph_len, &mut buffer);
    out(&buffer)?;
    out(&model.graph)?;
    for part in parts {
        buffer.clear();
        encode_key(5, WireType::LengthDelimited, &mut buffer);
        encode_varint(part.len(), &mut buffer);
        part.proto.encode(&mut buffer).map_err(Error::other)?;
        if let Some(bytes) = part.inline {
            encode_key(9, WireType::LengthDelimited, &mut buffer);
            encode_varint(bytes, &mut buffer);
        }
        out(&buffer)?;
        if part.inline.is_some() {
            elements(part.constant, out)?;
        }
    }
    Ok(())
}

fn part<'c>(
    constant: &'c Constant,
    external: Option<Vec<StringStringEntryProto>>,
) -> Result<Part<'c>> {
    if let Elements::Texts(texts) = &constant.elements {
        let items = texts.items()?.iter();
        return Ok(Part {
            proto: TensorProto {
                name: constant.name.to_string(),
                dims: constant.dims.iter().map(|dim| *dim as i64).collect(),
                data_type: TEXT,
                string_data: items
                    .map(|text| Bytes::copy_from_slice(text.as_bytes()))
                    .collect(),
                ..TensorProto::default()
            },
            inline: None,
            constant,
        });
    }
    let is_external = external.is_some();
    Ok(Part {
        proto: TensorProto {
            name: constant.name.to_string(),
            dims: constant.dims.iter().map(|dim| *dim as i64).collect(),
            data_type: code(constant.dtype)?,
            external_data: external.unwrap_or_default(),
            data_location: i32::from(is_external),
            ..TensorProto::default()
        },
        inline: if is_external {
            None
        } else {
            Some(byte_len(constant)?)
        },
        constant,
    })
}

/// A place outside of the file for each tensor that goes to none.
fn omitted(constant: &Constant) -> Result<Part<'_>> {
    match constant.elements {
        Elements::Bytes(_) | Elements::Texts(_) => part(constant, None),
        Elements::Tensor(_) => part(constant, Some(vec![entry("location", "omitted")])),
    }
}

pub(crate) fn to_bytes(model: &Model, export: &Export) -> Result<Vec<u8>> {
    match &export.weights {
        Weights::Inline => inline(model),
        Weights::Omitted => {
            let parts = model.constants.iter().map(omitted);
            streamed(model, &parts.collect::<Result<Vec<_>>>()?)
        }
        Weights::External { .. } => Err(Error::msg(
            "bytes have no folder for a file of weights: use `to_onnx`, or `Weights::Inline`",
        )),
    }
}

fn io(path: &Path, doing: &str) -> impl Fn(std::io::Error) -> Error {
    let text = format!("{doing} {}", path.display());
    move |error| Error::msg(format_args!("{text}: {error}"))
}

pub(crate) fn to_file(model: &mut Model, path: &Path, export: &Export) -> Result<()> {
    let mut parts = Vec::with_capacity(model.constants.len());
    match &export.weights {
        Weights::Inline => {
            for constant in &model.constants {
                parts.push(part(constant, None)?);
            }
        }
        Weights::Omitted => {
            for constant in &model.constants {
                parts.push(omitted(constant)?);
            }
        }
        Weights::External { file, from_bytes } => {
            if Path::new(file)
                .file_name()
                .is_none_or(|name| name != file.as_str())
            {
                return Err(Error::msg(format_args!(
                    "{file:?} is no name of a file: the weights go into the folder of the model"
                )));
            }
            let beside = path.with_file_name(file);
            let doing = io(&beside, "writing");
            let mut out = BufWriter::new(File::create(&beside).map_err(&doing)?);
            let mut at = 0u64;
            for constant in &model.constants {
                let bytes = byte_len(constant)?;
                let has_none = matches!(constant.elements, Elements::Texts(_));
                if has_none || bytes < *from_bytes as u64 {
                    parts.push(part(constant, None)?);
                    continue;
                }
                let start = at.next_multiple_of(ALIGNED);
                let gap = vec![0u8; (start - at) as usize];
                out.write_all(&gap).map_err(&doing)?;
                elements(constant, &mut |piece| out.write_all(piece).map_err(&doing))?;
                at = start + bytes;
                let place = vec![
                    entry("location", file.as_str()),
                    entry("offset", start.to_string()),
                    entry("length", bytes.to_string()),
                ];
                parts.push(part(constant, Some(place))?);
            }
            out.flush().map_err(&doing)?;
        }
    }
    let partial = path.with_extension("onnx.partial");
    let doing = io(path, "writing");
    let written = File::create(&partial).map_err(&doing).and_then(|file| {
        let mut out = BufWriter::with_capacity(1 << 18, file);
        stream(model, &parts, &mut |piece| {
            out.write_all(piece).map_err(&doing)
        })?;
        out.flush().map_err(&doing)
    });
    match written.and_then(|()| std::fs::rename(&partial, path).map_err(&doing)) {
        Ok(()) => Ok(()),
        Err(error) => {
            // What is left of it is of no use; that it cannot be removed changes nothing.
            let _ = std::fs::remove_file(&partial);
            Err(error)
        }
    }
}

/// The file with its weights inside, whatever it is written with.
pub(crate) fn inline(model: &Model) -> Result<Vec<u8>> {
    let parts = model.constants.iter().map(|c| part(c, None));
    streamed(model, &parts.collect::<Result<Vec<_>>>()?)
}

/// The bytes of a file with these weights.
fn streamed(model: &Model, parts: &[Part<'_>]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream(model, parts, &mut |piece| {
        bytes.extend_from_slice(piece);
        Ok(())
    })?;
    Ok(bytes)
}
