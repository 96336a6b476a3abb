//! Every golden with numbers: graph equal but for named exceptions, numbers within 1e-5 of abs-max of PyTorch's
//! float64, traced, interpreted and transformed runs equal to eager ones, compiled ones close to them, and so the source that is generated of it, and of
//! what no golden is of.

use std::collections::HashMap;

use fx_core::Result;
use fx_core::ir::{Argument, Graph};
use fx_core::module::{ComponentExt, Module};
use fx_core::trace::{FromValue, Trace, TraceContext, Tracer};
use fx_core::value::{NodeId, Value};
use fx_goldens::cases::compiled::Compiled;
use fx_goldens::cases::{CASES, MISSING, Row};
use fx_goldens::generated;
use fx_goldens::golden::num_names;
use fx_goldens::model::{max_abs_err, trace_with};

mod emitted;

use emitted::{Code, EMITTED, Emitted, PRIVATE};

fn row(name: &str) -> Result<Row> {
    let case = CASES.iter().find(|case| case.name == name);
    let case = case.expect("a case of the test's name");
    let row = (case.run)(case.name)?;
    assert!(row.passed(), "{row}");
    let compiled = Compiled::of(row.name, &row.made)?;
    assert!(compiled.passed(), "{compiled}");
    Ok(row)
}

/// The source is the one that is kept; what it was compiled to gives the same numbers, and traces to the same graph.
fn generated_is_the_same<M: Module>(
    row: &Row,
    kept: &str,
    take: impl FnOnce(&mut fx_core::GraphModule) -> Result<M>,
) -> Result<()> {
    is_kept(row.name, &generated::source(&row.made.traced)?, kept);
    let module = take(&mut row.made.traced.clone())?;
    let absent = vec![Value::None; module.params().len().saturating_sub(row.made.inputs.len())];
    let lent: Vec<&Value> = row.made.inputs.iter().chain(&absent).collect();
    let mut result = Value::None;
    module.run(&lent, &mut result)?;
    assert_eq!(max_abs_err(&row.made.result, &result)?, 0.0);
    let leaves = row.made.traced.attributes().modules.keys();
    let tracer = AsBefore(leaves.map(|path| path.to_string()).collect());
    let trace = trace_with(&module, row.made.inputs.len());
    let again = trace.tracer(tracer).graph()?;
    assert_eq!(shape(&again), shape(row.made.traced.graph()));
    Ok(())
}

fn is_kept(name: &str, source: &str, kept: &str) {
    assert!(
        source == kept,
        "the generated source of {name} is another than the one that is kept: look at what `cargo run -p fx-goldens --example keep_source {name}` changes"
    );
}

/// What source was compiled to gives the same numbers as the graph module, and traces to the same graph.
fn does_the_same(emitted: &Emitted, module: &dyn Module) -> Result<()> {
    let traced = &emitted.traced;
    let lent: Vec<&Value> = emitted.inputs.iter().collect();
    let (mut expected, mut found) = (Value::None, Value::None);
    traced.run(&lent, &mut expected)?;
    module.run(&lent, &mut found)?;
    assert_eq!(flat(&expected)?, flat(&found)?);
    let leaves = traced.attributes().modules.keys();
    let tracer = AsBefore(leaves.map(|path| path.to_string()).collect());
    let mut again = Trace::new(module).tracer(tracer);
    for (name, value) in &emitted.bound {
        again = again.concrete(name, value.clone());
    }
    assert_eq!(shape(&again.graph()?), shape(traced.graph()));
    Ok(())
}

/// The tensors and plain values of a result as text, in their structure.
fn flat(value: &Value) -> Result<Vec<String>> {
    let mut found = vec![fx_core::value::Tree::of(value)?.to_string()];
    let mut problem = Ok(());
    value.for_each(
        &mut |inner| match inner.as_object().map(fx_core::tensor::Object::to_data) {
            Some(Ok(data)) => match data.bytes() {
                Ok(bytes) => found.push(format!("{:?} {bytes:?}", data.shape())),
                Err(error) => problem = Err(error),
            },
            Some(Err(error)) => problem = Err(error),
            None => found.push(inner.to_string()),
        },
    );
    problem.map(|()| found)
}

fn emitted(name: &str) -> Result<(Emitted, &'static Code)> {
    let found = EMITTED.iter().find(|(known, ..)| *known == name);
    let (_, make, code) = found.expect("a module of the test's name");
    Ok((make()?, code))
}

/// Keeps the modules that a graph calls as leaves.
struct AsBefore(Vec<String>);

impl Tracer for AsBefore {
    fn is_leaf_module(&self, _: &TraceContext, _: &dyn Module, path: &str) -> bool {
        self.0.iter().any(|leaf| leaf == path)
    }
}

/// A graph without its nodes' names: an edited node keeps a name that another function gave.
fn shape(graph: &Graph) -> Vec<String> {
    let place: HashMap<NodeId, usize> = graph.nodes().zip(0..).map(|(n, i)| (n.id(), i)).collect();
    let shown = |arg: &Argument| {
        let numbered = arg.map_nodes(&mut |id| Argument::from(format!("%{}", place[&id])));
        format!("{numbered:?}")
    };
    graph
        .nodes()
        .map(|node| {
            let args: Vec<String> = node.args().iter().map(shown).collect();
            let kwargs = node.kwargs().iter();
            let kwargs: Vec<String> = kwargs
                .map(|(k, arg)| format!("{k}={}", shown(arg)))
                .collect();
            format!(
                "{} {} {args:?} {kwargs:?}",
                node.opcode().name(),
                node.target()
            )
        })
        .collect()
}

macro_rules! parity {
    ($($name:ident)*; $($ungenerated:ident)*; $($emitted:ident)*; $($function:ident)*; $($model:ident)*) => {
        const TESTED: &[&str] = &[$(stringify!($name),)* $(stringify!($ungenerated)),*];
        const TESTED_EMITTED: &[&str] = &[$(stringify!($emitted),)*];
        #[allow(dead_code, clippy::all, reason = "as it is generated")]
        mod generated_source {
            $(pub mod $name;)*
            $(pub mod $emitted;)*
            $(pub mod $function;)*
            $(pub mod $model;)*
        }
        $(
            #[test]
            fn $emitted() -> Result<()> {
                let (made, _) = emitted(stringify!($emitted))?;
                let kept = include_str!(concat!("generated_source/", stringify!($emitted), ".rs"));
                is_kept(stringify!($emitted), &generated::source(&made.traced)?, kept);
                let module = generated_source::$emitted::Generated::take(&mut made.traced.clone())?;
                does_the_same(&made, &module)
            }
        )*
        $(
            #[test]
            fn $function() -> Result<()> {
                let name = stringify!($function).trim_start_matches("code_");
                let (made, code) = emitted(name)?;
                let Code::Function(imports) = code else {
                    panic!("{name} is a function's");
                };
                let kept = include_str!(concat!("generated_source/", stringify!($function), ".rs"));
                is_kept(name, &generated::code_of_function(&made.traced, imports), kept);
                does_the_same(&made, &generated_source::$function::Code { tag: Default::default() })
            }
        )*
        $(
            #[test]
            fn $model() -> Result<()> {
                let name = stringify!($model).trim_start_matches("code_");
                let (made, code) = emitted(name)?;
                let Code::Model(model) = code else {
                    panic!("{name} is a model's");
                };
                let kept = include_str!(concat!("generated_source/", stringify!($model), ".rs"));
                is_kept(name, &generated::code_of_model(&made.traced, model), kept);
                let mut same = generated_source::$model::Code(emitted::$model()?);
                // Its weights are the graph module's.
                let state: fx_core::IndexMap<String, fx_nn::Tensor> = made
                    .traced
                    .state_dict()
                    .into_iter()
                    .map(|(path, value)| Ok((path.to_string(), fx_nn::Tensor::from_value(value)?)))
                    .collect::<Result<_>>()?;
                fx_nn::weights::load_state_dict(&mut same, &state)?;
                same.eval();
                does_the_same(&made, &same)
            }
        )*
        $(
            #[test]
            fn $name() -> Result<()> {
                let kept = include_str!(concat!("generated_source/", stringify!($name), ".rs"));
                let take = generated_source::$name::Generated::take;
                generated_is_the_same(&row(stringify!($name))?, kept, take)
            }
        )*
        $(
            #[test]
            fn $ungenerated() -> Result<()> {
                row(stringify!($ungenerated)).map(|_| ())
            }
        )*
    };
}

parity! {
    doc_add_operator doc_add_to_mul_after doc_add_to_mul_before doc_insert_relu_after doc_insert_relu_after_cb
    doc_insert_relu_before doc_leaf_modules doc_leaf_modules_custom doc_mymodule doc_negsigm_before
    doc_negsigm_interpreter doc_negsigm_transformer_after doc_relu_decompose_after
    doc_relu_decompose_before doc_replace_pattern_before doc_replace_pattern_after doc_replace_pattern2_after doc_static_flow_with_activation
    doc_static_flow_without_activation doc_tensor_constant doc_topk doc_two_layer_net doc_wrap_custom_function
    doc_wrap_normalize feat_dead_code feat_deep_names feat_methods_vs_functions feat_operators
    feat_shape_getattr feat_slicing feat_strings feat_unpack alexnet autoencoder bert_small dict_out
    gpt2_small lstm_classifier mlp mlp_remove_dropout mobilenet_v2 nested resnet18 resnet18_fused resnet50 shared_sub siamese
    transformer_encoder_hand tuple_out unet_fused unet_small vgg11_bn vit_b_16_img64;;
    example_concrete_args example_decompose example_decomposition_table example_diffusion_unet example_llama
    example_custom_tracer example_invert example_leaf_policy example_quickstart example_replace_op
    example_replace_pattern example_retrace example_transformer names tree_in tree_in_trees tree_mixed tree_out model_gpt2 model_mlp model_siamese;
    code_example_decomposition_table code_tree_in code_tree_in_trees code_tree_mixed code_tree_out;
    code_model_mlp code_model_siamese
}

#[test]
fn what_is_emitted_is_tested() {
    let known: Vec<&str> = EMITTED.iter().map(|(name, ..)| *name).collect();
    let mut tested = TESTED_EMITTED.to_vec();
    tested.sort_unstable();
    let mut sorted = known.clone();
    sorted.sort_unstable();
    assert_eq!(tested, sorted);
}

#[test]
fn what_no_crate_can_name_is_refused() -> Result<()> {
    for (example, make, private) in PRIVATE {
        let refused = generated::source(&make()?.0).expect_err("what is private is refused");
        assert!(
            refused.to_string().contains(private),
            "{example}: {refused}"
        );
    }
    Ok(())
}

#[test]
fn every_golden_with_numbers_is_tested_or_has_a_reason() {
    let mut known: Vec<&str> = TESTED.to_vec();
    known.sort_unstable();
    let mut cases: Vec<&str> = CASES.iter().map(|case| case.name).collect();
    cases.sort_unstable();
    assert_eq!(known, cases);
    known.extend(MISSING.iter().map(|(name, _)| name));
    known.sort_unstable();
    assert_eq!(
        known,
        num_names().expect("the goldens are in the repository")
    );
}
