//! Two tensor types in one program, with methods of one name: each call keeps its own type's
//! method, and methods whose type a graph does not state are reported.

mod array {
    use std::sync::Arc;

    use fx_core::module::{Component, Walk, WalkMut};
    use fx_core::prelude::*;
    use fx_core::tensor::{Object, OperandRef, Traced, escape};
    use fx_core::value::{Operator, Proxy};

    #[derive(Debug, Clone)]
    pub enum Array {
        Known(Arc<Vec<f64>>),
        Symbolic(Proxy),
    }

    impl Array {
        pub fn new(data: &[f64]) -> Self {
            Array::Known(Arc::new(data.to_vec()))
        }

        #[track_caller]
        pub fn data(&self) -> Result<&[f64]> {
            match self {
                Array::Known(data) => Ok(data),
                Array::Symbolic(proxy) => Err(escape("data", *proxy)),
            }
        }
    }

    impl Object for Array {
        fn to_value(&self) -> Value {
            Value::object(self.clone())
        }
        fn object_id(&self) -> Option<u64> {
            match self {
                Array::Known(data) => u64::try_from(Arc::as_ptr(data).addr()).ok(),
                Array::Symbolic(_) => None,
            }
        }
        fn shape(&self) -> Option<&[usize]> {
            None
        }
        fn proxy(&self) -> Option<Proxy> {
            match self {
                Array::Known(_) => None,
                Array::Symbolic(proxy) => Some(*proxy),
            }
        }
    }

    impl Traced for Array {
        fn from_proxy(proxy: Proxy) -> Self {
            Array::Symbolic(proxy)
        }
        fn apply(op: Operator, _: &[OperandRef<'_>]) -> Result<Self> {
            Err(Error::msg(format_args!("arrays have no `{op}`")))
        }
    }

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

    fx_core::tensor::tensor_type!(Array);

    // One path sorts before the tensors' and one behind.
    #[wrap(method, path = "array::relu")]
    pub fn relu(x: &Array) -> Result<Array> {
        Ok(Array::new(
            &x.data()?.iter().map(|v| v.max(0.0)).collect::<Vec<_>>(),
        ))
    }

    #[wrap(method, commutative, path = "zz_array::maximum")]
    pub fn maximum(x: &Array, y: &Array) -> Result<Array> {
        let pairs = x.data()?.iter().zip(y.data()?);
        Ok(Array::new(
            &pairs.map(|(a, b)| a.max(*b)).collect::<Vec<_>>(),
        ))
    }

    /// Sums all, and has one parameter where tensors have more.
    #[wrap(method, path = "array::sum")]
    pub fn sum(x: &Array) -> Result<Array> {
        Ok(Array::new(&[x.data()?.iter().sum()]))
    }
}

use array::Array;
use fx_nn::graph_module::Folder;
use fx_nn::ir::Graph;
use fx_nn::module::Callee;
use fx_nn::passes::MethodsToFunctions;
use fx_nn::pattern::SubgraphMatcher;
use fx_nn::prelude::*;
use fx_nn::run::PlainInterpreter;

fn traced_both() -> Result<[GraphModule; 2]> {
    Ok([
        symbolic_trace(traced!(|x: &Tensor, y: &Tensor| x.relu()?.maximum(y)))?,
        symbolic_trace(traced!(|x: &Array, y: &Array| x.relu()?.maximum(y)))?,
    ])
}

/// The paths of the functions that a graph module's methods are.
fn called(gm: &GraphModule) -> Result<Vec<String>> {
    let methods = gm.graph().find_opcode(fx_nn::ir::Opcode::CallMethod);
    let paths = methods.iter().map(|node| {
        let call = gm.call(node.id())?;
        Ok(match call.callee() {
            Callee::Function(function) => function.path().to_string(),
            other => format!("{other:?}"),
        })
    });
    paths.collect()
}

const OF_TENSORS: [&str; 2] = ["fx_nn::ops::relu", "fx_nn::ops::maximum"];
const OF_ARRAYS: [&str; 2] = ["array::relu", "zz_array::maximum"];

#[test]
fn a_traced_method_is_its_own_types() -> Result<()> {
    let [tensors, arrays] = traced_both()?;
    assert_eq!(called(&tensors)?, OF_TENSORS);
    assert_eq!(called(&arrays)?, OF_ARRAYS);
    for (gm, expected) in [(&tensors, OF_TENSORS), (&arrays, OF_ARRAYS)] {
        let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
        assert_eq!(called(&loaded)?, expected, "loaded");
        assert_eq!(called(&gm.clone())?, expected, "copied");
        assert_eq!(called(&symbolic_trace(gm)?)?, expected, "traced again");
        let transformed = gm.transform(&mut PlainInterpreter)?;
        assert_eq!(called(&transformed)?, expected, "transformed");
        let mut functions = gm.clone();
        assert!(functions.apply(&MethodsToFunctions)?.changed);
        let paths = functions
            .graph()
            .find_opcode(fx_nn::ir::Opcode::CallFunction);
        let paths: Vec<&str> = paths.iter().map(|node| node.target()).collect();
        assert_eq!(paths, expected, "made functions");
    }
    let y: Array = arrays.forward((&Array::new(&[-1.0, 2.0]), &Array::new(&[1.0, 1.0])))?;
    assert_eq!(y.data()?, [1.0, 2.0]);
    Ok(())
}

#[test]
fn source_is_of_the_right_type() -> Result<()> {
    let [tensors, arrays] = traced_both()?;
    let code = tensors.code();
    assert!(code.starts_with("pub fn forward"), "{code}");
    assert!(code.contains("x.relu()?"), "{code}");
    assert!(Folder::new("Model").source(&tensors)?.contains(".relu()?"));
    // A graph with a method of no library cannot be written as a crate; the error names the right
    // function.
    let error = Folder::new("Model")
        .source(&arrays)
        .expect_err("it is in no library");
    assert!(error.to_string().contains("`array`"), "{error}");
    Ok(())
}

#[test]
fn patterns_find_the_right_type() -> Result<()> {
    let [tensors, arrays] = traced_both()?;
    let relu_of_tensors = SubgraphMatcher::new(traced!(|x: &Tensor| fx_nn::ops::relu(x)))?;
    let relu_of_arrays = SubgraphMatcher::new(traced!(|x: &Array| array::relu(x)))?;
    let methods_of_arrays = SubgraphMatcher::new(traced!(|x: &Array| x.relu()))?;
    for (pattern, counts) in [
        (relu_of_tensors, [1, 0]),
        (relu_of_arrays, [0, 1]),
        (methods_of_arrays, [0, 1]),
    ] {
        let found = [pattern.find(&tensors)?.len(), pattern.find(&arrays)?.len()];
        assert_eq!(found, counts);
    }
    // The operands of a commutative method may change places, those of the other type's may not.
    let swapped = |gm: &GraphModule, pattern| -> Result<usize> {
        Ok(SubgraphMatcher::new(pattern)?.find(gm)?.len())
    };
    let arrays_turned = traced!(|x: &Array, y: &Array| y.maximum(&x.relu()?));
    assert_eq!(swapped(&arrays, arrays_turned)?, 1);
    let tensors_turned = traced!(|x: &Tensor, y: &Tensor| y.maximum(&x.relu()?));
    let is_commutative = fx_nn::function!(fx_nn::ops::maximum).def().commutative;
    assert_eq!(
        swapped(&tensors, tensors_turned)?,
        usize::from(is_commutative)
    );
    Ok(())
}

/// A graph written by hand does not say whose its methods are.
fn by_hand(method: &str, args: usize) -> Result<GraphModule> {
    let mut graph = Graph::new();
    let inputs = (0..args).map(|at| graph.placeholder(&format!("x{at}")));
    let inputs = inputs.map(|input| Ok(fx_nn::ir::Argument::from(input?)));
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let call = graph.call_method(method, inputs, ())?;
    graph.output(call)?;
    GraphModule::new(Default::default(), graph, "ByHand")
}

#[test]
fn what_is_not_known_is_said() -> Result<()> {
    let gm = by_hand("relu", 1)?;
    let relu = gm.graph().find_name("relu").expect("it is there");
    let Callee::Methods(several) = gm.call(relu.id())?.callee().clone() else {
        panic!("both types have it");
    };
    let paths: Vec<&str> = several.iter().map(|f| f.path()).collect();
    assert_eq!(paths, ["array::relu", "fx_nn::ops::relu"]);

    let code = gm.code();
    let first = code.lines().next().unwrap_or_default();
    assert!(
        first.contains("several types have a method `relu`"),
        "{code}"
    );
    let error = Folder::new("Model")
        .source(&gm)
        .expect_err("it may be either");
    for words in [
        "several types have a method `relu`",
        "`array::relu`",
        "`fx_nn::ops::relu`",
    ] {
        assert!(error.to_string().contains(words), "{error}");
    }
    for function in [
        fx_nn::function!(fx_nn::ops::relu),
        fx_nn::function!(array::relu),
    ] {
        let mut pattern = Graph::new();
        let x = pattern.placeholder("x")?;
        let y = pattern.call_function(function, (x,), ())?;
        pattern.output(y)?;
        assert!(SubgraphMatcher::new(pattern)?.find(&gm)?.is_empty());
    }
    assert!(!gm.clone().apply(&MethodsToFunctions)?.changed);

    // A run knows the receiver.
    let x = Array::new(&[-1.0, 2.0]);
    assert_eq!(gm.forward::<Array>(&x)?.data()?, [0.0, 2.0]);
    let x = Tensor::from_vec(vec![-1.0, 2.0], 2)?;
    assert_eq!(gm.forward::<Tensor>(&x)?.to_vec()?, [0.0, 2.0]);
    Ok(())
}

#[test]
fn arguments_decide_where_they_fit_one_type_only() -> Result<()> {
    let mut gm = by_hand("sum", 1)?;
    let sum = gm.graph().find_name("sum").expect("it is there").id();
    gm.graph_mut()
        .node_mut(sum)?
        .update_kwarg("keepdim", true)?;
    let call = gm.call(sum)?;
    let function = call.function().map(|f| f.path());
    assert_eq!(function, Some("fx_nn::ops::sum"));
    Ok(())
}
