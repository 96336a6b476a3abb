//! `Sharding`: the axes of a mesh that share the dims of a value; an axis is used at most once in a value.

use std::fmt;
use std::sync::Arc;

use fx_nn::file::{Json, JsonMap, SavedMeta};
use fx_nn::ir::{Meta, MetaPolicy};
use fx_nn::{Error, Result};

use super::mesh::is_plain;

/// The axes that share one dim, the slowest first, and whether it is open to more.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DimSharding {
    /// Names of axes of the mesh.
    pub axes: Vec<Arc<str>>,
    /// Whether propagation may add axes.
    pub open: bool,
}

impl DimSharding {
    /// A dim that each device has in full: `_` in rules.
    pub fn replicated() -> Self {
        Self::default()
    }

    /// A dim that propagation decides about: `?` in rules.
    pub fn open() -> Self {
        DimSharding {
            axes: Vec::new(),
            open: true,
        }
    }

    /// A dim that is shared along these axes.
    pub fn axes<A: AsRef<str>>(axes: impl IntoIterator<Item = A>) -> Self {
        DimSharding {
            axes: axes.into_iter().map(|axis| axis.as_ref().into()).collect(),
            open: false,
        }
    }
}

impl From<&str> for DimSharding {
    fn from(axis: &str) -> Self {
        DimSharding::axes([axis])
    }
}

impl fmt::Display for DimSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.axes {
            [] => f.write_str("_"),
            [axis] => f.write_str(axis),
            axes => write!(f, "({})", axes.join(", ")),
        }
    }
}

/// How a value is shared among the devices of a mesh, dim by dim: an entry of nodes, which
/// [`shard`](super::shard()) writes and files keep. A node whose value is several tensors has one for all of them.
///
/// ```
/// use fx_stablehlo::shard::{DimSharding, Sharding};
/// let open = DimSharding { open: true, ..DimSharding::axes(["model"]) };
/// let sharding = Sharding::new([DimSharding::axes(["data"]), open, DimSharding::open()]);
/// assert_eq!(sharding.to_string(), "[data, model, _]");
/// assert_eq!(sharding.to_mlir(), r#"#sdy.sharding<@mesh, [{"data"}, {"model", ?}, {?}]>"#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharding {
    dims: Vec<DimSharding>,
}

impl Sharding {
    /// A sharding, dim by dim.
    pub fn new(dims: impl IntoIterator<Item = DimSharding>) -> Self {
        Sharding {
            dims: dims.into_iter().collect(),
        }
    }

    /// The dims.
    pub fn dims(&self) -> &[DimSharding] {
        &self.dims
    }

    /// Whether each device has the whole value.
    pub fn is_replicated(&self) -> bool {
        self.dims.iter().all(|dim| dim.axes.is_empty())
    }

    /// The sharding as an attribute of Shardy. Names that are no plain identifiers, which no mesh has, are left out.
    pub fn to_mlir(&self) -> String {
        let dim = |dim: &DimSharding| {
            let plain = dim.axes.iter().filter(|axis| is_plain(axis));
            let mut parts: Vec<String> = plain.map(|axis| format!("\"{axis}\"")).collect();
            if dim.open {
                parts.push("?".to_string());
            }
            format!("{{{}}}", parts.join(", "))
        };
        let dims: Vec<String> = self.dims.iter().map(dim).collect();
        format!("#sdy.sharding<@mesh, [{}]>", dims.join(", "))
    }
}

impl fmt::Display for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> = self.dims.iter().map(DimSharding::to_string).collect();
        write!(f, "[{}]", dims.join(", "))
    }
}

impl Meta for Sharding {
    const ON_COPY: MetaPolicy = MetaPolicy::Copy;
    // What replaces a value may be propagated again.
    const ON_REPLACE: MetaPolicy = MetaPolicy::Copy;
    const IN_PARTS: bool = true;
}

impl SavedMeta for Sharding {
    const NAME: &'static str = "fx_stablehlo::shard::Sharding";

    fn to_saved(&self) -> Result<Json> {
        let dims = self.dims.iter().map(|dim| {
            let axes = dim.axes.iter().map(|axis| Json::from(&**axis)).collect();
            let mut saved = JsonMap::new();
            saved.insert("axes".into(), Json::Array(axes));
            saved.insert("open".into(), Json::from(dim.open));
            Json::Object(saved)
        });
        Ok(Json::Array(dims.collect()))
    }

    fn from_saved(saved: &Json) -> Result<Self> {
        let wrong = || Error::msg("a sharding is a list of dims, each with `axes` and `open`");
        let dim = |saved: &Json| {
            let axes = saved.get("axes").and_then(Json::as_array)?.iter();
            let axes = axes.map(|axis| axis.as_str().filter(|axis| is_plain(axis)));
            Some(DimSharding {
                axes: axes
                    .map(|axis| Some(Arc::from(axis?)))
                    .collect::<Option<_>>()?,
                open: saved.get("open").and_then(Json::as_bool)?,
            })
        };
        let dims = saved.as_array().ok_or_else(wrong)?.iter();
        let dims = dims.map(|saved| dim(saved).ok_or_else(wrong));
        Ok(Sharding {
            dims: dims.collect::<Result<_>>()?,
        })
    }
}

fx_nn::register_meta!(Sharding);
