//! Other names of operators: those of `torch.special`, of NumPy, and copies of what is else a view.
//!
//! Invariant: an operator and its other name have the same arguments.

/// The other name, and the name that has an entry.
const ALIASES: [(&str, &str); 54] = [
    ("aten.alias_copy", "aten.alias"),
    ("aten.arccos", "aten.acos"),
    ("aten.arccosh", "aten.acosh"),
    ("aten.arcsin", "aten.asin"),
    ("aten.arcsinh", "aten.asinh"),
    ("aten.arctan", "aten.atan"),
    ("aten.arctan2", "aten.atan2"),
    ("aten.arctanh", "aten.atanh"),
    ("aten.concatenate", "aten.cat"),
    ("aten.detach_copy", "aten.detach"),
    ("aten.diagonal_copy", "aten.diagonal"),
    ("aten.expand_copy", "aten.expand"),
    ("aten.greater", "aten.gt"),
    ("aten.greater_equal", "aten.ge"),
    ("aten.less", "aten.lt"),
    ("aten.less_equal", "aten.le"),
    ("aten.linalg_matmul", "aten.matmul"),
    ("aten.moveaxis", "aten.movedim"),
    ("aten.narrow_copy", "aten.narrow"),
    ("aten.not_equal", "aten.ne"),
    ("aten.permute_copy", "aten.permute"),
    ("aten.row_stack", "aten.vstack"),
    ("aten.select_copy", "aten.select"),
    ("aten.slice_copy", "aten.slice"),
    ("aten.special_erf", "aten.erf"),
    ("aten.special_erfc", "aten.erfc"),
    ("aten.special_erfinv", "aten.erfinv"),
    ("aten.special_exp2", "aten.exp2"),
    ("aten.special_expit", "aten.sigmoid"),
    ("aten.special_expm1", "aten.expm1"),
    ("aten.special_log1p", "aten.log1p"),
    ("aten.special_log_softmax", "aten.log_softmax"),
    ("aten.special_logit", "aten.logit"),
    ("aten.special_logsumexp", "aten.logsumexp"),
    ("aten.special_round", "aten.round"),
    ("aten.special_sinc", "aten.sinc"),
    ("aten.special_softmax", "aten.softmax"),
    ("aten.special_xlogy", "aten.xlogy"),
    ("aten.split_copy", "aten.split"),
    ("aten.split_with_sizes_copy", "aten.split_with_sizes"),
    ("aten.squeeze_copy", "aten.squeeze"),
    ("aten.t_copy", "aten.t"),
    ("aten.transpose_copy", "aten.transpose"),
    ("aten.trapz", "aten.trapezoid"),
    ("aten.unbind_copy", "aten.unbind"),
    ("aten.unfold_copy", "aten.unfold"),
    ("aten.unsafe_chunk", "aten.chunk"),
    ("aten.unsafe_split", "aten.split"),
    ("aten.unsafe_split_with_sizes", "aten.split_with_sizes"),
    ("aten.unsqueeze_copy", "aten.unsqueeze"),
    ("aten.view_as_complex_copy", "aten.view_as_complex"),
    ("aten.view_as_real_copy", "aten.view_as_real"),
    ("aten.view_copy", "aten.view"),
    ("aten.reshape_copy", "aten.reshape"),
];

/// The name that an operator has an entry under, where that is another one.
pub(crate) fn of(operator: &str) -> Option<&'static str> {
    let found = ALIASES.iter().find(|(other, _)| *other == operator);
    found.map(|(_, name)| *name)
}

/// All other names.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    ALIASES.iter().map(|(other, _)| *other)
}
