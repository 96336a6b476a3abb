//! `Mesh`: devices in a grid whose axes have names.
//!
//! Invariant: names of axes are identifiers, each stands once, and no axis is empty.

use std::fmt;
use std::sync::Arc;

use fx_nn::prelude::*;

/// Devices in a grid whose axes have names.
///
/// ```
/// use fx_stablehlo::mesh;
/// let mesh = mesh!["data" = 2, "model" = 4]?;
/// assert_eq!(mesh.devices(), 8);
/// assert_eq!(mesh.size("model"), Some(4));
/// assert_eq!(mesh.to_string(), r#"["data"=2, "model"=4]"#);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mesh(Arc<[(String, usize)]>);

/// A [`Mesh`](crate::shard::Mesh) of named axes: `mesh!["data" = 2, "model" = 4]?`.
#[macro_export]
macro_rules! mesh {
    ($($axis:literal = $size:expr),* $(,)?) => {
        $crate::shard::Mesh::new([$(($axis, $size)),*])
    };
}

impl Mesh {
    /// A mesh of axes with their sizes.
    ///
    /// # Errors
    /// Returns an error that lists names that are no identifiers or stand twice, and sizes of zero.
    pub fn new<N: Into<String>>(axes: impl IntoIterator<Item = (N, usize)>) -> Result<Self> {
        let axes: Vec<(String, usize)> = axes
            .into_iter()
            .map(|(name, size)| (name.into(), size))
            .collect();
        let mut problems = Vec::new();
        for (at, (name, size)) in axes.iter().enumerate() {
            let mut letters = name.chars();
            let first = letters
                .next()
                .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
            if !first || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
                problems.push(format!("{name:?} is no identifier"));
            }
            if axes[..at].iter().any(|(other, _)| other == name) {
                problems.push(format!("{name:?} stands twice"));
            }
            if *size == 0 {
                problems.push(format!("{name:?} has no devices"));
            }
        }
        match problems.is_empty() {
            true => Ok(Mesh(axes.into())),
            false => Err(Error::msg(format_args!("a mesh: {}", problems.join("; ")))),
        }
    }

    /// The axes with their sizes, in order.
    pub fn axes(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().map(|(name, size)| (&**name, *size))
    }

    /// The size of an axis, if there is one of that name.
    pub fn size(&self, axis: &str) -> Option<usize> {
        self.axes()
            .find(|(name, _)| *name == axis)
            .map(|(_, size)| size)
    }

    /// The number of devices.
    pub fn devices(&self) -> usize {
        self.axes().map(|(_, size)| size).product()
    }

    /// The number of parts that axes make of a dim.
    pub(crate) fn parts(&self, axes: &[String]) -> usize {
        axes.iter().filter_map(|axis| self.size(axis)).product()
    }
}

impl fmt::Display for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (at, (name, size)) in self.axes().enumerate() {
            write!(f, "{}\"{name}\"={size}", if at == 0 { "" } else { ", " })?;
        }
        f.write_str("]")
    }
}
