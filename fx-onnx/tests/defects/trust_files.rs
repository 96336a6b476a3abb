//! Files with versions that there are not, files whose reading would take more than they are, and what is written of them.

use fx_nn::graph_module::Folder;
use fx_nn::prelude::*;
use fx_onnx::{Export, Load, OnnxExt};

use super::made::{floats, input, int, ints, model, node, numbers, read, refused};

#[test]
fn defect_t3_e14_versions_that_there_are_not_are_refused() {
    let sound = || {
        model(
            20,
            vec![input("x", 1, &["2"])],
            Vec::new(),
            vec![node("Relu", "x", "y", &[])],
        )
    };
    assert_eq!(refused(&sound()), "it was read");
    for version in [-1, 0, 1000, i64::MAX] {
        let mut file = sound();
        file.opset_import[0].version = version;
        let error = refused(&file);
        assert!(
            error.contains(&format!("version {version} of ONNX's operators")),
            "{error}"
        );
    }
    let mut none = sound();
    none.opset_import.clear();
    let error = refused(&none);
    assert!(error.contains("opset_import"), "{error}");
    // Versions of other operators alone say nothing of ONNX's own.
    let mut other = sound();
    other.opset_import[0].domain = "some.lab".into();
    let error = refused(&other);
    assert!(error.contains("opset_import"), "{error}");
    for version in [0, -3, 1 << 60] {
        let mut file = sound();
        file.ir_version = version;
        let error = refused(&file);
        assert!(
            error.contains(&format!("version {version} of ONNX's format")),
            "{error}"
        );
    }
}

#[test]
fn defect_t3_e14_a_step_of_0_is_refused() {
    let sliced = |of: &str, before: Vec<fx_onnx::proto::NodeProto>| {
        let mut nodes = before;
        nodes.push(node("Slice", &format!("{of} a b z s"), "y", &[]));
        model(
            18,
            vec![input("x", 1, &["n", "4"])],
            vec![
                ints("a", &[0], true),
                ints("b", &[2], true),
                ints("z", &[0], true),
                ints("s", &[0], true),
            ],
            nodes,
        )
    };
    let error = refused(&sliced("x", Vec::new()));
    assert!(error.contains("a step of 0"), "{error}");
    let error = refused(&sliced("q", vec![node("Shape", "x", "q", &[])]));
    assert!(error.contains("a step of 0"), "{error}");
}

/// Many small nodes take more memory than their bytes: that is no reason to refuse what fx wrote.
#[test]
fn defect_t3_e14_a_file_of_many_sums_is_read() -> Result<()> {
    const SUMS: usize = 20_000;
    let mut nodes: Vec<_> = (0..SUMS)
        .map(|at| node("Add", &format!("v{at} x"), &format!("v{}", at + 1), &[]))
        .collect();
    nodes[0].input[0] = "x".to_string();
    let file = model(20, vec![input("x", 1, &["1"])], Vec::new(), nodes);
    let gm = read(&file)?;
    let y: Tensor = gm.forward(&Tensor::ones(1)?)?;
    assert_eq!(numbers(&y, &[1])?, [SUMS as f64 + 1.0]);
    // And once more, by fx's own hand.
    let (bytes, _) = gm.to_onnx_bytes(&Export::example(&Tensor::ones(1)?))?;
    let again = Load::new().from_bytes(bytes)?.module;
    assert_eq!(again.graph().len(), gm.graph().len());
    Ok(())
}

/// Sizes that come through tensors are read by a function of this crate, which a written crate names.
#[test]
fn defect_t3_e15_a_file_with_sizes_through_tensors_is_written_as_a_crate() -> Result<()> {
    for op in ["Reshape", "Expand"] {
        let file = model(
            18,
            vec![input("x", 1, &["n", "3"]), input("s", 7, &["2"])],
            Vec::new(),
            vec![node(op, "x s", "y", &[])],
        );
        let gm = read(&file)?;
        let source = Folder::new("Net").source(&gm)?;
        assert!(source.contains("fx_onnx::int_of("), "{source}");
        let folder =
            std::env::temp_dir().join(format!("fx_onnx_crate_{op}_{}", std::process::id()));
        gm.to_folder(&folder, "Net")?;
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).map_err(Error::other)?;
        std::fs::remove_dir_all(&folder).map_err(Error::other)?;
        assert!(
            manifest.contains("fx-onnx = { path = ") && manifest.contains("fx-nn = { path = "),
            "{manifest}"
        );
    }
    Ok(())
}

/// Each list has those before it twice: the file would take all memory while it is read.
#[test]
fn defect_t3_p1_lists_that_double_are_refused_while_a_file_is_read() {
    let mut sizes = vec![node("Shape", "x", "v0", &[])];
    let double = |at: usize| (format!("v{at} v{at}"), format!("v{}", at + 1));
    sizes.extend((0..60).map(|at| {
        let (inputs, output) = double(at);
        node("Concat", &inputs, &output, &[int("axis", 0)])
    }));
    let error = refused(&model(
        18,
        vec![input("x", 1, &["n", "4"])],
        Vec::new(),
        sizes,
    ));
    assert!(error.contains("Limits::constant_bytes"), "{error}");

    let mut sequences = vec![node("SequenceConstruct", "x", "v0", &[])];
    sequences.extend((0..60).map(|at| {
        let (inputs, output) = double(at);
        node("SequenceConstruct", &inputs, &output, &[])
    }));
    sequences.push(node("ConcatFromSequence", "v60", "y", &[int("axis", 0)]));
    let error = refused(&model(
        18,
        vec![input("x", 1, &["n", "4"])],
        Vec::new(),
        sequences,
    ));
    assert!(error.contains("a sequence in a sequence"), "{error}");
}

/// A constant that no layer has as its weight belongs to the computation, and is not counted with the parameters.
#[test]
fn defect_t3_w4_constants_of_a_file_are_no_parameters() -> Result<()> {
    let eye = [1.0, 0.0, 0.0, 1.0];
    let file = model(
        13,
        vec![input("x", 1, &["n", "2"])],
        vec![
            floats("w", &eye, &[2, 2]),
            floats("b", &[1.0, 2.0], &[2]),
            floats("scale", &[3.0, 5.0], &[2]),
        ],
        vec![
            node("Gemm", "x w b", "h", &[int("transB", 1)]),
            node("Mul", "h scale", "y", &[]),
        ],
    );
    let gm = read(&file)?;
    let parameters = gm.named_parameters();
    assert_eq!(parameters.len(), 2, "{:?}", parameters.keys());
    assert!(!parameters.contains_key("scale") && gm.state_dict().contains_key("scale"));
    assert_eq!(nn::trainable_parameters(&gm).len(), 2);
    let y: Tensor = gm.forward(&Tensor::ones((1, 2))?)?;
    assert_eq!(numbers(&y, &[1, 2])?, [6.0, 15.0]);
    Ok(())
}
