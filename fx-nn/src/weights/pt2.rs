//! The tensors of an exported program (`torch.export.save`): JSON names them, and each lies in a file of the zip file.

use fx_core::value::DType;
use fx_core::{Error, Result};
use indexmap::IndexMap;
use serde_json::Value as Json;

use super::stored::{Files, Stored};

/// The lists of tensors, each in its folder: parameters and buffers, then constants.
const LISTS: [&str; 2] = [
    "/data/weights/model_weights_config.json",
    "/data/constants/model_constants_config.json",
];

/// The element type of a number that exported programs have for it.
///
/// ```
/// use fx_nn::prelude::*;
/// assert_eq!(fx_nn::weights::exported_dtype(7), Ok(DType::F32));
/// ```
///
/// # Errors
/// Returns the name of a type of which fx has no tensors.
pub fn exported_dtype(code: u64) -> Result<DType, String> {
    Ok(match code {
        1 => DType::U8,
        2 => DType::I8,
        3 => DType::I16,
        4 => DType::I32,
        5 => DType::I64,
        6 => DType::F16,
        7 => DType::F32,
        8 => DType::F64,
        12 => DType::Bool,
        13 => DType::BF16,
        28 => DType::U16,
        34 => DType::U32,
        35 => DType::U64,
        9..=11 => return Err("complex numbers".to_string()),
        29..=33 => return Err("floats of 8 bits".to_string()),
        other => return Err(format!("the type with the number {other}")),
    })
}

/// The tensors by name; none if the file is no exported program.
///
/// # Errors
/// Returns an error if a list is no JSON, or a tensor does not fit the bytes that are there.
pub(super) fn tensors(
    files: &Files,
    mut bytes: impl FnMut((u64, u64)) -> Result<Vec<u8>>,
) -> Result<IndexMap<String, Stored>> {
    let mut tensors = IndexMap::new();
    for list in LISTS {
        let Some((name, place)) = files.iter().find(|(name, _)| name.ends_with(list)) else {
            continue;
        };
        let about = |problem: String| Error::msg(format_args!("`{name}`: {problem}"));
        let json: Json =
            serde_json::from_slice(&bytes(*place)?).map_err(|e| about(e.to_string()))?;
        let folder = &name[..name.len() - list.len() + list.rfind('/').unwrap_or_default() + 1];
        let entries = json.get("config").and_then(Json::as_object);
        for (tensor, entry) in entries.into_iter().flatten() {
            let stored = stored(entry, folder, files)
                .map_err(|e| about(format!("the tensor `{tensor}`: {e}")))?;
            tensors.insert(tensor.clone(), stored);
        }
    }
    Ok(tensors)
}

fn stored(entry: &Json, folder: &str, files: &Files) -> Result<Stored> {
    if entry.get("use_pickle").and_then(Json::as_bool) == Some(true) {
        return Err(Error::msg(
            "it is a pickle, which is not run: export the model with tensors of its own",
        ));
    }
    let wrong = |what: &str| Error::msg(format_args!("its {what} is missing or no number"));
    let number = |json: &Json| {
        let json = json.get("as_int").unwrap_or(json);
        json.as_u64().and_then(|n| usize::try_from(n).ok())
    };
    let meta = entry.get("tensor_meta").ok_or_else(|| wrong("meta"))?;
    let numbers = |key: &str| {
        let all = meta.get(key).and_then(Json::as_array);
        let all = all.and_then(|all| all.iter().map(number).collect::<Option<Vec<usize>>>());
        all.ok_or_else(|| wrong(key))
    };
    let code = meta.get("dtype").and_then(Json::as_u64);
    let offset = meta.get("storage_offset").and_then(number);
    let path = entry.get("path_name").and_then(Json::as_str);
    let file = format!("{folder}{}", path.ok_or_else(|| wrong("path"))?);
    let place = files
        .get(&file)
        .ok_or_else(|| Error::msg(format_args!("the file has no `{file}` with its elements")))?;
    Stored::new(
        exported_dtype(code.ok_or_else(|| wrong("element type"))?),
        numbers("sizes")?,
        numbers("strides")?,
        offset.ok_or_else(|| wrong("offset"))?,
        *place,
        &file,
    )
}
