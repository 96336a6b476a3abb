//! The steps of a graph of integers.
//!
//! Invariant: a step writes a register of its own, and says which registers nothing reads after it.

use fx_core::GraphModule;
use fx_core::passes::backend::StepReport;
use fx_kernels::integer::{IntegerConv, Rounding, Term, Windows};

/// A register of bytes.
pub(super) type Id = usize;

/// Where floats come from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Floats {
    Input(usize),
    Register(Id),
}

/// A number, or an input that has one element.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scalar {
    Number(f64),
    Input(usize),
}

/// A scale and a zero point that a run decides.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfRun {
    pub scale: Scalar,
    pub zero_point: Scalar,
}

/// What a run decides of a product in floats.
#[derive(Debug)]
pub(super) struct RunScale {
    /// The scale and the zero point of its input.
    pub of: OfRun,
    /// How far bytes are from the input's integers.
    pub moved: i64,
    /// What the product is multiplied with.
    pub factor: Scalar,
    /// What is added to each channel then.
    pub bias: Vec<f32>,
}

/// What a tensor of a product is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Rows whose elements are the last dim.
    Rows,
    /// `[batch, channels, height, width]`.
    Image,
    /// `[batch, channels, length]`.
    Sequence,
}

/// What a step does.
#[derive(Debug)]
pub(super) enum Kernel {
    /// Floats times the inverse of the scale.
    Quantize {
        from: Floats,
        inverse: f32,
        rounding: Rounding,
    },
    /// Floats by a scale and a zero point that a run decides, held between two integers, and how far bytes are from these.
    QuantizeOfRun {
        from: Floats,
        of: OfRun,
        moved: i64,
        ends: (i64, i64),
    },
    /// Integers of an input.
    Load {
        input: usize,
        is_signed: bool,
    },
    Constant {
        bytes: Vec<u8>,
        dims: Vec<usize>,
    },
    Product {
        x: Id,
        conv: IntegerConv,
        shape: Shape,
    },
    /// A product whose result is floats, and what a run decides of it.
    ToFloats {
        x: Id,
        conv: IntegerConv,
        shape: Shape,
        of: Option<RunScale>,
    },
    Add {
        a: (Id, Term),
        b: (Id, Term),
        rounding: Rounding,
    },
    /// The two sides with their zero points.
    Mul {
        a: (Id, u8),
        b: (Id, u8),
        scale: f32,
        rounding: Rounding,
    },
    /// Bytes of one scale behind each other.
    Cat {
        all: Vec<Id>,
        dim: i64,
    },
    /// Each byte by a table.
    Each {
        x: Id,
        table: Box<[u8; 256]>,
    },
    Clamp {
        x: Id,
        low: u8,
        high: u8,
    },
    Rescale {
        x: (Id, Term),
        rounding: Rounding,
    },
    MaxPool {
        x: Id,
        windows: Windows,
    },
    /// A byte around images: above, below, left, right.
    Pad {
        x: Id,
        by: [usize; 4],
        byte: u8,
    },
    AveragePool {
        x: Id,
        windows: Windows,
        scale: f32,
        zero_point: u8,
        counts: bool,
        rounding: Rounding,
    },
    /// The mean of all pixels of images, or of rows of channels, and whether their dims stay.
    Mean {
        x: Id,
        term: Term,
        keeps: bool,
        rounding: Rounding,
    },
    /// The same elements in another shape or order, as a call gives them.
    View {
        x: Id,
        call: Box<GraphModule>,
    },
    Dequantize {
        x: Id,
        scale: f32,
        zero_point: u8,
    },
    /// A tensor of integers.
    Store {
        x: Id,
        is_signed: bool,
    },
}

impl Kernel {
    /// The registers that it reads.
    pub fn reads(&self) -> Vec<Id> {
        match self {
            Kernel::Load { .. } | Kernel::Constant { .. } => Vec::new(),
            Kernel::Quantize { from, .. } | Kernel::QuantizeOfRun { from, .. } => match from {
                Floats::Input(_) => Vec::new(),
                Floats::Register(x) => vec![*x],
            },
            Kernel::Add { a, b, .. } => vec![a.0, b.0],
            Kernel::Mul { a, b, .. } => vec![a.0, b.0],
            Kernel::Cat { all, .. } => all.clone(),
            Kernel::Rescale { x, .. } => vec![x.0],
            Kernel::Product { x, .. }
            | Kernel::ToFloats { x, .. }
            | Kernel::Each { x, .. }
            | Kernel::Clamp { x, .. }
            | Kernel::MaxPool { x, .. }
            | Kernel::Pad { x, .. }
            | Kernel::AveragePool { x, .. }
            | Kernel::Mean { x, .. }
            | Kernel::View { x, .. }
            | Kernel::Dequantize { x, .. }
            | Kernel::Store { x, .. } => vec![*x],
        }
    }
}

/// A step, and the registers that nothing reads after it.
#[derive(Debug)]
pub(super) struct Step {
    pub kernel: Kernel,
    pub to: Id,
    pub frees: Vec<Id>,
    pub report: StepReport,
}
