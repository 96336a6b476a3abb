//! `tensor_type!`: everything that a tensor type needs besides its own operations, written out for
//! it.

/// Makes a type that implements [`Traced`](crate::tensor::Traced) a tensor type: its conversions as
/// argument and result, Rust's operators `a + b`, `2.0 * a`, `-a`, `!a`, and comparisons inside
/// `#[trace]`.
///
/// [`Traced::apply`](crate::tensor::Traced::apply) runs the operators. Their results are `Result`s.
#[doc(hidden)]
#[macro_export]
macro_rules! tensor_type {
    ($tensor:ty) => {
        impl $crate::__private::IntoValue for $tensor {
            #[inline]
            fn into_value(self) -> $crate::__private::Value {
                match $crate::__private::Object::proxy(&self) {
                    Some(proxy) => $crate::__private::Value::Proxy(proxy),
                    None => $crate::__private::Value::object(self),
                }
            }
        }
        impl $crate::__private::Arg for $tensor {}
        impl<'v> $crate::__private::Param<'v> for $tensor {
            type Guard = $crate::__private::Held<'v, $tensor>;
            const TYPE: $crate::__private::ParamType = <$tensor as $crate::__private::FromValue>::TYPE;
            fn guard(value: &'v $crate::__private::Value) -> $crate::Result<Self::Guard> {
                $crate::__private::hold(value)
            }
            fn lend(guard: &'v Self::Guard) -> Self {
                ::core::clone::Clone::clone(<&$tensor as $crate::__private::Param<'v>>::lend(guard))
            }
            fn is_symbolic(&self) -> bool {
                $crate::__private::Traced::has_no_data(self)
            }
            fn to_value(&self) -> $crate::__private::Value {
                $crate::__private::IntoValue::into_value(self)
            }
        }
        impl $crate::control::Decide for &$tensor {
            type Kind = <$tensor as $crate::control::Decide>::Kind;
            fn decide(self) -> $crate::Result<$crate::control::Truth> {
                $crate::control::Decide::decide(::core::clone::Clone::clone(self))
            }
        }
        impl $crate::__private::Operand for $tensor {
            #[inline]
            fn lend(&self) -> $crate::__private::OperandRef<'_> {
                $crate::__private::OperandRef::Object(self)
            }
            #[inline(always)]
            fn is_symbolic(&self) -> bool {
                $crate::__private::Traced::has_no_data(self)
            }
            #[inline(always)]
            fn as_traced<U: $crate::__private::Traced>(&self) -> ::core::option::Option<&U> {
                let any: &dyn ::core::any::Any = self;
                any.downcast_ref()
            }
        }
        $crate::impl_comparisons! {
            [$tensor, &$tensor] with [f64, i64, $crate::__private::Int, $crate::__private::Float, $tensor, &$tensor] -> $crate::Result<$tensor>,
            |op, a, b| $crate::__private::binary(op.operator(), a, b)
        }
        $crate::impl_comparisons! {
            [f64, i64, $crate::__private::Int, $crate::__private::Float] with [$tensor, &$tensor] -> $crate::Result<$tensor>,
            |op, a, b| $crate::__private::binary(op.reflected().operator(), b, a)
        }
        $crate::tensor_type! { @binary $tensor: Add add Add, Sub sub Sub, Mul mul Mul, Div div Truediv,
            Rem rem Mod, BitAnd bitand And, BitOr bitor Or, BitXor bitxor Xor, Shl shl Lshift, Shr shr Rshift }
        $crate::tensor_type! { @unary $tensor: Neg neg Neg, Not not Invert }
    };
    (@binary $tensor:ty: $($trait:ident $method:ident $op:ident),*) => {$(
        impl<R: $crate::__private::Operand> ::std::ops::$trait<R> for &$tensor {
            type Output = $crate::Result<$tensor>;
            #[track_caller]
            #[inline]
            fn $method(self, rhs: R) -> Self::Output {
                $crate::__private::binary($crate::__private::Operator::$op, self, &rhs)
            }
        }
        impl<R: $crate::__private::Operand> ::std::ops::$trait<R> for $tensor {
            type Output = $crate::Result<$tensor>;
            #[track_caller]
            #[inline]
            fn $method(self, rhs: R) -> Self::Output {
                $crate::__private::binary($crate::__private::Operator::$op, &self, &rhs)
            }
        }
        $crate::tensor_type! { @reflected $tensor: $trait $method $op, f64 }
        $crate::tensor_type! { @reflected $tensor: $trait $method $op, i64 }
        $crate::tensor_type! { @reflected $tensor: $trait $method $op, $crate::__private::Int }
        $crate::tensor_type! { @reflected $tensor: $trait $method $op, $crate::__private::Float }
    )*};
    (@reflected $tensor:ty: $trait:ident $method:ident $op:ident, $f:ty) => {
        impl ::std::ops::$trait<&$tensor> for $f {
            type Output = $crate::Result<$tensor>;
            #[track_caller]
            fn $method(self, rhs: &$tensor) -> Self::Output {
                $crate::__private::binary($crate::__private::Operator::$op, &self, rhs)
            }
        }
        impl ::std::ops::$trait<$tensor> for $f {
            type Output = $crate::Result<$tensor>;
            #[track_caller]
            fn $method(self, rhs: $tensor) -> Self::Output {
                $crate::__private::binary($crate::__private::Operator::$op, &self, &rhs)
            }
        }
    };
    (@unary $tensor:ty: $($trait:ident $method:ident $op:ident),*) => {$(
        impl ::std::ops::$trait for &$tensor {
            type Output = $crate::Result<$tensor>;
            #[track_caller]
            fn $method(self) -> Self::Output {
                $crate::__private::unary($crate::__private::Operator::$op, self)
            }
        }
        impl ::std::ops::$trait for $tensor {
            type Output = $crate::Result<$tensor>;
            #[track_caller]
            fn $method(self) -> Self::Output {
                $crate::__private::unary($crate::__private::Operator::$op, &self)
            }
        }
    )*};
}
