//! A custom array type, made traceable: fx-core is tied to no tensor library, and generated source
//! has the array type's own names.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use fx_core::module::{Component, Walk, WalkMut};
use fx_core::prelude::*;
use fx_core::tensor::tensor_type;
use fx_core::tensor::{
    IndexSource, Object, Operand, OperandRef, TensorData, TensorSource, Traced, binary, escape,
};
use fx_core::value::{IntoValue, Operator, Proxy};
use fx_core::{operator, register_tensor};

/// Known numbers, or the symbol of a node of a running trace.
#[derive(Debug, Clone)]
pub enum Array {
    /// The numbers, and the shape.
    Known(Arc<Vec<f64>>, [usize; 1]),
    /// Their symbol in a trace.
    Symbolic(Proxy),
}

impl Array {
    /// An array of numbers.
    pub fn new(data: &[f64]) -> Self {
        Array::Known(Arc::new(data.to_vec()), [data.len()])
    }

    /// The numbers, which only a run has: a symbolic array returns an error that names the caller's
    /// line.
    ///
    /// # Errors
    /// Returns an error if the array is symbolic.
    #[track_caller]
    pub fn data(&self) -> Result<&[f64]> {
        match self {
            Array::Known(data, _) => Ok(data),
            Array::Symbolic(proxy) => Err(escape("data", *proxy)),
        }
    }

    /// The numbers from one index up to another: `x[from:to]` in Python. Recorded if the array is
    /// symbolic.
    ///
    /// # Errors
    /// Returns an error if there are no such indices.
    #[track_caller]
    pub fn cut(&self, from: impl Into<Int>, to: impl Into<Int>) -> Result<Array> {
        let (from, to) = (from.into().into_value(), to.into().into_value());
        let ends = Value::Slice(Box::new([from, to, Value::None]));
        operator::getitem.call_as((self, ends))
    }

    /// Each number to a power: `x ** exponent` in Python.
    ///
    /// # Errors
    /// Returns an error if the numbers do not fit.
    #[track_caller]
    pub fn raised(&self, exponent: impl Operand) -> Result<Array> {
        binary(Operator::Pow, &self, &exponent)
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

    fn to_data(&self) -> Result<TensorData<'_>> {
        let data = self.data()?;
        let bytes: Vec<u8> = data.iter().flat_map(|x| x.to_le_bytes()).collect();
        TensorData::new(PATH, DType::F64, vec![data.len()], bytes)
    }

    fn operator(&self, op: Operator, args: &[&Value], out: &mut Value) -> Result<()> {
        if let (Operator::Getitem, [_, Value::Slice(ends)]) = (op, args) {
            let [Value::Int(from), Value::Int(to), Value::None] = **ends else {
                return Err(Error::msg("arrays are cut from a place to a place"));
            };
            let place = |at: i64| usize::try_from(at).unwrap_or(usize::MAX);
            let cut = self.data()?.get(place(from)..place(to));
            let cut = cut.ok_or_else(|| Error::msg("an array has no such places"))?;
            *out = Value::object(Array::new(cut));
            return Ok(());
        }
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
            Operator::Pow => f64::powf,
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

/// The path by which files and generated source know the type.
const PATH: &str = "foreign_tensor::Array";

// What files and generated source need: how to make arrays from bytes, and the names of operations.
register_tensor!(
    Array,
    PATH,
    |data| {
        let numbers: Vec<f64> = data.elements()?.collect();
        Ok(Value::object(Array::new(&numbers)))
    },
    source = Names,
);

/// Names of operations that Rust has no operator for. Any other is written as a plain call.
struct Names;

impl TensorSource for Names {
    fn index(&self, array: &str, index: &IndexSource) -> Option<String> {
        match index {
            IndexSource::Slice([Some(from), Some(to), None]) => {
                Some(format!("{array}.cut({from}, {to})"))
            }
            _ => None,
        }
    }

    fn operator(&self, op: Operator, operands: &[&str]) -> Option<String> {
        match (op, operands) {
            (Operator::Pow, [array, exponent]) => Some(format!("{array}.raised({exponent})")),
            _ => None,
        }
    }
}

/// An operation: one node.
///
/// # Errors
/// Returns an error if the array is symbolic where nothing traces.
#[wrap(path = "foreign_tensor::total")]
pub fn total(x: &Array) -> Result<Float> {
    Ok(x.data()?.iter().sum::<f64>().into())
}

/// Lets positive numbers through, scaled.
#[derive(Module)]
pub struct Gate {
    /// The scale.
    pub scale: Array,
}

#[trace]
impl Gate {
    /// The numbers of the gate.
    ///
    /// # Errors
    /// Returns an error if the array is of another length.
    pub fn forward(&self, x: &Array) -> Result<Array> {
        let open = (x > 0.0)?;
        let gated = (open * (x * &self.scale)?)?;
        gated.raised(2.0)?.cut(0, 1)? + total(x)?
    }
}

fn main() -> Result<()> {
    let gate = Gate {
        scale: Array::new(&[2.0, 3.0]),
    };
    let traced = symbolic_trace(&gate)?;
    println!("{}\n\n{}", traced.graph(), traced.code());
    // The array type's names stand in its source, as its users write them.
    assert!(traced.code().contains("let pow = mul_1.raised(2.0)?;"));
    assert!(traced.code().contains("let getitem = pow.cut(0, 1)?;"));

    let x = Array::new(&[1.5, -1.0]);
    let eager = gate.forward(&x)?;
    let again: Array = traced.forward(&x)?;
    println!("eager {:?}, traced {:?}", eager.data()?, again.data()?);
    assert_eq!(eager.data()?, again.data()?);
    Ok(())
}
