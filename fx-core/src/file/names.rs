//! The field names in a saved file: one list, shared by the writer, the reader and
//! `docs/format.md`.
//!
//! Invariant: each group is a table of `docs/format.md`, with the same names in the same order.

/// Defines a module for each group, with one constant per name and an `ALL` list, and the list of
/// all groups.
macro_rules! names {
    ($($(#[$doc:meta])* $group:ident $title:literal [$($name:ident = $text:literal),+ $(,)?])+) => {
        $(
            $(#[$doc])*
            pub(crate) mod $group {
                $(pub(crate) const $name: &str = $text;)+
                /// All names of the group.
                #[allow(dead_code, reason = "a group of one name is not read as a whole")]
                pub(crate) const ALL: [&str; [$($text),+].len()] = [$($name),+];
            }
        )+

        /// Every group, under its heading in `docs/format.md`.
        #[cfg(test)]
        const GROUPS: &[(&str, &[&str])] = &[$(($title, &$group::ALL)),+];
    };
}

names! {
    /// The fields of a graph module; only the outermost has `schema`, `fx`, `tensors` and
    /// `aliases`.
    graph_module "Fields of a graph module" [
        SCHEMA = "schema",
        FX = "fx",
        CLASS = "class",
        PARAMS = "params",
        INPUTS = "inputs",
        META = "meta",
        LOCATIONS = "locations",
        SCOPES = "scopes",
        NODES = "nodes",
        MODULES = "modules",
        ATTRIBUTES = "attributes",
        TENSORS = "tensors",
        ALIASES = "aliases",
    ]
    /// A parameter of the signature.
    param "Fields of a parameter" [
        NAME = "name",
        TYPE = "type",
        KEYWORD = "keyword",
        DEFAULT = "default",
        SYMBOLIC = "symbolic",
    ]
    /// A module that a node came from.
    scope "Fields of a scope" [
        PATH = "path",
        TYPE = "type",
        CALL = "call",
        IN = "in",
    ]
    /// A node.
    node "Fields of a node" [
        OP = "op",
        TARGET = "target",
        NAME = "name",
        ARGS = "args",
        KWARGS = "kwargs",
        TYPE = "type",
        AT = "at",
        IN = "in",
        PASSES = "passes",
        META = "meta",
    ]
    /// A pass that created or replaced a node.
    source "Fields of a pass" [
        PASS = "pass",
        ACTION = "action",
        FROM = "from",
    ]
    /// The kind of an argument, as the one name of its object.
    argument "Kinds of arguments" [
        STR = "str",
        FLOAT = "float",
        ELLIPSIS = "ellipsis",
        DTYPE = "dtype",
        DEVICE = "device",
        TUPLE = "tuple",
        SLICE = "slice",
        RANGE = "range",
        DICT = "dict",
    ]
    /// A submodule.
    module "Fields of a module" [
        PATH = "path",
        TYPE = "type",
        CONFIG = "config",
    ]
    /// A parameter, buffer or constant.
    attribute "Fields of an attribute" [
        PATH = "path",
        KIND = "kind",
        VALUE = "value",
    ]
    /// A reference to a tensor.
    reference "A reference to a tensor" [
        TENSOR = "tensor",
    ]
    /// A file's description of a tensor, without its elements.
    tensor "Fields of a tensor" [
        TYPE = "type",
        PARAMETER = "parameter",
    ]
    /// What is known about the tensor that a node returns.
    value_meta "Fields of `fx_core::ir::ValueMeta`" [
        SHAPE = "shape",
        DTYPE = "dtype",
        STRIDES = "strides",
        REQUIRES_GRAD = "requires_grad",
        DEVICE = "device",
    ]
    /// What is known of other values that a run decides.
    value_kind "Kinds of values in `fx_core::ir::ValueMeta`" [
        SIZE = "size",
        UNKNOWN = "unknown",
        REPEATED = "repeated",
        UNRANKED = "unranked",
        OPAQUE = "opaque",
    ]
    /// What the shapes of a graph module hold for.
    contract "Fields of `fx_core::shapes::Contract`" [
        INPUTS = "inputs",
        SYMBOLS = "symbols",
        GUARDS = "guards",
    ]
    /// What must hold of sizes.
    guard "Fields of a guard" [
        CLAIM = "claim",
        LOCATION = "location",
        MODULE = "module",
    ]
    /// A part of a called module's return value.
    returned "Fields of `fx_core::Returned`" [
        MODULE = "module",
        CALL = "call",
        WHOLE = "whole",
        AT = "at",
    ]
}

#[cfg(test)]
mod tests {
    use super::GROUPS;

    /// The first cell of each row, under each heading of the document.
    fn tables(document: &str) -> Vec<(&str, Vec<&str>)> {
        let mut tables = Vec::new();
        for line in document.lines() {
            if line.starts_with('#') {
                tables.push((line.trim_start_matches('#').trim(), Vec::new()));
            } else if let Some((cell, _)) =
                line.strip_prefix("| `").and_then(|l| l.split_once("` |"))
                && let Some((_, rows)) = tables.last_mut()
            {
                rows.push(cell);
            }
        }
        tables
    }

    #[test]
    fn the_document_has_every_name_and_no_other() {
        let tables = tables(include_str!("../../docs/format.md"));
        for (title, names) in GROUPS {
            let table = tables.iter().find(|(heading, _)| heading == title);
            let rows = table.map(|(_, rows)| rows.as_slice());
            assert_eq!(rows, Some(*names), "{title}");
        }
        let known = |heading: &str| GROUPS.iter().any(|(title, _)| *title == heading);
        for (heading, rows) in &tables {
            let is_field_table = heading.starts_with("Field") || heading.starts_with("Kinds");
            assert!(!is_field_table || known(heading), "{heading}: {rows:?}");
        }
    }
}
