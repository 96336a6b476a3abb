//! Faults that are planted on purpose: the judge has to see each of them.
//!
//! Invariant: a fault is planted into what a path runs, and never into the eager run that it is compared with.

use fx_nn::module::ComponentExt;
use fx_nn::passes::Decompositions;
use fx_nn::prelude::*;
use fx_nn::{Bound, Error, GraphModule, Result};
use fx_onnx::proto::ModelProto;
use prost::Message;

use crate::generate::Case;
use crate::program::{Body, End, Number, Part, Results, Step, Test};

/// A planted fault by name, or none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plant(pub String);

impl Plant {
    /// The faults.
    pub const ALL: [&str; 14] = [
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
        "subgradient",
        "onnx",
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
        if self.is("decomposition") {
            return Ok(core.rule(function!(ops::softplus), |call| {
                let x: Tensor = call.arg("x")?;
                ops::relu(&x)
            }));
        }
        if self.is("subgradient") {
            // At bounds PyTorch's gradient is 0, at 0 it is the slope; here it is 1.
            return Ok(core
                .rule(function!(ops::leaky_relu), |call| {
                    let x: Tensor = call.arg("x")?;
                    let slope: f64 = call.arg("negative_slope")?;
                    ops::r#where(&x.ge(0)?, &x, &(&x * slope)?)
                })
                .rule(function!(ops::relu6), |call| {
                    let x: Tensor = call.arg("x")?;
                    ops::clamp(&x, 0, 6)
                })
                .rule(function!(ops::hardtanh), |call| {
                    let x: Tensor = call.arg("x")?;
                    let low: Bound = call.arg("min_val")?;
                    let high: Bound = call.arg("max_val")?;
                    ops::clamp(&x, low, high)
                }));
        }
        Ok(core)
    }

    /// A file of ONNX; `onnx` exchanges the operands of its differences and quotients.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn onnx(&self, file: Vec<u8>) -> Result<Vec<u8>> {
        if !self.is("onnx") {
            return Ok(file);
        }
        let mut model = ModelProto::decode(&*file).map_err(Error::other)?;
        let graph = model.graph.iter_mut();
        for node in graph.flat_map(|graph| &mut graph.node) {
            if ["Sub", "Div"].contains(&&*node.op_type) {
                node.input.reverse();
            }
        }
        Ok(model.encode_to_vec())
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
                        && let Test::Compare(_, op, _) = test
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
