//! `Operand`: where an argument of a compiled step comes from.

/// Where an argument of a step comes from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Operand {
    /// A value computed before.
    Slot(u32),
    /// A literal.
    Constant(u32),
    /// A tensor of the attributes.
    Tensor(u32),
    /// A module of the attributes, as a value; only inside of a template.
    Module(u32),
    /// A structure or a module, made anew for each call.
    Built(u32),
}
