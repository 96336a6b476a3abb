//! Every golden with numbers: graph equal but for named exceptions, numbers within 1e-5 of abs-max of PyTorch's
//! float64, traced, interpreted and transformed runs equal to eager ones.

use fx_core::Result;
use fx_goldens::cases::{CASES, MISSING};
use fx_goldens::golden::num_names;

fn passes(name: &str) -> Result<()> {
    let case = CASES.iter().find(|case| case.name == name);
    let case = case.expect("a case of the test's name");
    let row = (case.run)(case.name)?;
    assert!(row.passed(), "{row}");
    Ok(())
}

macro_rules! parity {
    ($($name:ident)*) => {
        const TESTED: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() -> Result<()> {
                passes(stringify!($name))
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
    gpt2_small lstm_classifier mlp mlp_remove_dropout mobilenet_v2 nested resnet18 resnet50 shared_sub siamese
    transformer_encoder_hand tuple_out unet_small vgg11_bn vit_b_16_img64
}

/// A transform that overrides nothing gives ResNet-18 again, as every case does.
#[test]
fn test_interpreter_noop_resnet18() -> Result<()> {
    passes("resnet18")
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
