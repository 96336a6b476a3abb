//! An array type of one's own, made traceable: fx-core is tied to no tensor library.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use fx_core::prelude::*;
use fx_core::{
    Component, Object, OperandRef, Operator, Traced, Walk, WalkMut, escape, tensor_type,
};

/// Numbers that are known, or stand for a node of a running trace.
#[derive(Debug, Clone)]
enum Array {
    Known(Arc<Vec<f64>>, [usize; 1]),
    Symbolic(Proxy),
}

impl Array {
    fn new(data: &[f64]) -> Self {
        Array::Known(Arc::new(data.to_vec()), [data.len()])
    }

    /// The numbers: what only a run has, so a symbolic array gives an error that names the caller's line.
    #[track_caller]
    fn data(&self) -> Result<&[f64]> {
        match self {
            Array::Known(data, _) => Ok(data),
            Array::Symbolic(proxy) => Err(escape("data", *proxy)),
        }
    }
}

/// What fx asks of any value: how to share it, what it is, and whether it is symbolic.
impl Object for Array {
    fn to_value(&self) -> Value {
        Value::object(self.clone())
    }

    fn object_id(&self) -> Option<u64> {
        match self {
            Array::Known(data, _) => u64::try_from(Arc::as_ptr(data).addr()).ok(),
            Array::Symbolic(_) => None,
        }
    }

    fn shape(&self) -> Option<&[usize]> {
        match self {
            Array::Known(_, shape) => Some(shape),
            Array::Symbolic(_) => None,
        }
    }

    fn proxy(&self) -> Option<Proxy> {
        match self {
            Array::Known(..) => None,
            Array::Symbolic(proxy) => Some(*proxy),
        }
    }

    fn operator(&self, op: Operator, args: &[&Value], out: &mut Value) -> Result<()> {
        let operands: Option<Vec<OperandRef<'_>>> =
            args.iter().map(|v| OperandRef::of(v)).collect();
        let operands = operands.ok_or_else(|| Error::msg("arrays and numbers only"))?;
        *out = Value::object(Array::apply(op, &operands)?);
        Ok(())
    }
}

/// What makes it a tensor type: the symbolic form, and the operators.
impl Traced for Array {
    fn from_proxy(proxy: Proxy) -> Self {
        Array::Symbolic(proxy)
    }

    fn apply(op: Operator, operands: &[OperandRef<'_>]) -> Result<Self> {
        let f: fn(f64, f64) -> f64 = match op {
            Operator::Add => |a, b| a + b,
            Operator::Mul => |a, b| a * b,
            Operator::Gt => |a, b| f64::from(u8::from(a > b)),
            _ => return Err(Error::msg(format_args!("arrays have no `{op}`"))),
        };
        let numbers = |operand: &OperandRef<'_>| -> Result<Vec<f64>> {
            match operand {
                OperandRef::Float(x) => Ok(vec![*x]),
                OperandRef::Int(n) => Ok(vec![*n as f64]),
                other => match other.downcast_ref::<Array>() {
                    Some(array) => Ok(array.data()?.to_vec()),
                    None => Err(Error::msg("arrays and numbers only")),
                },
            }
        };
        let [a, b] = operands else {
            return Err(Error::msg("two operands"));
        };
        let (a, b) = (numbers(a)?, numbers(b)?);
        let n = a.len().max(b.len());
        if [a.len(), b.len()].iter().any(|len| *len != 1 && *len != n) {
            return Err(Error::msg(format_args!(
                "`{op}`: {} and {} numbers do not fit",
                a.len(),
                b.len()
            )));
        }
        let item = |v: &[f64], i: usize| v[if v.len() == 1 { 0 } else { i }];
        let data: Vec<f64> = (0..n).map(|i| f(item(&a, i), item(&b, i))).collect();
        Ok(Array::new(&data))
    }
}

/// What makes it a parameter of modules.
impl Component for Array {
    fn visit(&self, walk: &mut Walk<'_, '_>) {
        walk.tensor(self);
    }

    fn visit_mut(&mut self, walk: &mut WalkMut<'_, '_>) {
        walk.tensor(self);
    }

    fn duplicate(&self) -> Self {
        self.clone()
    }
}

// Conversions, `a + b`, `2.0 * a`, comparisons: all written from the two impls above.
tensor_type!(Array);

/// An operation: one node.
#[wrap]
fn total(x: &Array) -> Result<Float> {
    Ok(x.data()?.iter().sum::<f64>().into())
}

#[derive(Module)]
struct Gate {
    scale: Array,
}

#[trace]
impl Gate {
    fn forward(&self, x: &Array) -> Result<Array> {
        let open = (x > 0.0)?;
        (open * (x * &self.scale)?)? + total(x)?
    }
}

fn main() -> Result<()> {
    let gate = Gate {
        scale: Array::new(&[2.0, 3.0]),
    };
    let traced = symbolic_trace(&gate)?;
    println!("{}\n\n{}", traced.graph(), traced.code());

    let x = Array::new(&[1.5, -1.0]);
    let eager = gate.forward(&x)?;
    let again: Array = traced.forward(&x)?;
    println!("eager {:?}, traced {:?}", eager.data()?, again.data()?);
    assert_eq!(eager.data()?, again.data()?);
    Ok(())
}
