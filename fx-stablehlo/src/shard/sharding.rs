//! `Sharding`: how one value is split, an entry of its node.
//!
//! Invariant: an axis stands once in a sharding.

use std::fmt;

use fx_nn::file::{Json, SavedMeta};
use fx_nn::ir::{Meta, MetaPolicy};
use fx_nn::prelude::*;
use serde_json::json;

use super::mesh::Mesh;

/// How a dim is split.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Split {
    /// The axes over which it is split, the slowest first.
    pub axes: Vec<String>,
    /// Whether it may be split further.
    pub open: bool,
}

/// How a value is split over a mesh: an entry of its node.
///
/// ```
/// use fx_stablehlo::{mesh, shard::{Sharding, Split}};
/// let mesh = mesh!["data" = 2, "model" = 4]?;
/// let split = |axes: &[&str]| Split { axes: axes.iter().map(|a| a.to_string()).collect(), open: false };
/// let sharding = Sharding::new(&mesh, [split(&["data"]), split(&[])])?;
/// assert_eq!(sharding.to_string(), "[data, _]");
/// assert_eq!(sharding.to_mlir(), r#"#sdy.sharding<@mesh, [{"data"}, {}]>"#);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharding {
    mesh: Mesh,
    dims: Vec<Split>,
}

impl Sharding {
    /// A sharding of a value with these dims.
    ///
    /// # Errors
    /// Returns an error if the mesh has no such axis, or an axis stands twice.
    pub fn new(mesh: &Mesh, dims: impl IntoIterator<Item = Split>) -> Result<Self> {
        let dims: Vec<Split> = dims.into_iter().collect();
        let all: Vec<&String> = dims.iter().flat_map(|dim| &dim.axes).collect();
        for (at, axis) in all.iter().enumerate() {
            if mesh.size(axis).is_none() {
                return Err(Error::msg(format_args!(
                    "the mesh {mesh} has no axis {axis:?}"
                )));
            }
            if all[..at].contains(axis) {
                return Err(Error::msg(format_args!(
                    "the axis {axis:?} splits two dims of one value"
                )));
            }
        }
        Ok(Sharding {
            mesh: mesh.clone(),
            dims,
        })
    }

    /// One that says nothing yet.
    pub(crate) fn open(mesh: &Mesh, rank: usize) -> Self {
        let open = Split {
            axes: Vec::new(),
            open: true,
        };
        Sharding {
            mesh: mesh.clone(),
            dims: vec![open; rank],
        }
    }

    /// The mesh.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// How each dim is split.
    pub fn dims(&self) -> &[Split] {
        &self.dims
    }

    /// The number of parts that the value is in.
    pub fn parts(&self) -> usize {
        self.dims
            .iter()
            .map(|dim| self.mesh.parts(&dim.axes))
            .product()
    }

    /// Splits a dim over axes, if it is open and none of them is used.
    pub(crate) fn learn(&mut self, dim: usize, axes: &[String]) -> bool {
        let used = |axis: &String| self.dims.iter().any(|dim| dim.axes.contains(axis));
        let is_free =
            self.dims[dim].open && self.dims[dim].axes.is_empty() && !axes.iter().any(used);
        if is_free {
            self.dims[dim].axes = axes.to_vec();
        }
        is_free && !axes.is_empty()
    }

    /// The attribute of Shardy.
    pub fn to_mlir(&self) -> String {
        let dims = self.dims.iter().map(|dim| {
            let mut parts: Vec<String> =
                dim.axes.iter().map(|axis| format!("\"{axis}\"")).collect();
            if dim.open {
                parts.push("?".to_string());
            }
            format!("{{{}}}", parts.join(", "))
        });
        format!(
            "#sdy.sharding<@mesh, [{}]>",
            dims.collect::<Vec<_>>().join(", ")
        )
    }
}

impl fmt::Display for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims = self.dims.iter().map(|dim| match &*dim.axes {
            [] => "_".to_string(),
            axes => axes.join("+"),
        });
        write!(f, "[{}]", dims.collect::<Vec<_>>().join(", "))
    }
}

impl Meta for Sharding {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    const ON_REPLACE: MetaPolicy = MetaPolicy::Drop;
}

impl SavedMeta for Sharding {
    const NAME: &'static str = "fx_stablehlo::shard::Sharding";

    fn to_saved(&self) -> Result<Json> {
        let mesh: Vec<Json> = self
            .mesh
            .axes()
            .map(|(name, size)| json!([name, size]))
            .collect();
        let dims: Vec<Json> = self
            .dims
            .iter()
            .map(|dim| json!([dim.axes, dim.open]))
            .collect();
        Ok(json!({ "mesh": mesh, "dims": dims }))
    }

    fn from_saved(saved: &Json) -> Result<Self> {
        let wrong = || Error::msg("a sharding is a mesh and the axes of dims");
        let list = |of: &Json| of.as_array().cloned().ok_or_else(wrong);
        let text = |of: &Json| of.as_str().map(str::to_string).ok_or_else(wrong);
        let mut axes = Vec::new();
        for axis in list(&saved["mesh"])? {
            let size = axis[1].as_u64().and_then(|size| usize::try_from(size).ok());
            axes.push((text(&axis[0])?, size.ok_or_else(wrong)?));
        }
        let mut dims = Vec::new();
        for dim in list(&saved["dims"])? {
            let axes = list(&dim[0])?.iter().map(text).collect::<Result<_>>()?;
            dims.push(Split {
                axes,
                open: dim[1].as_bool().ok_or_else(wrong)?,
            });
        }
        Sharding::new(&Mesh::new(axes)?, dims)
    }
}

fx_nn::register_meta!(Sharding);
