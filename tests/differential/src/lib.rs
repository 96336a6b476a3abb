//! Calls of every operation, method, operator and layer, compared with what PyTorch gave for them: the calls are JSON
//! lines that `run.py` makes, and a recorded sample of them runs in the tests.

mod activations;
mod agreement;
mod call;
mod claims;
mod documented;
mod excuses;
mod gradients;
mod judge;
mod layers;
mod losses;
mod operators;
mod report;
mod run;
mod shapes;
mod spectral;
mod structure_layers;
mod tensor;

pub use agreement::compiled_agreement;
pub use call::{Arg, Call, Kind, Outcome, recorded, recorded_gradients};
pub use claims::{Claim, ClaimKind, Tally, claims, judged_elsewhere, verify_all};
pub use documented::{Documented, documented};
pub use excuses::{Excuse, excuses, reason};
pub use gradients::gradient_difference;
pub use judge::{Difference, Kind as DifferenceKind};
pub use report::{Report, Tell};
pub use run::{
    Mode, Plant, compared, difference, eager, graph_of, is_plain, layer_arguments, make_layer,
    run_call, wrong,
};
pub use shapes::{Agreement, ask_with, shape_agreement};
pub use tensor::{AnyIndex, Elements, Expected, dense_tensor, elements};
