//! Sizes in the file: numbers where they are known, else arithmetic on the shapes of tensors.
//!
//! Invariant: a size is computed once per graph, and from the names that its expression has; a number never is.

use fx_nn::ir::ValueMeta;
use fx_nn::value::{Dim, DimStep};
use fx_nn::{Error, Result};

use super::context::{Cx, SymbolSource};
use fx_nn::lowering::{Name, OpCall, Operand, Question, Val};

/// A step of the computation of a size.
enum Task {
    /// Computes a size.
    Make(Dim),
    /// Joins the sizes that were made by an operator, as the result of a size.
    Join(Dim, &'static str, usize),
}

impl Cx {
    /// A size, as a value of shape `[1]`.
    ///
    /// # Errors
    /// Returns an error if nothing that was written knows one of its symbols.
    pub fn size(&mut self, dim: &Dim) -> Result<Name> {
        let mut tasks = vec![Task::Make(dim.clone())];
        let mut made: Vec<Name> = Vec::new();
        while let Some(task) = tasks.pop() {
            match task {
                Task::Make(dim) => match dim.step() {
                    DimStep::Known(number) => made.push(self.i64s(&[number])),
                    _ if let Some(name) = self.computed(&dim) => made.push(name),
                    DimStep::Symbol(symbol) => {
                        let name = self.symbol_size(&symbol)?;
                        self.scope().sizes.insert(dim, name.clone());
                        made.push(name);
                    }
                    step => {
                        let (op, parts) = match step {
                            DimStep::Sum(parts) => ("Add", parts),
                            DimStep::Product(parts) => ("Mul", parts),
                            DimStep::Quotient(a, b) => ("Div", vec![a, b]),
                            DimStep::Min(parts) => ("Min", parts),
                            DimStep::Max(parts) => ("Max", parts),
                            other => {
                                return Err(Error::msg(format_args!(
                                    "a size is {other:?}, which ONNX cannot compute"
                                )));
                            }
                        };
                        tasks.push(Task::Join(dim, op, parts.len()));
                        tasks.extend(parts.into_iter().rev().map(Task::Make));
                    }
                },
                Task::Join(dim, op, count) => {
                    let parts = made.split_off(made.len().saturating_sub(count));
                    let mut parts = parts.into_iter();
                    let first = parts.next().expect("an operation on sizes has operands");
                    let name = match op {
                        // Rounded down: what is divided may be negative on the way to a size.
                        "Div" => {
                            let by = parts.next().expect("a quotient has two parts");
                            let rest = self.op("Mod", &[&first, &by]);
                            let whole = self.op("Sub", &[&first, &rest]);
                            self.op("Div", &[&whole, &by])
                        }
                        op => parts.fold(first, |a, b| self.op(op, &[&a, &b])),
                    };
                    self.scope().sizes.insert(dim, name.clone());
                    made.push(name);
                }
            }
        }
        Ok(made.pop().expect("the size was made last"))
    }

    /// A whole number that a tensor without dims holds: where its symbol stands among sizes, the tensor is read.
    pub(crate) fn whole_number(&mut self, dim: &Dim, name: Name) -> Val {
        if let Some(symbol) = dim.as_symbol()
            && self.symbol(symbol).is_none()
        {
            let source = SymbolSource::Scalar(name);
            self.scope().symbols.insert(symbol.into(), source);
        }
        Val::Dim(dim.clone())
    }

    fn computed(&self, dim: &Dim) -> Option<Name> {
        let mut scopes = self.scopes.iter().rev();
        scopes.find_map(|scope| scope.sizes.get(dim).cloned())
    }

    fn symbol_size(&mut self, symbol: &str) -> Result<Name> {
        match self.symbol(symbol) {
            Some(SymbolSource::Axis(of, axis)) => Ok(self
                .node("Shape")
                .input(&of)
                .int("start", axis as i64)
                .int("end", axis as i64 + 1)
                .output()),
            Some(SymbolSource::Scalar(name)) => {
                let one = self.i64s(&[1]);
                Ok(self.op("Reshape", &[&name, &one]))
            }
            None => Err(Error::not_in_format(format_args!(
                "the size `{symbol}` is not known where it is used: no tensor before has it as a size of its own"
            ))),
        }
    }

    /// A size, as a value without dims.
    ///
    /// # Errors
    /// As [`size`](Cx::size).
    pub fn size_scalar(&mut self, dim: &Dim) -> Result<Name> {
        match dim.as_number() {
            Some(number) => Ok(self.i64(number)),
            None => {
                let size = self.size(dim)?;
                let none = self.i64s(&[]);
                Ok(self.op("Reshape", &[&size, &none]))
            }
        }
    }

    /// Sizes, as a value of shape `[n]`.
    ///
    /// # Errors
    /// As [`size`](Cx::size).
    pub fn sizes(&mut self, dims: &[Dim]) -> Result<Name> {
        if let Some(known) = dims
            .iter()
            .map(Dim::as_number)
            .collect::<Option<Vec<i64>>>()
        {
            return Ok(self.i64s(&known));
        }
        // Neighbours that are known are one constant.
        let mut parts: Vec<Name> = Vec::new();
        let mut run: Vec<i64> = Vec::new();
        for dim in dims {
            match dim.as_number() {
                Some(number) => run.push(number),
                None => {
                    if !run.is_empty() {
                        parts.push(self.i64s(&std::mem::take(&mut run)));
                    }
                    parts.push(self.size(dim)?);
                }
            }
        }
        if !run.is_empty() {
            parts.push(self.i64s(&run));
        }
        if let [only] = &*parts {
            return Ok(only.clone());
        }
        let mut node = self.node("Concat").int("axis", 0);
        for part in &parts {
            node = node.input(part);
        }
        Ok(node.output())
    }

    /// The tensor in other sizes. One size that is not known is left to the engine, and so are those
    /// that the tensor has at the same place: then nothing is computed from shapes.
    ///
    /// # Errors
    /// As [`size`](Cx::size).
    pub fn reshape(&mut self, x: &Operand, shape: &[Dim]) -> Result<Name> {
        let mut target = shape.to_vec();
        let has_zero = shape.iter().any(|dim| dim.as_number() == Some(0));
        let unknown = |target: &[Dim]| target.iter().filter(|d| d.as_number().is_none()).count();
        if !has_zero {
            if unknown(&target) > 1 {
                for (at, dim) in target.iter_mut().enumerate() {
                    if dim.as_number().is_none() && x.shape.get(at) == Some(dim) {
                        *dim = Dim::from(0);
                    }
                }
            }
            if unknown(&target) == 1 {
                for dim in &mut target {
                    if dim.as_number().is_none() {
                        *dim = Dim::from(-1);
                    }
                }
            }
        }
        let sizes = self.sizes(&target)?;
        let node = self.node("Reshape").input(&x.name).input(&sizes);
        Ok(match has_zero {
            true => node.int("allowzero", 1).output(),
            false => node.output(),
        })
    }

    /// The tensor repeated along dims of size one.
    ///
    /// # Errors
    /// As [`size`](Cx::size).
    pub fn expand(&mut self, x: &Operand, shape: &[Dim]) -> Result<Name> {
        if x.shape == shape {
            return Ok(x.name.clone());
        }
        let ahead = shape.len().saturating_sub(x.rank());
        let target: Vec<Dim> = shape
            .iter()
            .enumerate()
            .map(|(at, dim)| match at.checked_sub(ahead) {
                Some(own) if x.shape.get(own) == Some(dim) => Dim::from(1),
                _ => dim.clone(),
            })
            .collect();
        let sizes = self.sizes(&target)?;
        Ok(self.op("Expand", &[&x.name, &sizes]))
    }

    /// A tensor of one number.
    ///
    /// # Errors
    /// As [`size`](Cx::size).
    pub(crate) fn filled(
        &mut self,
        shape: &[Dim],
        number: f64,
        dtype: fx_nn::value::DType,
    ) -> Result<Name> {
        let one = Operand {
            name: self.number(number, dtype),
            dtype,
            shape: Vec::new(),
        };
        self.expand(&one, shape)
    }

    /// What a function asks of a tensor's sizes, where no size answers: a run does.
    ///
    /// # Errors
    /// Returns an error if the argument is no tensor, or the dim is not known.
    pub(super) fn answer(
        &mut self,
        question: Question,
        call: &OpCall<'_>,
        meta: &ValueMeta,
    ) -> Result<Val> {
        let x = call.elements("x")?;
        let name = match question {
            Question::Elements => self.op("Size", &[&x.name]),
            Question::Rank => {
                let sizes = self.op("Shape", &[&x.name]);
                self.op("Size", &[&sizes])
            }
            Question::Size => {
                let dim = self.i64(call.int("dim")?);
                let sizes = self.op("Shape", &[&x.name]);
                self.op("Gather", &[&sizes, &dim])
            }
            other => return Err(Error::msg(format_args!("{other:?} is not answered"))),
        };
        match meta {
            ValueMeta::Int(dim) => Ok(self.whole_number(dim, name)),
            _ => call.given(name),
        }
    }

    /// A value as a tensor of an element type, of which the elements alone are needed: it has no sizes here if a run decides
    /// how many there are.
    ///
    /// # Errors
    /// Returns an error if it is neither a tensor nor a number.
    pub fn elements(&mut self, val: &Val, dtype: fx_nn::value::DType) -> Result<Operand> {
        let Val::Unranked(name, own) = val else {
            return self.operand(val, dtype);
        };
        let unranked = Operand {
            name: name.clone(),
            dtype: *own,
            shape: Vec::new(),
        };
        self.cast(&unranked, dtype)
    }

    /// A value as a tensor of an element type.
    ///
    /// # Errors
    /// Returns an error if it is neither a tensor nor a number.
    pub fn operand(&mut self, val: &Val, dtype: fx_nn::value::DType) -> Result<Operand> {
        let name = match val {
            Val::Tensor(operand) => return self.cast(operand, dtype),
            Val::Dim(dim) if dim.as_number().is_none() => {
                let name = self.size_scalar(dim)?;
                let size = Operand {
                    name,
                    dtype: fx_nn::value::DType::I64,
                    shape: Vec::new(),
                };
                return self.cast(&size, dtype);
            }
            other => match (other.as_int(), other.as_f64()) {
                (Some(number), _) => self.whole(number, dtype),
                (None, Some(number)) => self.number(number, dtype),
                (None, None) => {
                    return Err(Error::msg(format_args!(
                        "{} is neither a tensor nor a number",
                        other.describe()
                    )));
                }
            },
        };
        Ok(Operand {
            name,
            dtype,
            shape: Vec::new(),
        })
    }
}
