//! `FakeTensor`: shape, type and device of a tensor without data; and the number of a size that is
//! known by name alone, outside of any trace.
//!
//! Invariant: equal expressions are one number, so that the table is as large as what is different.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

use super::device::Device;
use super::dim::Dim;
use super::dtype::DType;
use super::handle::{NodeId, Proxy, TraceId};
use super::object::Object;
use super::value::Value;

/// A tensor without data: what a tensor type holds for one that is made by its shape
/// ([`Traced::from_fake`](crate::tensor::Traced::from_fake)). A clone is the same tensor.
#[derive(Clone)]
pub struct FakeTensor(Arc<Content>);

struct Content {
    dims: Vec<Dim>,
    /// The sizes, if all are known.
    shape: Option<Vec<usize>>,
    dtype: Option<DType>,
    device: Option<Device>,
    requires_grad: bool,
}

impl FakeTensor {
    /// A tensor of these sizes.
    pub fn new(dims: Vec<Dim>, dtype: Option<DType>, device: Option<Device>) -> Self {
        FakeTensor(Arc::new(Content {
            shape: Dim::all_known(&dims),
            dims,
            dtype,
            device,
            requires_grad: false,
        }))
    }

    /// Another tensor like this, of which gradients are computed, or not.
    #[must_use]
    pub fn with_grad(&self, requires_grad: bool) -> Self {
        let Content {
            dims,
            shape,
            dtype,
            device,
            ..
        } = &*self.0;
        FakeTensor(Arc::new(Content {
            dims: dims.clone(),
            shape: shape.clone(),
            dtype: *dtype,
            device: *device,
            requires_grad,
        }))
    }

    /// The sizes.
    pub fn dims(&self) -> &[Dim] {
        &self.0.dims
    }

    /// The sizes, if all are known.
    pub fn shape(&self) -> Option<&[usize]> {
        self.0.shape.as_deref()
    }

    /// The element type.
    pub fn dtype(&self) -> Option<DType> {
        self.0.dtype
    }

    /// The device.
    pub fn device(&self) -> Option<Device> {
        self.0.device
    }

    /// Whether gradients are computed for it.
    pub fn requires_grad(&self) -> bool {
        self.0.requires_grad
    }

    /// The identity: equal for clones alone.
    pub fn id(&self) -> u64 {
        Arc::as_ptr(&self.0).addr() as u64
    }
}

impl fmt::Debug for FakeTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dtype = self.0.dtype.map_or("", DType::name);
        write!(f, "fake {dtype}{:?}", self.0.dims)
    }
}

impl Object for FakeTensor {
    fn to_value(&self) -> Value {
        Value::object(self.clone())
    }

    fn object_id(&self) -> Option<u64> {
        Some(self.id())
    }

    fn shape(&self) -> Option<&[usize]> {
        FakeTensor::shape(self)
    }

    fn dims(&self) -> Option<Cow<'_, [Dim]>> {
        Some(Cow::Borrowed(&self.0.dims))
    }

    fn requires_grad(&self) -> Option<bool> {
        Some(self.0.requires_grad)
    }

    fn device(&self) -> Option<Device> {
        self.0.device
    }

    fn dtype(&self) -> Option<DType> {
        self.0.dtype
    }

    fn is_fake(&self) -> bool {
        true
    }
}

/// The trace that no trace is: its proxies are numbers without a value.
const NO_TRACE: TraceId = TraceId(u32::MAX);

/// Numbers of which nothing is known.
const FLOAT: u32 = u32::MAX;
const BOOL: u32 = u32::MAX - 1;

static SIZES: LazyLock<Mutex<IndexSet<Dim, FxBuildHasher>>> = LazyLock::new(Mutex::default);

/// A number that is known by name alone, or not at all.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FakeNumber {
    /// A whole number.
    Size(Dim),
    Float,
    Bool,
}

impl FakeNumber {
    /// The number as a value; a size that is a number is itself.
    pub fn into_value(self) -> Value {
        let index = match self {
            FakeNumber::Float => FLOAT,
            FakeNumber::Bool => BOOL,
            FakeNumber::Size(dim) => match dim.as_number() {
                Some(number) => return Value::Int(number),
                None => {
                    let mut sizes = SIZES.lock().unwrap_or_else(PoisonError::into_inner);
                    let (index, _) = sizes.insert_full(dim);
                    u32::try_from(index).unwrap_or(BOOL - 1)
                }
            },
        };
        let stamp = NonZeroU32::MAX;
        Value::Proxy(Proxy {
            node: NodeId { index, stamp },
            trace: NO_TRACE,
        })
    }

    /// The number that a proxy is, unless it is a node of a trace.
    pub fn of(proxy: Proxy) -> Option<Self> {
        if !proxy.is_fake() {
            return None;
        }
        Some(match proxy.node.index {
            FLOAT => FakeNumber::Float,
            BOOL => FakeNumber::Bool,
            index => {
                let sizes = SIZES.lock().unwrap_or_else(PoisonError::into_inner);
                FakeNumber::Size(sizes.get_index(index as usize)?.clone())
            }
        })
    }
}

impl fmt::Display for FakeNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FakeNumber::Size(dim) => dim.fmt(f),
            FakeNumber::Float => f.write_str("a float"),
            FakeNumber::Bool => f.write_str("a bool"),
        }
    }
}

impl Proxy {
    /// Whether it is a number of fake tensors, such as a size with a name, and no node of a trace.
    pub fn is_fake(self) -> bool {
        self.trace == NO_TRACE
    }
}
