//! Faults that are planted on purpose: the judge has to see each of them.
//!
//! Invariant: a fault is planted into what a path runs, and never into the eager run that it is compared with.

use fx_nn::module::ComponentExt;
use fx_nn::passes::Decompositions;
use fx_nn::prelude::*;
use fx_nn::{GraphModule, Result};

use crate::generate::Case;
use crate::program::{Body, End, Number, Part, Results, Step};

/// A planted fault by name, or none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plant(pub String);

impl Plant {
    /// The faults.
    pub const ALL: [&str; 12] = [
        "branches",
        "operands",
        "ellipsis",
        "step",
        "iteration",
        "carried",
        "size",
        "result",
        "constant",
        "decomposition",
        "train",
        "comparison",
    ];

    fn is(&self, name: &str) -> bool {
        self.0 == name
    }

    /// The decompositions; `decomposition` makes one of them wrong.
    ///
    /// # Errors
    /// Returns an error if they cannot be read.
    pub fn decompositions(&self) -> Result<Decompositions> {
        let core = Decompositions::core()?;
        Ok(match self.is("decomposition") {
            true => core.rule(function!(ops::softplus), |call| {
                let x: Tensor = call.arg("x")?;
                ops::relu(&x)
            }),
            false => core,
        })
    }

    /// Sets a compiled module to training; `train` forgets it.
    pub fn train(&self, gm: &mut GraphModule) {
        if !self.is("train") {
            gm.train();
        }
    }

    /// The case as a path runs it.
    pub fn planted(&self, case: &Case) -> Case {
        let mut case = case.clone();
        if self.0.is_empty() {
            return case;
        }
        self.steps(&mut case.program.steps);
        if self.is("result")
            && let Results::Flat(ids) = &mut case.program.results
        {
            ids.reverse();
        }
        if self.is("constant") {
            for constant in &mut case.program.constants {
                if constant
                    .dtype()
                    .is_ok_and(|dtype| dtype.is_floating_point())
                    && let Ok(moved) = &*constant * 1.01
                {
                    *constant = moved;
                }
            }
        }
        case
    }

    fn steps(&self, steps: &mut [Step]) {
        for step in steps {
            match step {
                Step::Call { from, .. } if self.is("operands") && from.len() > 1 => from.swap(0, 1),
                Step::Index(_, parts, _) => parts.iter_mut().for_each(|part| self.part(part)),
                Step::Cond(test, sides, _) => {
                    if self.is("branches") {
                        sides.reverse();
                    }
                    if self.is("comparison")
                        && let crate::program::Test::Compare(_, op, _) = test
                    {
                        *op = match *op {
                            ">" => ">=",
                            "<" => "<=",
                            ">=" => ">",
                            "<=" => "<",
                            "==" => "<=",
                            _ => ">",
                        };
                    }
                    sides.iter_mut().for_each(|side| self.body(side));
                }
                Step::While(_, carried, body, _) => {
                    if self.is("iteration") {
                        body.steps.truncate(0);
                        body.results.clone_from(&body.inputs);
                    }
                    debug_assert_eq!(carried.len(), body.results.len());
                    self.body(body);
                }
                Step::Scan(_, carried, body, _) => {
                    if self.is("carried") {
                        body.results[..carried.len()]
                            .clone_from_slice(&body.inputs[..carried.len()]);
                    }
                    self.body(body);
                }
                _ => {}
            }
        }
    }

    fn body(&self, body: &mut Body) {
        self.steps(&mut body.steps);
    }

    fn part(&self, part: &mut Part) {
        match part {
            Part::Ellipsis if self.is("ellipsis") => *part = Part::NewAxis,
            Part::Slice(_, _, step) if self.is("step") => *step = 1,
            Part::Slice(_, End::Of(Number::Size(_, _, plus)), _) if self.is("size") => *plus -= 1,
            _ => {}
        }
    }
}
