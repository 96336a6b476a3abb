//! `ParamType::type_matches`: whether what has one type can be an argument where another is asked
//! for.
//!
//! Invariant: a type that matches is one whose values the parameter's conversion takes.

use super::param_type::{ParamType, ScalarType};

impl ParamType {
    /// Whether a value of type `argument` can be the argument of a parameter of this type.
    ///
    /// References count as what they refer to, and known scalars as symbolic ones. Beyond equal
    /// types, an `Int` can stand where a `Float` is asked for, a `T` where an `Option<T>` is, any
    /// list or a tuple of matching items where a list is, and everything where a `Value` is. A
    /// `Value` itself may be anything, so that it matches nothing else.
    ///
    /// ```
    /// use fx_core::ir::ParamType;
    /// let signature: ParamType = "&[Float]".parse()?;
    /// assert!(signature.type_matches(&"(i64, Float)".parse()?));
    /// assert!(!signature.type_matches(&"Vec<Bool>".parse()?));
    /// # Ok::<(), fx_core::Error>(())
    /// ```
    pub fn type_matches(&self, argument: &ParamType) -> bool {
        use ParamType::{AnyValue, List, Map, Optional, Plain, Scalar, Sequence, Slice, Tuple};
        match (self.referred(), argument.referred()) {
            (AnyValue, _) => true,
            (Optional(wanted), Optional(given)) => wanted.type_matches(given),
            (Optional(wanted), given) => wanted.type_matches(given),
            (Scalar(wanted) | Plain(wanted), Scalar(given) | Plain(given)) => {
                wanted == given || (*wanted, *given) == (ScalarType::Float, ScalarType::Int)
            }
            (
                List(wanted) | Sequence(wanted) | Slice(wanted),
                List(given) | Sequence(given) | Slice(given),
            )
            | (Map(wanted), Map(given)) => wanted.type_matches(given),
            (List(wanted) | Sequence(wanted) | Slice(wanted), Tuple(given)) => {
                given.iter().all(|given| wanted.type_matches(given))
            }
            (Tuple(wanted), Tuple(given)) => {
                let mut pairs = wanted.iter().zip(given.iter());
                wanted.len() == given.len()
                    && pairs.all(|(wanted, given)| wanted.type_matches(given))
            }
            (wanted, given) => wanted == given,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;

    #[test]
    fn arguments_match_the_types_of_signatures() -> Result<()> {
        for (signature, argument, matches) in [
            ("Array", "&Array", true),
            ("Array", "Float", false),
            ("&Array", "Value", false),
            ("Value", "Option<Array>", true),
            ("Option<Value>", "Value", true),
            ("i64", "Int", true),
            ("Float", "i64", true),
            ("Int", "Float", false),
            ("Int", "Bool", false),
            ("Option<Int>", "Int", true),
            ("Option<Int>", "Option<usize>", true),
            ("Int", "Option<Int>", false),
            ("&[Array]", "List<Array>", true),
            ("Vec<Float>", "[Int; 2]", true),
            ("Vec<Int>", "(Int, Int, Int)", true),
            ("Vec<Int>", "(Int, Float)", false),
            ("Vec<Int>", "()", true),
            ("Vec<Int>", "Int", false),
            ("Vec<Vec<Int>>", "Vec<(Int, Int)>", true),
            ("(Int, Float)", "(Int, Int)", true),
            ("(Int, Float)", "(Int,)", false),
            ("(Int, Int)", "Vec<Int>", false),
            ("IndexMap<String, Float>", "HashMap<String, Int>", true),
            ("IndexMap<String, Int>", "Vec<Int>", false),
            ("&str", "String", true),
            ("String", "Int", false),
            ("Reduction", "Reduction", true),
        ] {
            let (wanted, given): (ParamType, ParamType) = (signature.parse()?, argument.parse()?);
            assert_eq!(
                wanted.type_matches(&given),
                matches,
                "{signature} <- {argument}"
            );
        }
        Ok(())
    }
}
