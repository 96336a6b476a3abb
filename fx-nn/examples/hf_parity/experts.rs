//! `Experts`: counts the experts whose products a run computes.

use fx_nn::ir::Function;
use fx_nn::prelude::*;
use fx_nn::run::{Interpretation, Interpreter};
use fx_nn::trace::CallArgs;

/// Of the layers with experts, how many experts were computed, and how many there are.
#[derive(Default)]
pub struct Experts {
    pub computed: usize,
    pub all: usize,
}

/// Each expert has three products: of its gate, of what it gates, and back.
const PRODUCTS: usize = 3;

impl Experts {
    /// Counts the groups that have rows.
    fn count(&mut self, ends: &Tensor) -> Result<()> {
        let mut start = 0.0;
        for end in ends.to_vec()? {
            self.computed += usize::from(end > start);
            self.all += 1;
            start = end;
        }
        Ok(())
    }
}

impl Interpreter for Experts {
    fn call_function(
        &mut self,
        run: &mut Interpretation<'_>,
        function: Function,
        call: CallArgs,
    ) -> Result<Value> {
        if function == function!(ops::grouped_mm) {
            let ends = call.kwargs.iter().find(|(name, _)| &**name == "offs");
            let ends = ends.map(|(_, value)| value).or(call.args.get(2));
            let ends = ends.and_then(|value| value.downcast_ref::<Tensor>());
            let ends = ends.ok_or_else(|| Error::msg("grouped_mm without `offs`"))?;
            self.count(ends)?;
        }
        run.call_function(function, call)
    }
}

impl std::fmt::Display for Experts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.computed / PRODUCTS, self.all / PRODUCTS)
    }
}
