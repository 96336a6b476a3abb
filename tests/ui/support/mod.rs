//! A tensor that knows only how it was made, for tests of the macros over fx-core alone.

#![allow(dead_code, missing_docs, unreachable_pub)]

use std::sync::atomic::{AtomicU64, Ordering};

use fx_core::module::{Component, Walk, WalkMut};
use fx_core::tensor::{Object, OperandRef, Traced};
use fx_core::value::{DType, Operator, Proxy, Value};
use fx_core::{Result, wrap};

/// `gt(x, 0.5)` as a tensor: the text is its value.
#[derive(Clone, Debug)]
pub struct Tensor {
    pub text: String,
    id: u64,
    proxy: Option<Proxy>,
}

/// A tensor of the given text.
pub fn tensor(text: impl Into<String>) -> Tensor {
    static IDS: AtomicU64 = AtomicU64::new(1);
    Tensor {
        text: text.into(),
        id: IDS.fetch_add(1, Ordering::Relaxed),
        proxy: None,
    }
}

impl Object for Tensor {
    fn to_value(&self) -> Value {
        Value::object(self.clone())
    }

    fn object_id(&self) -> Option<u64> {
        Some(self.id)
    }

    fn shape(&self) -> Option<&[usize]> {
        Some(&[])
    }

    fn dtype(&self) -> Option<DType> {
        Some(DType::F32)
    }

    fn proxy(&self) -> Option<Proxy> {
        self.proxy
    }

    fn operator(&self, op: Operator, args: &[&Value], out: &mut Value) -> Result<()> {
        let operands: Option<Vec<_>> = args.iter().map(|value| OperandRef::of(value)).collect();
        *out = Value::object(Tensor::apply(op, &operands.unwrap_or_default())?);
        Ok(())
    }
}

impl Traced for Tensor {
    fn from_proxy(proxy: Proxy) -> Self {
        Tensor {
            proxy: Some(proxy),
            ..tensor(proxy.to_string())
        }
    }

    fn apply(op: Operator, operands: &[OperandRef<'_>]) -> Result<Self> {
        let texts: Vec<String> = operands
            .iter()
            .map(|operand| match operand {
                OperandRef::Bool(x) => x.to_string(),
                OperandRef::Int(x) => x.to_string(),
                OperandRef::Float(x) => format!("{x:?}"),
                OperandRef::Proxy(x) => x.to_string(),
                other => other
                    .downcast_ref::<Tensor>()
                    .map_or_else(|| "?".to_owned(), |x| x.text.clone()),
            })
            .collect();
        Ok(tensor(format!("{}({})", op.name(), texts.join(", "))))
    }
}

fx_core::tensor_type!(Tensor);

impl Component for Tensor {
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

/// The sum of all elements.
#[wrap(method)]
pub fn sum(x: &Tensor) -> Result<Tensor> {
    Ok(tensor(format!("sum({})", x.text)))
}

/// `x` where it is positive.
#[wrap(method)]
pub fn relu(x: &Tensor) -> Result<Tensor> {
    Ok(tensor(format!("relu({})", x.text)))
}
