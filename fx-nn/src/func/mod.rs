//! `torch.func`: functions of functions. Gradients, products with Jacobians, and batches, of functions, modules and
//! graph modules; calls with other parameters, and the parameters of several modules as one.

mod axes;
mod batching;
mod call;
mod control;
mod custom;
mod derivative;
mod ensemble;
mod examples;
mod expand;
mod forward;
pub(crate) mod grad;
mod jacobian;
mod joint;
mod joint_graph;
mod jvp;
pub(crate) mod kinds;
pub(crate) mod known;
mod linearize;
mod min_cut;
mod recompute;
mod region;
mod segments;
pub(crate) mod source;
pub(crate) mod tape;
pub(crate) mod transform;
mod vmap;
mod wrt;

pub use self::axes::{Axes, Randomness};
pub(crate) use self::batching::aligned;
pub use self::batching::{BatchCall, Batching};
pub use self::call::functional_call;
pub use self::custom::{CustomVjp, cotangent_of, custom_vjp, with_vjp};
pub use self::derivative::{Derivative, Pullback};
pub(crate) use self::derivative::{args_of, sum_to};
pub use self::ensemble::stack_module_state;
pub use self::grad::{Grad, Vjp, grad, value_and_grad, vjp};
pub use self::jacobian::{Hessian, JacFwd, JacRev, hessian, jacfwd, jacrev};
pub use self::joint::{SplitJoint, split_joint};
pub use self::jvp::{Jvp, jvp};
pub use self::linearize::linearize;
pub use self::recompute::{Recompute, checkpoint};
pub use self::transform::Transform;
pub use self::vmap::{Vmap, vmap};
pub use self::wrt::{Wrt, parameters};
pub use crate::ops::detach as stop_gradient;
