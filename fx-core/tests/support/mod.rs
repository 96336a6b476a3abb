//! A small array type for the tests, its leaf functions and a few modules: all through the public
//! API.
#![allow(
    dead_code,
    unused_imports,
    reason = "each test crate uses a part of it"
)]

pub mod graphs;
pub mod modules;
pub mod text;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

pub use graphs::*;
pub use text::without_lines;

use fx_core::module::{Component, Walk, WalkMut};
use fx_core::tensor::{Object, OperandRef, Traced, escape};
use fx_core::value::{Int, Operator, Proxy, Value};
use fx_core::{Error, Result, wrap};

/// Counts the arrays that are alive: the current number and the peak.
#[derive(Debug, Default)]
pub struct Census {
    live: AtomicI64,
    peak: AtomicI64,
}

impl Census {
    pub fn live(&self) -> i64 {
        self.live.load(Ordering::SeqCst)
    }

    pub fn peak(&self) -> i64 {
        self.peak.load(Ordering::SeqCst)
    }

    /// Forgets the peak.
    pub fn reset(&self) {
        self.peak.store(self.live(), Ordering::SeqCst);
    }
}

/// The data that clones of an array share.
#[derive(Debug)]
struct Storage {
    shape: Vec<usize>,
    data: Vec<f64>,
    id: u64,
    census: Option<Arc<Census>>,
}

impl Drop for Storage {
    fn drop(&mut self) {
        if let Some(census) = &self.census {
            census.live.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// An array of numbers, or the symbolic value of a running trace.
#[derive(Clone)]
pub struct Array(Repr);

#[derive(Clone)]
enum Repr {
    Data(Arc<Storage>),
    Proxy(Proxy),
}

impl Array {
    pub fn new(shape: &[usize], data: Vec<f64>) -> Self {
        Self::counted(shape, data, None)
    }

    /// An array that is counted, as are its results.
    pub fn counted(shape: &[usize], data: Vec<f64>, census: Option<Arc<Census>>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        assert_eq!(shape.iter().product::<usize>(), data.len(), "{shape:?}");
        if let Some(census) = &census {
            let live = census.live.fetch_add(1, Ordering::SeqCst) + 1;
            census.peak.fetch_max(live, Ordering::SeqCst);
        }
        Array(Repr::Data(Arc::new(Storage {
            shape: shape.to_vec(),
            data,
            id: NEXT.fetch_add(1, Ordering::SeqCst),
            census,
        })))
    }

    pub fn vec(data: &[f64]) -> Self {
        Array::new(&[data.len()], data.to_vec())
    }

    pub fn from_proxy(proxy: Proxy) -> Self {
        Array(Repr::Proxy(proxy))
    }

    /// The numbers, which only a run has.
    #[track_caller]
    pub fn to_vec(&self) -> Result<Vec<f64>> {
        Ok(self.storage("to_vec")?.data.clone())
    }

    #[track_caller]
    pub fn shape(&self) -> Result<Vec<usize>> {
        Ok(self.storage("shape")?.shape.clone())
    }

    #[track_caller]
    fn storage(&self, what: &str) -> Result<&Arc<Storage>> {
        match &self.0 {
            Repr::Data(data) => Ok(data),
            Repr::Proxy(proxy) => Err(escape(what, *proxy)),
        }
    }

    fn map(&self, what: &str, f: impl Fn(f64) -> f64) -> Result<Array> {
        let x = self.storage(what)?;
        let data = x.data.iter().map(|v| f(*v)).collect();
        Ok(Array::counted(&x.shape, data, x.census.clone()))
    }

    /// Element by element; an array of one element can be combined with any other.
    fn zip(&self, other: &Array, f: impl Fn(f64, f64) -> f64) -> Result<Array> {
        let (a, b) = (self.storage("zip")?, other.storage("zip")?);
        let census = a.census.clone().or_else(|| b.census.clone());
        let (shape, data) = match (a.data.as_slice(), b.data.as_slice()) {
            (x, y) if a.shape == b.shape => {
                (&a.shape, x.iter().zip(y).map(|(x, y)| f(*x, *y)).collect())
            }
            (x, [y]) => (&a.shape, x.iter().map(|x| f(*x, *y)).collect()),
            ([x], y) => (&b.shape, y.iter().map(|y| f(*x, *y)).collect()),
            _ => {
                return Err(Error::msg(format_args!(
                    "the shapes {:?} and {:?} do not fit",
                    a.shape, b.shape
                )));
            }
        };
        Ok(Array::counted(shape, data, census))
    }
}

impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Data(x) => write!(f, "Array{:?} {:?}", x.shape, x.data),
            Repr::Proxy(proxy) => write!(f, "{proxy}"),
        }
    }
}

impl Object for Array {
    fn to_value(&self) -> Value {
        Value::object(self.clone())
    }

    fn object_id(&self) -> Option<u64> {
        match &self.0 {
            Repr::Data(x) => Some(x.id),
            Repr::Proxy(_) => None,
        }
    }

    fn shape(&self) -> Option<&[usize]> {
        match &self.0 {
            Repr::Data(x) => Some(&x.shape),
            Repr::Proxy(_) => None,
        }
    }

    fn proxy(&self) -> Option<Proxy> {
        match &self.0 {
            Repr::Data(_) => None,
            Repr::Proxy(proxy) => Some(*proxy),
        }
    }

    fn truth(&self) -> Result<bool> {
        match self.to_vec()?.as_slice() {
            [one] => Ok(*one != 0.0),
            many => Err(Error::msg(format_args!(
                "{} elements are neither true nor false",
                many.len()
            ))),
        }
    }

    fn operator(&self, op: Operator, args: &[&Value], out: &mut Value) -> Result<()> {
        let operands = args
            .iter()
            .map(|v| OperandRef::of(v).ok_or_else(|| Error::msg("not an operand of an array")))
            .collect::<Result<Vec<_>>>()?;
        out.put_object(Array::apply(op, &operands)?);
        Ok(())
    }
}

impl Traced for Array {
    fn from_proxy(proxy: Proxy) -> Self {
        Array::from_proxy(proxy)
    }

    fn apply(op: Operator, operands: &[OperandRef<'_>]) -> Result<Self> {
        let array = |operand: OperandRef<'_>| -> Result<Array> {
            Ok(match operand {
                OperandRef::Int(n) => Array::new(&[], vec![n as f64]),
                OperandRef::Float(x) => Array::new(&[], vec![x]),
                other => other
                    .downcast_ref::<Array>()
                    .ok_or_else(|| Error::msg("not an operand of an array"))?
                    .clone(),
            })
        };
        let truth = |b: bool| f64::from(u8::from(b));
        match operands {
            [a] => match op {
                Operator::Neg => array(*a)?.map("neg", |x| -x),
                Operator::Invert => array(*a)?.map("invert", |x| truth(x == 0.0)),
                _ => Err(Error::msg(format_args!("no unary `{op}`"))),
            },
            [a, b] => {
                let (a, b) = (array(*a)?, array(*b)?);
                match op {
                    Operator::Add => a.zip(&b, |a, b| a + b),
                    Operator::Sub => a.zip(&b, |a, b| a - b),
                    Operator::Mul => a.zip(&b, |a, b| a * b),
                    Operator::Truediv => a.zip(&b, |a, b| a / b),
                    Operator::Gt => a.zip(&b, |a, b| truth(a > b)),
                    Operator::Lt => a.zip(&b, |a, b| truth(a < b)),
                    Operator::Eq => a.zip(&b, |a, b| truth(a == b)),
                    _ => Err(Error::msg(format_args!("no binary `{op}`"))),
                }
            }
            _ => Err(Error::msg("one or two operands")),
        }
    }
}

fx_core::tensor_type!(Array);

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

// ---- leaves ------------------------------------------------------------------------------------

#[wrap(method, path = "array::relu")]
pub fn relu(x: &Array) -> Result<Array> {
    x.map("relu", |x| x.max(0.0))
}

#[wrap(method, path = "array::sum")]
pub fn sum(x: &Array) -> Result<Array> {
    let x = x.storage("sum")?;
    let total = x.data.iter().sum();
    Ok(Array::counted(&[], vec![total], x.census.clone()))
}

/// The positive and the negative part.
#[wrap(path = "array::split_sign")]
pub fn split_sign(x: &Array) -> Result<(Array, Array)> {
    Ok((
        x.map("split", |x| x.max(0.0))?,
        x.map("split", |x| x.min(0.0))?,
    ))
}

#[wrap(method, path = "array::scale")]
pub fn scale(
    x: &Array,
    #[kw]
    #[default(2.0)]
    factor: f64,
) -> Result<Array> {
    x.map("scale", |x| x * factor)
}

#[wrap(path = "array::concat")]
pub fn concat(arrays: &[Array]) -> Result<Array> {
    let mut data = Vec::new();
    let mut census = None;
    for array in arrays {
        let x = array.storage("concat")?;
        census = census.or_else(|| x.census.clone());
        data.extend(&x.data);
    }
    Ok(Array::counted(&[data.len()], data, census))
}

/// Other numbers at every call, like a random constructor.
#[wrap(always, random, path = "array::noise")]
pub fn noise(n: usize) -> Result<Array> {
    static DRAWS: AtomicU64 = AtomicU64::new(0);
    let draw = DRAWS.fetch_add(1, Ordering::SeqCst) as f64;
    Ok(Array::vec(&vec![draw; n]))
}

/// How often `record` ran.
pub static RECORDED: AtomicU64 = AtomicU64::new(0);

#[wrap(method, impure, path = "array::record")]
pub fn record(x: &Array) -> Result<Array> {
    RECORDED.fetch_add(1, Ordering::SeqCst);
    Ok(x.clone())
}

#[wrap(path = "array::len")]
pub fn len(x: &Array) -> Result<Int> {
    Ok(x.storage("len")?.data.len().into())
}

#[wrap(path = "array::fail_if_negative")]
pub fn fail_if_negative(x: &Array) -> Result<Array> {
    match x.storage("fail")?.data.iter().find(|x| **x < 0.0) {
        Some(x) => Err(Error::msg(format_args!("{x} is negative"))),
        None => Ok(x.clone()),
    }
}

/// x Wᵀ + b.
#[wrap(path = "array::linear")]
pub fn linear(x: &Array, weight: &Array, bias: Option<&Array>) -> Result<Array> {
    let (x, w) = (x.storage("linear")?, weight.storage("linear")?);
    let [outs, ins] = w.shape[..] else {
        return Err(Error::msg("a weight has two dims"));
    };
    if x.shape.last() != Some(&ins) {
        return Err(Error::msg(format_args!(
            "linear takes {ins} features, found the shape {:?}",
            x.shape
        )));
    }
    let bias = match bias {
        Some(bias) => bias.to_vec()?,
        None => vec![0.0; outs],
    };
    let mut data = Vec::new();
    for row in x.data.chunks(ins) {
        for (o, bias) in bias.iter().enumerate() {
            let weights = &w.data[o * ins..(o + 1) * ins];
            data.push(bias + row.iter().zip(weights).map(|(a, b)| a * b).sum::<f64>());
        }
    }
    let mut shape = x.shape.clone();
    if let Some(last) = shape.last_mut() {
        *last = outs;
    }
    Ok(Array::counted(&shape, data, x.census.clone()))
}

/// A second type of objects, with a method of the same name as one of arrays and another signature.
#[derive(Clone, Debug)]
pub enum Text {
    Data(String),
    Proxy(Proxy),
}

impl Object for Text {
    fn to_value(&self) -> Value {
        Value::object(self.clone())
    }

    fn proxy(&self) -> Option<Proxy> {
        match self {
            Text::Data(_) => None,
            Text::Proxy(proxy) => Some(*proxy),
        }
    }
}

impl Traced for Text {
    fn from_proxy(proxy: Proxy) -> Self {
        Text::Proxy(proxy)
    }
}

fx_core::tensor_type!(Text);

fn repeat_text(x: &Text, times: i64) -> Result<Text> {
    match x {
        Text::Data(text) => Ok(Text::Data(text.repeat(usize::try_from(times).unwrap_or(0)))),
        Text::Proxy(proxy) => Err(escape("repeat", *proxy)),
    }
}

impl fx_core::module::Component for Text {
    fn duplicate(&self) -> Self {
        self.clone()
    }
}

#[wrap]
impl Text {
    pub fn repeat(
        &self,
        #[kw]
        #[default(1)]
        times: i64,
    ) -> Result<Text> {
        repeat_text(self, times)
    }
}

#[wrap]
impl Array {
    pub fn repeat(
        &self,
        #[kw]
        #[default(2)]
        count: usize,
    ) -> Result<Array> {
        concat(&vec![self.clone(); count])
    }
}
