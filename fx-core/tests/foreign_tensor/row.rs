//! Rows of numbers: a tensor type without names of its own.

use fx_core::module::{Component, Walk, WalkMut};
use fx_core::prelude::*;
use fx_core::tensor::{Object, OperandRef, TensorData, Traced, escape};
use fx_core::value::{IntoValue, Operator, Proxy};
use fx_core::{operator, register_tensor, tensor_type};

/// Numbers, or their symbol in a trace.
#[derive(Debug, Clone)]
pub enum Row {
    /// The numbers, and the shape.
    Known(Vec<f64>, [usize; 1]),
    /// Their symbol.
    Symbolic(Proxy),
}

impl Row {
    /// A row of numbers.
    pub fn new(data: &[f64]) -> Self {
        Row::Known(data.to_vec(), [data.len()])
    }

    /// The numbers, which only a run has.
    ///
    /// # Errors
    /// Returns an error if the row is symbolic.
    #[track_caller]
    pub fn data(&self) -> Result<&[f64]> {
        match self {
            Row::Known(data, _) => Ok(data),
            Row::Symbolic(proxy) => Err(escape("data", *proxy)),
        }
    }

    fn part(&self, index: &Value) -> Result<Row> {
        let data = self.data()?;
        Ok(match index {
            Value::Int(at) => Row::new(&[data[usize::try_from(*at).map_err(Error::other)?]]),
            Value::Slice(ends) => {
                let [from, _, step] = [0, 1, 2].map(|at| match &ends[at] {
                    Value::Int(n) => usize::try_from(*n).unwrap_or(0),
                    _ => 0,
                });
                let kept = data.iter().skip(from).step_by(step.max(1));
                Row::new(&kept.copied().collect::<Vec<_>>())
            }
            Value::Tuple(parts) => match &**parts {
                [Value::Ellipsis, part, Value::None] => self.part(part)?,
                other => return Err(Error::msg(format_args!("no index: {other:?}"))),
            },
            other => return Err(Error::msg(format_args!("no index: {other:?}"))),
        })
    }
}

impl Object for Row {
    fn to_value(&self) -> Value {
        Value::object(self.clone())
    }

    fn shape(&self) -> Option<&[usize]> {
        match self {
            Row::Known(_, shape) => Some(shape),
            Row::Symbolic(_) => None,
        }
    }

    fn proxy(&self) -> Option<Proxy> {
        match self {
            Row::Known(..) => None,
            Row::Symbolic(proxy) => Some(*proxy),
        }
    }

    fn to_data(&self) -> Result<TensorData<'_>> {
        let data = self.data()?;
        let bytes: Vec<u8> = data.iter().flat_map(|x| x.to_le_bytes()).collect();
        TensorData::new("foreign_tensor::Row", DType::F64, vec![data.len()], bytes)
    }

    fn operator(&self, op: Operator, args: &[&Value], out: &mut Value) -> Result<()> {
        *out = match (op, args) {
            (Operator::Getitem, [_, index]) => Value::object(self.part(index)?),
            _ => {
                let operands: Option<Vec<_>> = args.iter().map(|v| OperandRef::of(v)).collect();
                let operands = operands.ok_or_else(|| Error::msg("rows and numbers only"))?;
                Value::object(Row::apply(op, &operands)?)
            }
        };
        Ok(())
    }
}

impl Traced for Row {
    fn from_proxy(proxy: Proxy) -> Self {
        Row::Symbolic(proxy)
    }

    fn apply(op: Operator, operands: &[OperandRef<'_>]) -> Result<Self> {
        let numbers = |operand: &OperandRef<'_>| -> Result<Vec<f64>> {
            match operand {
                OperandRef::Float(x) => Ok(vec![*x]),
                OperandRef::Int(n) => Ok(vec![*n as f64]),
                other => match other.downcast_ref::<Row>() {
                    Some(row) => Ok(row.data()?.to_vec()),
                    None => Err(Error::msg("rows and numbers only")),
                },
            }
        };
        let f: fn(f64, f64) -> f64 = match op {
            Operator::Add => |a, b| a + b,
            Operator::Mul | Operator::Matmul => |a, b| a * b,
            Operator::Pow => f64::powf,
            Operator::Floordiv => |a, b| (a / b).floor(),
            Operator::Abs => |a, _| a.abs(),
            _ => return Err(Error::msg(format_args!("rows have no `{op}`"))),
        };
        let a = numbers(&operands[0])?;
        let b = operands.get(1).map_or(Ok(vec![0.0]), numbers)?;
        let n = a.len().max(b.len());
        let item = |v: &[f64], i: usize| v[if v.len() == 1 { 0 } else { i }];
        let data: Vec<f64> = (0..n).map(|i| f(item(&a, i), item(&b, i))).collect();
        Ok(Row::new(&data))
    }
}

impl Component for Row {
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

tensor_type!(Row);

register_tensor!(Row, "foreign_tensor::Row", |data| {
    let numbers: Vec<f64> = data.elements()?.collect();
    Ok(Value::object(Row::new(&numbers)))
});

/// Two results of one call.
///
/// # Errors
/// Returns an error if the row is symbolic where nothing traces.
#[wrap(path = "foreign_tensor::halves")]
pub fn halves(x: &Row) -> Result<(Row, Row)> {
    let (a, b) = x.data()?.split_at(x.data()?.len() / 2);
    Ok((Row::new(a), Row::new(b)))
}

/// Each operation that Rust has no operator for, on rows: an index of every kind, operators, an
/// attribute.
///
/// # Errors
/// Returns an error if there is no such place.
#[trace]
pub fn every_form(x: &Row, n: Int) -> Result<(Row, Int)> {
    let index = |x: &Row, at: Value| operator::getitem.call_as::<Row>((x, at));
    let slice = |ends: [Value; 3]| Value::Slice(Box::new(ends));
    let first = index(x, Value::Int(0))?;
    let last = operator::getitem.call_as::<Row>((x, n))?;
    let even = index(x, slice([Value::None, Value::None, Value::Int(2)]))?;
    let parts = [
        Value::Ellipsis,
        slice([n.into_value(), Value::None, Value::None]),
        Value::None,
    ];
    let rest = index(x, Value::Tuple(Box::new(parts)))?;
    let (a, b) = halves(&even)?;
    let power = fx_core::tensor::binary::<Row>(Operator::Pow, &x, &2.0)?;
    let raised = fx_core::tensor::binary::<Row>(Operator::Pow, &2.0, &power)?;
    let product = fx_core::tensor::binary::<Row>(Operator::Matmul, &raised, &first)?;
    let whole = fx_core::tensor::binary::<Row>(Operator::Floordiv, &product, &n)?;
    let positive = fx_core::tensor::unary::<Row>(Operator::Abs, &whole)?;
    let shape = operator::getattr.call_as::<List<Int>>((x, "shape"))?;
    let sum = ((((positive + last)? + rest)? + a)? + b)?;
    Ok((sum, shape.get(0)?))
}
