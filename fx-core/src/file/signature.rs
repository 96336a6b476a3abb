//! Signatures as JSON: the parameters of a saved module and the structure of each.

use super::arguments::{from_literal, from_tree, to_literal, to_tree};
use super::json::{self, Json, JsonMap};
use super::names::param;
use crate::error::{Error, Result};
use crate::ir::rust_type::RustType;
use crate::ir::signature::{ParamKind, ParamSpec};
use crate::value::tree::Tree;

/// A type's text, checked, so that source generated from a file contains only valid types.
pub(crate) fn to_type(saved: &Json) -> Result<&str> {
    let text = json::text(saved)?;
    check_type(text).map(|()| text)
}

/// Rejects what [`to_type`] rejects.
pub(crate) fn check_type(text: &str) -> Result<()> {
    RustType::parse(text).map(|_| ()).map_err(Error::saved)
}

pub(crate) fn from_params(params: &[ParamSpec]) -> Result<Json> {
    params
        .iter()
        .enumerate()
        .map(|(i, param)| {
            let inside = |e: Error| e.inside(format_args!("[{i}]"));
            json::check_name(&param.name).map_err(inside)?;
            check_type(&param.ty).map_err(inside)?;
            let mut fields = JsonMap::new();
            fields.insert(param::NAME.into(), Json::from(param.name.as_ref()));
            fields.insert(param::TYPE.into(), Json::from(param.ty.as_ref()));
            if param.kind == ParamKind::Keyword {
                fields.insert(param::KEYWORD.into(), Json::from(true));
            }
            if let Some(default) = &param.default {
                fields.insert(param::DEFAULT.into(), from_literal(default));
            }
            if !param.symbolic {
                fields.insert(param::SYMBOLIC.into(), Json::from(false));
            }
            Ok(Json::Object(fields))
        })
        .collect()
}

pub(crate) fn to_params(saved: &Json) -> Result<Vec<ParamSpec>> {
    json::items(saved, |param| {
        let fields = json::object(param)?;
        json::known_names(fields, &param::ALL)?;
        let keyword = json::optional(fields, param::KEYWORD, json::boolean)?;
        let name = json::part(fields, param::NAME, json::name)?.to_string();
        let ty = json::part(fields, param::TYPE, to_type)?.to_string();
        Ok(ParamSpec {
            kind: match keyword {
                Some(true) => ParamKind::Keyword,
                _ => ParamKind::Positional,
            },
            default: json::optional(fields, param::DEFAULT, to_literal)?,
            symbolic: json::optional(fields, param::SYMBOLIC, json::boolean)?.unwrap_or(true),
            ..ParamSpec::of_text(name, ty)
        })
    })
}

pub(crate) fn from_trees(trees: &[Tree]) -> Result<Json> {
    trees.iter().map(|tree| from_tree(tree, 0)).collect()
}

pub(crate) fn to_trees(saved: &Json) -> Result<Vec<Tree>> {
    json::items(saved, |tree| to_tree(tree, 0))
}
