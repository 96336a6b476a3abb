//! `Source`: settings of kernels as the Rust that makes them.
//!
//! Invariant: what is written compiles with the names of this crate, and is equal to what was written.

use core::fmt::{Result, Write};

/// What is written as an expression of Rust, with the names of this crate.
///
/// ```
/// use fx_static::{Pool, PoolSpec, Pooled, Source};
///
/// let mut text = String::new();
/// let pool = Pool { how: Pooled::Mean, spec: PoolSpec::new(2), size: [4, 4] };
/// pool.source(&mut text)?;
/// assert!(text.starts_with("Pool { how: Pooled::Mean, spec: PoolSpec { kernel: [2, 2], "));
/// # Ok::<(), core::fmt::Error>(())
/// ```
pub trait Source {
    /// Writes the expression.
    ///
    /// # Errors
    /// Returns the error of the writer.
    fn source(&self, out: &mut dyn Write) -> Result;
}

/// How a struct, by its fields, or an enum without fields is written.
macro_rules! source {
    ($name:ident { $($field:ident),* $(,)? }) => {
        impl $crate::Source for $name {
            fn source(&self, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
                out.write_str(concat!(stringify!($name), " { "))?;
                $(
                    out.write_str(concat!(stringify!($field), ": "))?;
                    $crate::Source::source(&self.$field, out)?;
                    out.write_str(", ")?;
                )*
                out.write_str("}")
            }
        }
    };
    ($name:ident) => {
        impl $crate::Source for $name {
            fn source(&self, out: &mut dyn core::fmt::Write) -> core::fmt::Result {
                write!(out, concat!(stringify!($name), "::{:?}"), self)
            }
        }
    };
}
pub(crate) use source;

impl Source for usize {
    fn source(&self, out: &mut dyn Write) -> Result {
        write!(out, "{self}")
    }
}

impl Source for bool {
    fn source(&self, out: &mut dyn Write) -> Result {
        write!(out, "{self}")
    }
}

impl Source for f32 {
    fn source(&self, out: &mut dyn Write) -> Result {
        match self.is_finite() {
            true => write!(out, "{self:?}_f32"),
            false => write!(out, "f32::from_bits({:#x})", self.to_bits()),
        }
    }
}

impl<T: Source> Source for [T] {
    fn source(&self, out: &mut dyn Write) -> Result {
        out.write_str("[")?;
        for (at, item) in self.iter().enumerate() {
            out.write_str(if at == 0 { "" } else { ", " })?;
            item.source(out)?;
        }
        out.write_str("]")
    }
}

impl<T: Source, const N: usize> Source for [T; N] {
    fn source(&self, out: &mut dyn Write) -> Result {
        self[..].source(out)
    }
}

impl<T: Source> Source for Option<T> {
    fn source(&self, out: &mut dyn Write) -> Result {
        match self {
            None => out.write_str("None"),
            Some(some) => {
                out.write_str("Some(")?;
                some.source(out)?;
                out.write_str(")")
            }
        }
    }
}
