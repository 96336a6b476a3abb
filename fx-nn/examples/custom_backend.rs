//! A backend in a hundred lines: chains of sums, products and `relu` run as one loop over the elements.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::collections::HashMap;
use std::sync::Arc;

use fx_nn::ir::{Argument, Op, ValueMeta};
use fx_nn::module::Call;
use fx_nn::operator;
use fx_nn::passes::backend::{Backend, Executable, Metas, StepReport, Support};
use fx_nn::passes::{MethodsToFunctions, Region};
use fx_nn::prelude::*;

/// Where an operand of an instruction is.
#[derive(Clone, Copy)]
enum Operand {
    /// A tensor of the part's inputs, by its place.
    Input(usize),
    /// The result of an earlier instruction.
    Register(usize),
    Number(f64),
}

#[derive(Clone, Copy)]
enum Instruction {
    Add(Operand, Operand),
    Mul(Operand, Operand),
    Relu(Operand),
}

/// The code of a part: what is done with each element, and the registers that are its results.
struct Chain {
    instructions: Vec<Instruction>,
    results: Vec<usize>,
    names: Vec<String>,
}

struct Chains;

impl Backend for Chains {
    fn name(&self) -> &str {
        "chains"
    }

    fn supports(&self, call: &Call<'_>, metas: &Metas<'_>) -> Support {
        let known = [operator::add, operator::mul, function!(ops::relu)];
        if !call
            .function()
            .is_some_and(|function| known.contains(&function))
        {
            return Support::no("it is neither a sum, a product nor relu");
        }
        // One loop over the elements: every tensor has the shape of the result.
        let result = metas.result().and_then(ValueMeta::tensor);
        let same = metas
            .inputs()
            .all(|meta| meta.and_then(ValueMeta::tensor) == result);
        match result {
            Some(meta) if meta.dtype == Some(DType::F32) && same => Support::Yes,
            Some(_) => Support::no("its tensors differ in shape or are no float32"),
            None => Support::no("its shape is not known: propagate shapes first"),
        }
    }

    fn worth(&self, _: &GraphModule, part: &Region) -> bool {
        part.nodes().len() >= 2
    }

    fn compile(&self, part: &GraphModule, _: &[Option<ValueMeta>]) -> Result<Arc<dyn Executable>> {
        let mut places = HashMap::new();
        let (mut instructions, mut names) = (Vec::new(), Vec::new());
        for (place, input) in part.graph().placeholders().enumerate() {
            places.insert(input.id(), Operand::Input(place));
        }
        let mut results = Vec::new();
        for node in part.graph().nodes() {
            let operand = |arg: Option<&Argument>| match arg {
                Some(Argument::Node(id)) => places.get(id).copied(),
                Some(Argument::Float(x)) => Some(Operand::Number(*x)),
                Some(Argument::Int(n)) => Some(Operand::Number(*n as f64)),
                _ => None,
            };
            let args = node.args();
            let of = |at: usize| {
                operand(args.get(at))
                    .ok_or_else(|| Error::msg("an operand is no tensor and no number"))
            };
            let instruction = match node.op() {
                Op::CallFunction(f) if *f == operator::add => Instruction::Add(of(0)?, of(1)?),
                Op::CallFunction(f) if *f == operator::mul => Instruction::Mul(of(0)?, of(1)?),
                Op::CallFunction(_) => Instruction::Relu(of(0)?),
                Op::Output => {
                    let given = node
                        .all_input_nodes()
                        .filter_map(|node| places.get(&node.id()));
                    results.extend(given.filter_map(|operand| match operand {
                        Operand::Register(register) => Some(*register),
                        _ => None,
                    }));
                    continue;
                }
                _ => continue,
            };
            places.insert(node.id(), Operand::Register(instructions.len()));
            instructions.push(instruction);
            names.push(node.name().to_string());
        }
        Ok(Arc::new(Chain {
            instructions,
            results,
            names,
        }))
    }
}

impl Executable for Chain {
    fn run(&self, inputs: &[&Value], out: &mut Value) -> Result<()> {
        let tensors: Vec<Tensor> = inputs
            .iter()
            .map(|x| Tensor::from_value((*x).clone()))
            .collect::<Result<_>>()?;
        let first = tensors
            .first()
            .ok_or_else(|| Error::msg("a part has inputs"))?;
        let data: Vec<Vec<f64>> = tensors.iter().map(|x| x.to_vec()).collect::<Result<_>>()?;
        let count = data.iter().map(Vec::len).min().unwrap_or(0);
        let mut results = vec![Vec::with_capacity(count); self.results.len()];
        let mut registers = vec![0f64; self.instructions.len()];
        let mut elements: Vec<_> = data.iter().map(|data| data.iter().copied()).collect();
        for _ in 0..count {
            let here: Vec<f64> = elements.iter_mut().filter_map(Iterator::next).collect();
            for (at, instruction) in self.instructions.iter().enumerate() {
                let of = |operand: Operand| match operand {
                    Operand::Input(input) => here[input],
                    Operand::Register(register) => registers[register],
                    Operand::Number(number) => number,
                };
                registers[at] = match *instruction {
                    Instruction::Add(a, b) => of(a) + of(b),
                    Instruction::Mul(a, b) => of(a) * of(b),
                    Instruction::Relu(a) => of(a).max(0.0),
                };
            }
            for (result, register) in results.iter_mut().zip(&self.results) {
                result.push(registers[*register]);
            }
        }
        let tensors = results
            .into_iter()
            .map(|data| Tensor::from_vec(data, first.dims()?)?.to_dtype(DType::F32));
        let mut values: Vec<Value> = tensors.map(|x| x.map(Value::of)).collect::<Result<_>>()?;
        *out = match values.len() {
            1 => values.swap_remove(0),
            _ => Value::Tuple(values.into()),
        };
        Ok(())
    }

    fn steps(&self) -> Vec<StepReport> {
        vec![StepReport::new("one loop", self.names.clone())]
    }
}

/// Two gated layers.
#[trace]
fn gated(x: &Tensor, weight: &Tensor) -> Result<Tensor> {
    let gate = ((x * 0.5)? + 1.0)?.relu()?;
    let hidden = (x * &gate)?.matmul(weight)?;
    ((&hidden + 1.0)? * &hidden)?.relu()? + 0.25
}

fn main() -> Result<()> {
    fx_nn::manual_seed(0);
    let (x, weight) = (Tensor::randn((4, 8))?, Tensor::randn((8, 8))?);
    let mut gm = symbolic_trace(traced!(gated))?;
    gm.apply(&MethodsToFunctions)?;
    gm.propagate_shapes((&x, &weight))?;
    let expected: Tensor = gm.forward((&x, &weight))?;

    let mut lowered = gm.clone();
    let report = lowered.lower(&Chains)?;
    print!("{report}");
    for part in &report.parts {
        let code = lowered.submodule_as::<GraphModule>(&part.path)?.compiled();
        let steps = code.map(|code| code.steps()).unwrap_or_default();
        let steps: Vec<String> = steps
            .iter()
            .map(|s| format!("{}: {}", s.name, s.nodes.join(", ")))
            .collect();
        println!("{}: {}", part.path, steps.join("; "));
    }
    let found: Tensor = lowered.forward((&x, &weight))?;
    println!(
        "lowered: {}",
        fx_nn::allclose(&found, &expected, 1e-5, 1e-6)?
    );

    // A file holds the source; who loads it lowers again.
    let mut loaded = GraphModule::from_bytes(&lowered.to_bytes()?)?;
    let found: Tensor = loaded.forward((&x, &weight))?;
    println!("loaded: {}", fx_nn::allclose(&found, &expected, 0.0, 0.0)?);
    for part in &report.parts {
        let mut nodes = loaded.graph().nodes();
        let call = nodes.find(|node| node.target() == &*part.path);
        let call = call.map(|node| node.id());
        loaded.inline_module(call.ok_or_else(|| Error::msg("the part is called"))?)?;
    }
    println!(
        "lowered again: {} parts",
        loaded.lower(&Chains)?.parts.len()
    );

    println!("decompiled: {}", lowered.decompile()?);
    println!(
        "as before: {}",
        lowered.structural_hash() == gm.structural_hash()
    );
    Ok(())
}
