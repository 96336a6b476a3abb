//! `Mesh`: devices in a grid whose axes have names; the names are plain identifiers, so that no text becomes MLIR.

use std::fmt;
use std::sync::Arc;

use fx_nn::file::{Json, SavedMeta};
use fx_nn::ir::{Meta, MetaPolicy};
use fx_nn::{Error, Result};

/// Devices in a grid whose axes have names; an entry of graph modules, which [`shard`](super::shard()) writes and files
/// keep.
///
/// ```
/// use fx_stablehlo::shard::Mesh;
/// let mesh = Mesh::new([("data", 2), ("model", 4)])?;
/// assert_eq!(mesh.devices(), 8);
/// assert_eq!(mesh.to_mlir(), r#"sdy.mesh @mesh = <["data"=2, "model"=4]>"#);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mesh {
    axes: Vec<(Arc<str>, usize)>,
}

/// More devices than this are an error.
const MOST_DEVICES: usize = 1 << 20;

/// Whether a name is a plain identifier.
pub(super) fn is_plain(name: &str) -> bool {
    let mut chars = name.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl Mesh {
    /// A mesh of axes with names and sizes; the first axis is the slowest.
    ///
    /// # Errors
    /// Returns an error that lists every axis without a name or a size, with a name that is no plain
    /// identifier, and with the name of another one.
    pub fn new<N: AsRef<str>>(axes: impl IntoIterator<Item = (N, usize)>) -> Result<Self> {
        let mut mesh = Mesh { axes: Vec::new() };
        let mut problems = Vec::new();
        let mut devices = 1usize;
        for (name, size) in axes {
            let name = name.as_ref();
            if !is_plain(name) {
                problems.push(format!(
                    "{name:?} is no name of an axis: use letters, digits and `_`"
                ));
            } else if mesh.axis(name).is_some() {
                problems.push(format!("the axis `{name}` is there twice"));
            }
            if size == 0 {
                problems.push(format!("the axis {name:?} has no devices"));
            }
            devices = devices.saturating_mul(size.max(1));
            mesh.axes.push((name.into(), size));
        }
        if mesh.axes.is_empty() {
            problems.push("a mesh needs an axis".to_string());
        }
        if devices > MOST_DEVICES {
            problems.push(format!("more than {MOST_DEVICES} devices are too many"));
        }
        match problems.is_empty() {
            true => Ok(mesh),
            false => Err(Error::msg(format_args!("mesh: {}", problems.join("; ")))),
        }
    }

    /// The axes with their sizes.
    pub fn axes(&self) -> impl ExactSizeIterator<Item = (&str, usize)> {
        self.axes.iter().map(|(name, size)| (&**name, *size))
    }

    /// The size of an axis.
    pub fn size(&self, axis: &str) -> Option<usize> {
        self.axis(axis).map(|at| self.axes[at].1)
    }

    /// The number of devices.
    pub fn devices(&self) -> usize {
        self.axes.iter().map(|(_, size)| size).product()
    }

    /// The mesh as an operation of Shardy.
    pub fn to_mlir(&self) -> String {
        let axes = self.axes.iter();
        let axes: Vec<String> = axes
            .map(|(name, size)| format!("\"{name}\"={size}"))
            .collect();
        format!("sdy.mesh @mesh = <[{}]>", axes.join(", "))
    }

    /// The place of an axis.
    pub(super) fn axis(&self, name: &str) -> Option<usize> {
        self.axes.iter().position(|(known, _)| &**known == name)
    }

    pub(super) fn name(&self, axis: usize) -> &Arc<str> {
        &self.axes[axis].0
    }

    /// The number of devices along several axes.
    pub(super) fn product(&self, axes: &[usize]) -> usize {
        axes.iter().map(|axis| self.axes[*axis].1).product()
    }

    /// Where a device is along each axis.
    pub(super) fn place(&self, device: usize) -> Vec<usize> {
        let mut left = device;
        let mut place = vec![0; self.axes.len()];
        for (at, (_, size)) in self.axes.iter().enumerate().rev() {
            place[at] = left % size;
            left /= size;
        }
        place
    }

    /// Which block of a dim a device has, whose axes are these.
    pub(super) fn block(&self, place: &[usize], axes: &[usize]) -> usize {
        let axes = axes.iter();
        axes.fold(0, |block, axis| block * self.axes[*axis].1 + place[*axis])
    }

    /// The devices that differ from one only along these axes, in the order of their blocks.
    pub(super) fn group(&self, device: usize, axes: &[usize]) -> Vec<usize> {
        let here = self.place(device);
        let others = 0..self.devices();
        let mut group: Vec<(usize, usize)> = others
            .filter_map(|other| {
                let place = self.place(other);
                let same = |at: usize| axes.contains(&at) || place[at] == here[at];
                let is_in = (0..place.len()).all(same);
                is_in.then(|| (self.block(&place, axes), other))
            })
            .collect();
        group.sort_unstable();
        group.into_iter().map(|(_, other)| other).collect()
    }
}

impl Meta for Mesh {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
    const IN_PARTS: bool = true;
}

impl SavedMeta for Mesh {
    const NAME: &'static str = "fx_stablehlo::shard::Mesh";

    fn to_saved(&self) -> Result<Json> {
        let axes = self.axes.iter();
        let axes = axes.map(|(name, size)| Json::Array(vec![(&**name).into(), (*size).into()]));
        Ok(Json::Array(axes.collect()))
    }

    fn from_saved(saved: &Json) -> Result<Self> {
        let wrong = || Error::msg("a mesh is a list of axes, each a name and a size");
        let axis = |saved: &Json| {
            let [name, size] = &saved.as_array()?[..] else {
                return None;
            };
            let size = usize::try_from(size.as_u64()?).ok()?;
            Some((name.as_str()?.to_string(), size))
        };
        let axes = saved.as_array().ok_or_else(wrong)?.iter();
        let axes = axes.map(|saved| axis(saved).ok_or_else(wrong));
        Mesh::new(axes.collect::<Result<Vec<_>>>()?)
    }
}

fx_nn::register_meta!(Mesh);

impl fmt::Display for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let axes = self.axes.iter();
        let axes: Vec<String> = axes.map(|(name, size)| format!("{name}={size}")).collect();
        write!(f, "mesh[{}]", axes.join(", "))
    }
}

/// A [`Mesh`] of axes with their sizes.
///
/// ```
/// use fx_stablehlo::shard::mesh;
/// let mesh = mesh!["data" = 2, "model" = 4]?;
/// assert_eq!(mesh.to_string(), "mesh[data=2, model=4]");
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __mesh {
    ($($name:literal = $size:expr),* $(,)?) => {
        $crate::shard::Mesh::new([$(($name, $size)),*])
    };
}
