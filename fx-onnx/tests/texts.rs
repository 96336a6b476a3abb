//! Values that are no tensors of numbers: text, maps, sequences and what may be missing, as inputs, results and constants.

use std::sync::atomic::{AtomicUsize, Ordering};

use fx_nn::cpu::Cpu;
use fx_nn::passes::backend::{Compile, LowerReport};
use fx_nn::prelude::*;
use fx_nn::shapes::Spec;
use fx_nn::trace::IntoArgs;
use fx_onnx::proto::{
    AttributeProto, Dimension, DimensionValue, ElementType, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, SparseTensorProto, TensorProto, TensorShapeProto, TensorType, TypeProto,
    TypeValue, ValueInfoProto,
};
use fx_onnx::{Export, Import, Load, OnnxExt as _, Texts};
use prost::Message;

/// How many files were saved.
static FILES: AtomicUsize = AtomicUsize::new(0);

const FLOAT: i32 = 1;
const WHOLE: i32 = 7;
const TEXT: i32 = 8;
const TRUTH: i32 = 9;

fn tensor_of(elem_type: i32, sizes: &[&str]) -> TypeProto {
    let dim = sizes.iter().map(|size| Dimension {
        value: Some(match size.parse() {
            Ok(number) => DimensionValue::Value(number),
            Err(_) => DimensionValue::Param((*size).to_string()),
        }),
    });
    TypeProto {
        value: Some(TypeValue::Tensor(TensorType {
            elem_type,
            shape: Some(TensorShapeProto { dim: dim.collect() }),
        })),
    }
}

fn sequence_of(of: TypeProto) -> TypeProto {
    TypeProto {
        value: Some(TypeValue::Sequence(Box::new(ElementType {
            elem_type: Some(Box::new(of)),
        }))),
    }
}

fn optional_of(of: TypeProto) -> TypeProto {
    TypeProto {
        value: Some(TypeValue::Optional(Box::new(ElementType {
            elem_type: Some(Box::new(of)),
        }))),
    }
}

fn value(name: &str, of: Option<TypeProto>) -> ValueInfoProto {
    ValueInfoProto {
        name: name.to_string(),
        r#type: of,
        ..ValueInfoProto::default()
    }
}

fn texts(name: &str, all: &[&str]) -> AttributeProto {
    AttributeProto {
        name: name.to_string(),
        r#type: 8,
        strings: all
            .iter()
            .map(|text| text.as_bytes().to_vec().into())
            .collect(),
        ..AttributeProto::default()
    }
}

fn text(name: &str, text: &str) -> AttributeProto {
    AttributeProto {
        name: name.to_string(),
        r#type: 3,
        s: Some(text.as_bytes().to_vec().into()),
        ..AttributeProto::default()
    }
}

fn ints(name: &str, ints: &[i64]) -> AttributeProto {
    AttributeProto {
        name: name.to_string(),
        r#type: 7,
        ints: ints.to_vec(),
        ..AttributeProto::default()
    }
}

fn int(name: &str, i: i64) -> AttributeProto {
    AttributeProto {
        name: name.to_string(),
        r#type: 2,
        i: Some(i),
        ..AttributeProto::default()
    }
}

fn graph(name: &str, g: GraphProto) -> AttributeProto {
    AttributeProto {
        name: name.to_string(),
        r#type: 5,
        g: Some(g),
        ..AttributeProto::default()
    }
}

/// A node; an operator of classic models is written `ml.`, one of ONNX Runtime's own `ms.`.
fn node(op: &str, inputs: &str, outputs: &str, attributes: &[AttributeProto]) -> NodeProto {
    let names = |text: &str| text.split_whitespace().map(String::from).collect();
    let (domain, op) = match op.split_once('.') {
        Some(("ml", op)) => ("ai.onnx.ml", op),
        Some((_, op)) => ("com.microsoft", op),
        None => ("", op),
    };
    NodeProto {
        domain: domain.to_string(),
        op_type: op.to_string(),
        input: names(inputs),
        output: names(outputs),
        attribute: attributes.to_vec(),
        ..NodeProto::default()
    }
}

fn words(name: &str, all: &[&str]) -> TensorProto {
    TensorProto {
        name: name.to_string(),
        dims: vec![all.len() as i64],
        data_type: TEXT,
        string_data: all
            .iter()
            .map(|text| text.as_bytes().to_vec().into())
            .collect(),
        ..TensorProto::default()
    }
}

fn wholes(name: &str, dims: &[i64], all: &[i64]) -> TensorProto {
    TensorProto {
        name: name.to_string(),
        dims: dims.to_vec(),
        data_type: WHOLE,
        raw_data: Some(all.iter().flat_map(|n| n.to_le_bytes()).collect()),
        ..TensorProto::default()
    }
}

fn floats(name: &str, dims: &[i64], all: &[f32]) -> TensorProto {
    TensorProto {
        name: name.to_string(),
        dims: dims.to_vec(),
        data_type: FLOAT,
        raw_data: Some(all.iter().flat_map(|n| n.to_le_bytes()).collect()),
        ..TensorProto::default()
    }
}

/// A file whose results are these.
fn file(
    input: Vec<ValueInfoProto>,
    initializer: Vec<TensorProto>,
    node: Vec<NodeProto>,
    output: &str,
) -> ModelProto {
    let set = |domain: &str, version| OperatorSetIdProto {
        domain: domain.to_string(),
        version,
    };
    ModelProto {
        ir_version: 10,
        opset_import: vec![set("", 20), set("ai.onnx.ml", 3), set("com.microsoft", 1)],
        graph: Some(GraphProto {
            node,
            name: "g".to_string(),
            input,
            initializer,
            output: output
                .split_whitespace()
                .map(|name| value(name, None))
                .collect(),
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    }
}

fn read(model: &ModelProto) -> Result<Import> {
    Load::new().from_bytes(model.encode_to_vec())
}

/// A module by every way that it can go: as read, printed and compiled, saved and loaded, and written as ONNX and read.
fn ways(read: &Import) -> Result<Vec<(&'static str, GraphModule)>> {
    let gm = &read.module;
    assert!(!gm.graph().to_string().is_empty());
    // The tests of a program run beside each other.
    let number = FILES.fetch_add(1, Ordering::Relaxed);
    let name = format!("fx_onnx_texts_{}_{number}.fx", std::process::id());
    let path = std::env::temp_dir().join(name);
    gm.save(&path)?;
    let saved = GraphModule::load(&path)?;
    std::fs::remove_file(&path).map_err(Error::other)?;
    let specs = gm.graph().placeholders().map(|node| {
        let meta = node.meta::<fx_nn::ir::ValueMeta>();
        Spec::of_meta(meta.ok_or_else(|| Error::msg("an input of which nothing is known"))?)
    });
    let export = Export::specs(specs.collect::<Result<Vec<_>>>()?)
        .inputs(read.report.inputs.iter().cloned())
        .outputs(read.report.outputs.iter().cloned());
    let (bytes, _) = gm.to_onnx_bytes(&export)?;
    let written = Load::new().from_bytes(bytes)?.module;
    let compiled = gm.compile(Compile::new(Cpu::new()))?;
    Ok(vec![
        ("read", gm.clone()),
        ("compiled", compiled),
        ("saved", saved),
        ("written", written),
    ])
}

/// Runs a file on every way.
fn each<R: FromValue>(
    model: &ModelProto,
    args: impl IntoArgs + Clone,
    mut check: impl FnMut(&str, R) -> Result<()>,
) -> Result<()> {
    for (way, gm) in ways(&read(model)?)? {
        let given = gm.forward::<R>(args.clone());
        check(
            way,
            given.map_err(|e| Error::msg(format_args!("{way}: {e}")))?,
        )?;
    }
    Ok(())
}

fn rows(all: &[&str]) -> Texts {
    Texts::from(all.to_vec())
}

/// Numbers for text and text for numbers, with what stands for others; batches of any size.
#[test]
fn labels_are_text_on_either_side() -> Result<()> {
    let to_number = node(
        "ml.LabelEncoder",
        "x",
        "n",
        &[
            texts("keys_strings", &["no", "yes"]),
            ints("values_int64s", &[10, 20]),
            int("default_int64", 7),
        ],
    );
    let to_text = node(
        "ml.LabelEncoder",
        "n",
        "y",
        &[
            ints("keys_int64s", &[20, 10]),
            texts("values_strings", &["ja", "nein"]),
            text("default_string", "?"),
        ],
    );
    let x = value("x", Some(tensor_of(TEXT, &["rows"])));
    let model = file(vec![x], vec![], vec![to_number, to_text], "n y");
    for (given, numbers, answers) in [
        (vec!["yes"], vec![20.0], vec!["ja"]),
        (
            vec!["no", "other", "yes"],
            vec![10.0, 7.0, 20.0],
            vec!["nein", "?", "ja"],
        ),
    ] {
        each(&model, &rows(&given), |way, (n, y): (Tensor, Texts)| {
            assert_eq!((n.to_vec()?, y), (numbers.clone(), rows(&answers)), "{way}");
            Ok(())
        })?;
    }
    Ok(())
}

/// A list of text, or of lists, is taken where a tensor of text is; what is none is an error that says so.
#[test]
fn a_run_takes_lists_of_text() -> Result<()> {
    let x = value("x", Some(tensor_of(TEXT, &["rows", "columns"])));
    let turned = node("Transpose", "x", "y", &[]);
    let gm = read(&file(vec![x], vec![], vec![turned], "y"))?.module;
    let list = Value::of(vec![vec!["a", "b", "c"], vec!["d", "e", "f"]]);
    let y: Texts = gm.forward(list)?;
    assert_eq!(y.dims()?, [3, 2]);
    let lists = Vec::<Vec<String>>::from_value(y.to_list()?)?;
    assert_eq!(lists, [["a", "d"], ["b", "e"], ["c", "f"]]);
    let uneven = gm.forward::<Texts>(Value::of(vec![vec!["a"], vec!["b", "c"]]));
    assert!(uneven.is_err_and(|e| e.to_string().contains("Texts")));
    let numbers = gm.forward::<Texts>(&Tensor::ones((2, 3))?);
    assert!(numbers.is_err_and(|e| e.to_string().contains("Texts")));
    Ok(())
}

/// What moves elements of tensors moves those of text, of inputs and of constants.
#[test]
fn what_moves_elements_moves_text() -> Result<()> {
    let x = value("x", Some(tensor_of(TEXT, &["rows", "2"])));
    let flag = value("c", Some(tensor_of(TRUTH, &["rows", "2"])));
    let constants = vec![
        words("word", &["none"]),
        words("other", &["p", "q"]),
        wholes("flat", &[1], &[-1]),
        wholes("picks", &[2, 1], &[1, -1]),
        wholes("from", &[1], &[1]),
        wholes("end", &[1], &[1 << 40]),
    ];
    let nodes = vec![
        node("Where", "c x word", "w", &[]),
        node("Reshape", "w flat", "r", &[]),
        node("Concat", "r other", "all", &[int("axis", 0)]),
        node("Gather", "all picks", "g", &[int("axis", 0)]),
        node("Slice", "all from end", "s", &[]),
        node("Size", "s", "n", &[]),
        node("Equal", "x word", "e", &[]),
        node("Identity", "x", "same", &[]),
    ];
    let model = file(vec![x, flag], constants, nodes, "g s n e same");
    let truth = Tensor::from_vec(vec![1u8, 0, 0, 1], (2, 2))?.ne(0)?;
    let x = Texts::new(["a", "none", "b", "c"], [2, 2])?;
    type Given = (Texts, Texts, Tensor, Tensor, Texts);
    each(&model, (&x, &truth), |way, (g, s, n, e, same): Given| {
        assert_eq!(g, Texts::new(["none", "q"], [2, 1])?, "{way}");
        assert_eq!(s, rows(&["none", "none", "c", "p", "q"]), "{way}");
        assert_eq!(
            (n.item()?, e.to_vec()?),
            (5.0, vec![0.0, 1.0, 0.0, 0.0]),
            "{way}"
        );
        assert_eq!(same, x, "{way}");
        Ok(())
    })
}

/// Graphs of text are printed and written as Rust like others.
#[test]
fn text_is_printed_and_written_as_rust() -> Result<()> {
    let x = value("x", Some(tensor_of(TEXT, &["n"])));
    let nodes = vec![
        node("StringConcat", "x tail", "both", &[]),
        node(
            "ml.LabelEncoder",
            "both",
            "y",
            &[texts("keys_strings", &["a!"]), ints("values_int64s", &[1])],
        ),
    ];
    let gm = read(&file(vec![x], vec![words("tail", &["!"])], nodes, "y"))?.module;
    assert!(gm.graph().to_string().contains("fx_onnx::text_concat"));
    assert!(gm.code().contains("x: &Texts"), "{}", gm.code());
    let parsed: fx_nn::ir::Graph = gm.graph().to_string().parse()?;
    assert_eq!(parsed.to_string(), gm.graph().to_string());
    Ok(())
}

/// The operators of text, one after another.
#[test]
fn text_is_joined_cut_matched_and_cleaned() -> Result<()> {
    let x = value("x", Some(tensor_of(TEXT, &["n"])));
    let constants = vec![words("tail", &[" END"])];
    let nodes = vec![
        node("StringConcat", "x tail", "both", &[]),
        node(
            "StringSplit",
            "both",
            "pieces counts",
            &[text("delimiter", " ")],
        ),
        node(
            "RegexFullMatch",
            "both",
            "is",
            &[text("pattern", r"[a-z]+ END")],
        ),
        node(
            "StringNormalizer",
            "x",
            "clean",
            &[
                text("case_change_action", "UPPER"),
                texts("stopwords", &["the"]),
            ],
        ),
        node(
            "ms.Tokenizer",
            "both",
            "tokens",
            &[
                text("tokenexp", "[A-Za-z]+"),
                text("pad_value", "#"),
                int("mincharnum", 2),
                int("mark", 0),
            ],
        ),
    ];
    let model = file(vec![x], constants, nodes, "pieces counts is clean tokens");
    type Given = (Texts, Tensor, Tensor, Texts, Texts);
    each(
        &model,
        &rows(&["The", "big sun"]),
        |way, (pieces, counts, is, clean, tokens): Given| {
            assert_eq!(
                pieces,
                Texts::new(["The", "END", "", "big", "sun", "END"], [2, 3])?,
                "{way}"
            );
            assert_eq!(
                (counts.to_vec()?, is.to_vec()?),
                (vec![2.0, 3.0], vec![0.0, 0.0]),
                "{way}"
            );
            assert_eq!(clean, rows(&["BIG SUN"]), "{way}");
            assert_eq!(
                tokens,
                Texts::new(["The", "END", "#", "big", "sun", "END"], [2, 3])?,
                "{way}"
            );
            Ok(())
        },
    )
}

/// Numbers as text and back, pieces and marks, as ONNX Runtime has them.
#[test]
fn details_of_text() -> Result<()> {
    let numbers = vec![
        1e10f64,
        1e-7,
        1.0 / 3.0,
        123_456_789.0,
        f64::NAN,
        f64::NEG_INFINITY,
        -0.0,
    ];
    let written = [
        "1e+10",
        "1e-07",
        "0.33333333",
        "1.2345679e+08",
        "NaN",
        "-INF",
        "-0",
    ];
    let count = numbers.len();
    assert_eq!(
        fx_onnx::text_of(&Tensor::from_vec(numbers, count)?)?,
        rows(&written)
    );
    let whole = Tensor::from_vec(vec![i64::MIN, (1 << 60) + 1], 2)?;
    assert_eq!(
        fx_onnx::text_of(&whole)?,
        rows(&["-9223372036854775808", "1152921504606846977"])
    );
    let back = fx_onnx::text_numbers(&rows(&["1.7", " 3", "-1e3", "INF"]), DType::F32)?;
    assert_eq!(
        back.to_vec()?,
        [f64::from(1.7f32), 3.0, -1000.0, f64::INFINITY]
    );
    assert_eq!(
        fx_onnx::text_numbers(&rows(&["1.7", "2"]), DType::I64)?.to_vec()?,
        [1.0, 2.0]
    );
    let wrong = fx_onnx::text_numbers(&rows(&["abc"]), DType::F32).expect_err("no number");
    assert!(wrong.to_string().contains("\"abc\""), "{wrong}");
    for (given, delimiter, most, pieces, counts) in [
        (vec![" a  b c "], "", 1, vec!["a", "b c"], vec![2.0]),
        (
            vec!["a-b-", ""],
            "-",
            -1,
            vec!["a", "b", "", "", "", ""],
            vec![3.0, 0.0],
        ),
        (vec!["a  b c "], "", 0, vec!["a  b c"], vec![1.0]),
    ] {
        let (found, counted) = fx_onnx::text_split(&rows(&given), delimiter, most)?;
        assert_eq!(
            (counted.to_vec()?, found.items()?.len()),
            (counts, pieces.len())
        );
        assert_eq!(found, Texts::new(pieces, found.dims()?.to_vec())?);
    }
    let tokens = |given: &[&str], pattern: &str, separators: &[&str], least| {
        let mark = true;
        fx_onnx::text_tokens(&rows(given), pattern, &rows(separators), "#", mark, least)
    };
    let (start, end) = ("\u{2}", "\u{3}");
    let letters = tokens(&["a bc", "d\u{e9}f"], "", &[""], 1)?;
    let wanted = [
        start, "a", " ", "b", "c", end, start, "d", "\u{e9}", "f", end, "#",
    ];
    assert_eq!(letters, Texts::new(wanted, [2, 6])?);
    let long = tokens(&["a, bb c", "x"], "[a-z]+", &[], 2)?;
    assert_eq!(
        long,
        Texts::new([start, "bb", end, start, end, "#"], [2, 3])?
    );
    assert_eq!(tokens(&["1", "2"], "[a-z]+", &[], 1)?.dims()?, [2, 0]);
    Ok(())
}

/// Categories of text as numbers, as columns, and as counts of words.
#[test]
fn text_becomes_numbers() -> Result<()> {
    let x = value("x", Some(tensor_of(TEXT, &["rows", "2"])));
    let nodes = vec![
        node(
            "ml.OneHotEncoder",
            "x",
            "hot",
            &[texts("cats_strings", &["b", "a"]), int("zeros", 1)],
        ),
        node(
            "ml.CategoryMapper",
            "x",
            "n",
            &[
                texts("cats_strings", &["a", "b"]),
                ints("cats_int64s", &[3, 4]),
            ],
        ),
        node(
            "ml.CategoryMapper",
            "n",
            "back",
            &[
                texts("cats_strings", &["A", "B"]),
                ints("cats_int64s", &[3, 4]),
            ],
        ),
        node(
            "TfIdfVectorizer",
            "x",
            "counts",
            &[
                texts("pool_strings", &["a", "b", "a", "b"]),
                ints("ngram_counts", &[0, 2]),
                ints("ngram_indexes", &[1, 0, 2]),
                int("min_gram_length", 1),
                int("max_gram_length", 2),
                int("max_skip_count", 0),
                text("mode", "TF"),
            ],
        ),
        node("Cast", "n", "written", &[int("to", 8)]),
        node("Cast", "written", "again", &[int("to", 11)]),
    ];
    let model = file(vec![x], vec![], nodes, "hot n back counts written again");
    for count in [1usize, 2] {
        let x = Texts::new(["a", "b", "c", "a"].into_iter().take(2 * count), [count, 2])?;
        type Given = (Tensor, Tensor, Texts, Tensor, Texts, Tensor);
        each(
            &model,
            &x,
            |way, (hot, n, back, counts, written, again): Given| {
                let hots = [0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0];
                assert_eq!(hot.to_vec()?, hots[..4 * count], "{way}");
                assert_eq!(hot.dims()?, [count, 2, 2], "{way}");
                assert_eq!(n.to_vec()?, [3.0, 4.0, -1.0, 3.0][..2 * count], "{way}");
                assert_eq!(
                    back,
                    Texts::new(
                        ["A", "B", "_Unused", "A"].into_iter().take(2 * count),
                        [count, 2]
                    )?
                );
                assert_eq!(
                    counts.to_vec()?,
                    [1.0, 1.0, 1.0, 0.0, 1.0, 0.0][..3 * count],
                    "{way}"
                );
                assert_eq!(written.items()?[..2], ["3".into(), "4".into()], "{way}");
                assert_eq!(
                    (again.dtype()?, again.to_vec()?),
                    (DType::F64, n.to_vec()?),
                    "{way}"
                );
                Ok(())
            },
        )?;
    }
    Ok(())
}

/// A classifier with labels of text: the label of each row, and a dict of scores by label.
#[test]
fn classes_of_text_and_dicts_of_scores() -> Result<()> {
    let attribute = |name: &str, floats: &[f32]| AttributeProto {
        name: name.to_string(),
        r#type: 6,
        floats: floats.to_vec(),
        ..AttributeProto::default()
    };
    let x = value("x", Some(tensor_of(FLOAT, &["rows", "2"])));
    let names = ["low", "mid", "high"];
    let nodes = vec![
        node(
            "ml.LinearClassifier",
            "x",
            "label scores",
            &[
                texts("classlabels_strings", &names),
                attribute("coefficients", &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0]),
                attribute("intercepts", &[0.0, 0.0, -1.0]),
            ],
        ),
        node(
            "ml.ZipMap",
            "scores",
            "maps",
            &[texts("classlabels_strings", &names)],
        ),
    ];
    let model = file(vec![x], vec![], nodes, "label maps");
    for (numbers, labels) in [
        (vec![2.0f32, 0.0], vec!["low"]),
        (vec![0.0, 3.0, 2.0, 2.0], vec!["mid", "high"]),
    ] {
        let x = Tensor::from_vec(numbers.clone(), (labels.len(), 2))?;
        each(&model, &x, |way, (label, maps): (Texts, Value)| {
            assert_eq!(label, rows(&labels), "{way}");
            let Value::List(dicts) = &maps else {
                panic!("{way}: {maps:?}");
            };
            let Value::Dict(first) = &dicts[0] else {
                panic!("{way}: {maps:?}");
            };
            assert_eq!(dicts.len(), labels.len(), "{way}");
            assert_eq!(
                first.keys().map(|key| &**key).collect::<Vec<_>>(),
                names,
                "{way}"
            );
            let Value::Float(low) = first["low"] else {
                panic!("{way}: {maps:?}");
            };
            assert_eq!(low, f64::from(numbers[0]), "{way}");
            Ok(())
        })?;
    }
    Ok(())
}

/// Columns of several inputs beside each other, of any number of rows.
#[test]
fn columns_of_inputs_stand_beside_each_other() -> Result<()> {
    let inputs = vec![
        value("a", Some(tensor_of(FLOAT, &["rows", "2"]))),
        value("b", Some(tensor_of(WHOLE, &["rows"]))),
    ];
    let beside = node(
        "ml.FeatureVectorizer",
        "a b",
        "y",
        &[ints("inputdimensions", &[2, 1])],
    );
    let model = file(inputs, vec![], vec![beside], "y");
    for count in [1usize, 3] {
        let a = Tensor::ones((count, 2))?;
        let b = Tensor::from_vec((0..count as i64).collect(), count)?;
        each(&model, (&a, &b), |way, y: Tensor| {
            assert_eq!(
                (y.dims()?, y.dtype()?),
                (&[count, 3][..], DType::F32),
                "{way}"
            );
            assert_eq!(y.i((.., 2))?.to_vec()?, b.to_vec()?, "{way}");
            Ok(())
        })?;
    }
    Ok(())
}

/// Compiled code leaves what is about text on the host, with the reason in its report, and takes the rest.
#[test]
fn compiled_code_leaves_text_on_the_host() -> Result<()> {
    let x = value("x", Some(tensor_of(TEXT, &["rows"])));
    let nodes = vec![
        node(
            "ml.OneHotEncoder",
            "x",
            "hot",
            &[texts("cats_strings", &["a", "b"])],
        ),
        node("MatMul", "hot w", "m", &[]),
        node("Relu", "m", "r", &[]),
        node("MatMul", "r w", "y", &[]),
    ];
    let w = floats("w", &[2, 2], &[1.0, -1.0, 0.5, 2.0]);
    let gm = read(&file(vec![x], vec![w], nodes, "y"))?.module;
    let fast = gm.compile(Compile::new(Cpu::new()))?;
    let report = fast.meta::<LowerReport>().expect("a report");
    assert!(!report.parts.is_empty());
    let left = report
        .left
        .iter()
        .find(|left| left.name.contains("text_ids"));
    assert!(
        left.is_some_and(|left| left.reason.contains("stay on the host")),
        "{report:?}"
    );
    let x = rows(&["b", "a"]);
    let (y, z): (Tensor, Tensor) = (gm.forward(&x)?, fast.forward(&x)?);
    assert!(fx_nn::allclose(&y, &z, 1e-6, 1e-6)?.close);
    Ok(())
}

/// A sequence is a list of the caller's, of which the reader has to know the length.
#[test]
fn sequences_come_in_and_go_out() -> Result<()> {
    let of = sequence_of(tensor_of(FLOAT, &["n"]));
    let inputs = vec![
        value("s", Some(of)),
        value("x", Some(tensor_of(FLOAT, &["n"]))),
    ];
    let nodes = vec![
        node("SequenceInsert", "s x", "longer", &[]),
        node("ConcatFromSequence", "longer", "y", &[int("axis", 0)]),
    ];
    let model = file(inputs, vec![], nodes, "longer y");
    let unknown = read(&model).expect_err("no length is known").to_string();
    assert!(
        unknown.contains("`s` is a sequence") && unknown.contains("Load::input"),
        "{unknown}"
    );
    let item = Spec::tensor(["n"], DType::F32);
    let load = Load::new().input("s", Spec::list([item.clone(), item]));
    let gm = load.from_bytes(model.encode_to_vec())?.module;
    let (a, b, x) = (
        Tensor::ones(2)?,
        Tensor::zeros(2)?,
        Tensor::full(2, 5.0, DType::F32)?,
    );
    let (longer, y): (Vec<Tensor>, Tensor) = gm.forward((vec![a, b], &x))?;
    assert_eq!(
        (longer.len(), y.to_vec()?),
        (3, vec![1.0, 1.0, 0.0, 0.0, 5.0, 5.0])
    );
    Ok(())
}

/// A branch that a run decides gives a sequence, and text; both sides have as many items.
#[test]
fn a_branch_gives_sequences_and_text() -> Result<()> {
    let side = |op: &str| GraphProto {
        name: op.to_string(),
        node: vec![
            node(op, "x", "t", &[]),
            node("SequenceConstruct", "t x", "own", &[]),
            node("StringConcat", "w tail", "both", &[]),
        ],
        initializer: vec![words("tail", &[op])],
        output: vec![value("own", None), value("both", None)],
        ..GraphProto::default()
    };
    let inputs = vec![
        value("c", Some(tensor_of(TRUTH, &[]))),
        value("x", Some(tensor_of(FLOAT, &["n"]))),
        value("w", Some(tensor_of(TEXT, &["m"]))),
    ];
    let choice = node(
        "If",
        "c",
        "s word",
        &[
            graph("then_branch", side("Neg")),
            graph("else_branch", side("Exp")),
        ],
    );
    let at = node("SequenceAt", "s k", "y", &[]);
    let k = wholes("k", &[], &[0]);
    let gm = read(&file(inputs, vec![k], vec![choice, at], "y word"))?.module;
    let (x, w) = (Tensor::zeros(3)?, rows(&["a", "b"]));
    for (truth, expected, word) in [(true, 0.0, "aNeg"), (false, 1.0, "aExp")] {
        let c = Tensor::full((), truth, DType::Bool)?;
        let (y, words): (Tensor, Texts) = gm.forward((&c, &x, &w))?;
        assert_eq!((y.to_vec()?[0], &*words.items()?[0]), (expected, word));
    }
    Ok(())
}

/// A value that may be missing is left out by name, and is no input then.
#[test]
fn what_may_be_missing_is_left_out() -> Result<()> {
    let maybe = value("maybe", Some(optional_of(tensor_of(FLOAT, &["n"]))));
    let has = node("OptionalHasElement", "maybe", "has", &[]);
    let model = file(vec![maybe], vec![], vec![has], "has").encode_to_vec();
    let without = Load::new()
        .absent("maybe")
        .from_bytes(model.clone())?
        .module;
    assert_eq!(without.forward::<Tensor>(())?.item()?, 0.0);
    let with = Load::new().from_bytes(model.clone())?.module;
    assert_eq!(with.forward::<Tensor>(&Tensor::ones(4)?)?.item()?, 1.0);
    let unknown = Load::new()
        .absent("other")
        .from_bytes(model)
        .expect_err("no such input");
    assert!(unknown.to_string().contains("`other`"), "{unknown}");
    Ok(())
}

/// What a body gives for each item of a sequence.
#[test]
fn a_body_is_mapped_over_a_sequence() -> Result<()> {
    let body = GraphProto {
        name: "body".to_string(),
        input: vec![value("item", None), value("other", None)],
        node: vec![
            node("Add", "item other", "sum", &[]),
            node("Shape", "sum", "size", &[]),
        ],
        output: vec![value("sum", None), value("size", None)],
        ..GraphProto::default()
    };
    let inputs = vec![
        value("x", Some(tensor_of(FLOAT, &["n"]))),
        value("y", Some(tensor_of(FLOAT, &["n"]))),
    ];
    let nodes = vec![
        node("SequenceConstruct", "x y", "s", &[]),
        node("SequenceMap", "s x", "sums sizes", &[graph("body", body)]),
        node("ConcatFromSequence", "sums", "all", &[int("axis", 0)]),
    ];
    let gm = read(&file(inputs, vec![], nodes, "all sizes"))?.module;
    let (x, y) = (Tensor::ones(2)?, Tensor::full(2, 3.0, DType::F32)?);
    let (all, sizes): (Tensor, Vec<Tensor>) = gm.forward((&x, &y))?;
    assert_eq!(all.to_vec()?, [2.0, 2.0, 4.0, 4.0]);
    assert_eq!((sizes.len(), sizes[1].to_vec()?), (2, vec![2.0]));
    Ok(())
}

/// A sequence whose length a run decides: a body is mapped over it, and it is a list among the results.
#[test]
fn a_sequence_of_open_length_is_a_result() -> Result<()> {
    let body = GraphProto {
        name: "body".to_string(),
        input: vec![value("item", None), value("other", None)],
        node: vec![node("Mul", "item other", "product", &[])],
        output: vec![value("product", None)],
        ..GraphProto::default()
    };
    let inputs = vec![
        value("x", Some(tensor_of(FLOAT, &["rows", "2"]))),
        value("k", Some(tensor_of(FLOAT, &["2"]))),
    ];
    let nodes = vec![
        node(
            "SplitToSequence",
            "x",
            "s",
            &[int("axis", 0), int("keepdims", 0)],
        ),
        node("SequenceMap", "s k", "scaled", &[graph("body", body)]),
        node("SequenceLength", "scaled", "count", &[]),
    ];
    let model = file(inputs, vec![], nodes, "scaled count");
    let k = Tensor::from_vec(vec![2.0f32, -1.0], 2)?;
    for count in [1usize, 3] {
        let x = Tensor::ones((count, 2))?;
        each(
            &model,
            (&x, &k),
            |way, (items, length): (Vec<Tensor>, Tensor)| {
                assert_eq!(
                    (items.len(), length.item()?),
                    (count, count as f64),
                    "{way}"
                );
                assert_eq!(items[count - 1].to_vec()?, [2.0, -1.0], "{way}");
                Ok(())
            },
        )?;
    }
    Ok(())
}

/// A loop whose turns a run decides carries a sequence, which is a list among the results.
#[test]
fn a_loop_gives_a_sequence() -> Result<()> {
    let body = GraphProto {
        name: "body".to_string(),
        input: ["turn", "goes", "before"]
            .map(|name| value(name, None))
            .into(),
        node: vec![
            node("Identity", "goes", "on", &[]),
            node("Cast", "turn", "number", &[int("to", 1)]),
            node("Add", "x number", "item", &[]),
            node("SequenceInsert", "before item", "after", &[]),
        ],
        output: ["on", "after"].map(|name| value(name, None)).into(),
        ..GraphProto::default()
    };
    let inputs = vec![
        value("n", Some(tensor_of(WHOLE, &[]))),
        value("x", Some(tensor_of(FLOAT, &["2"]))),
    ];
    let nodes = vec![
        node("SequenceConstruct", "x", "first", &[]),
        node("Loop", "n yes first", "all", &[graph("body", body)]),
    ];
    let yes = TensorProto {
        name: "yes".to_string(),
        data_type: TRUTH,
        raw_data: Some(vec![1u8].into()),
        ..TensorProto::default()
    };
    let model = file(inputs, vec![yes], nodes, "all");
    let x = Tensor::from_vec(vec![10.0f32, 20.0], 2)?;
    for turns in [1i64, 3] {
        let n = Tensor::from_vec(vec![turns], ())?;
        each(&model, (&n, &x), |way, items: Vec<Tensor>| {
            assert_eq!(items.len() as i64, turns + 1, "{way}");
            let last = (turns - 1) as f64;
            assert_eq!(
                items[turns as usize].to_vec()?,
                [10.0 + last, 20.0 + last],
                "{way}"
            );
            Ok(())
        })?;
    }
    Ok(())
}

/// Constants that have places for their elements, counted through or by dim.
#[test]
fn sparse_constants_are_read() -> Result<()> {
    let sparse = |places: TensorProto| SparseTensorProto {
        values: Some(floats("w", &[2], &[5.0, -2.0])),
        indices: Some(places),
        dims: vec![2, 3],
    };
    let x = value("x", Some(tensor_of(FLOAT, &["rows", "2"])));
    let with = |places: TensorProto| {
        let mut model = file(
            vec![x.clone()],
            vec![],
            vec![node("MatMul", "x w", "y", &[])],
            "y",
        );
        if let Some(graph) = &mut model.graph {
            graph.sparse_initializer.push(sparse(places));
        }
        model
    };
    for places in [
        wholes("p", &[2], &[1, 5]),
        wholes("p", &[2, 2], &[0, 1, 1, 2]),
    ] {
        each(&with(places), &Tensor::ones((1, 2))?, |way, y: Tensor| {
            assert_eq!(y.to_vec()?, [0.0, 5.0, -2.0], "{way}");
            Ok(())
        })?;
    }
    for (places, problem) in [
        (wholes("p", &[2], &[1, 6]), "element 1 lies outside"),
        (
            wholes("p", &[2, 2], &[0, -1, 1, 2]),
            "element 0 lies outside",
        ),
        (wholes("p", &[3], &[0, 1, 2]), "3 numbers for their places"),
    ] {
        let error = read(&with(places)).expect_err("places outside").to_string();
        assert!(error.contains("`w`") && error.contains(problem), "{error}");
    }
    Ok(())
}

/// What has no meaning for text, and text that is not what an operator takes, are errors at their node.
#[test]
fn what_text_cannot_be_is_refused() -> Result<()> {
    let x = || value("x", Some(tensor_of(TEXT, &["n"])));
    let number = || value("k", Some(tensor_of(FLOAT, &["n"])));
    for (op, given, attributes, problem) in [
        ("Relu", "x", vec![], "text"),
        ("Add", "x x", vec![], "text"),
        ("StringConcat", "x k", vec![], "numbers where text"),
        (
            "ml.LabelEncoder",
            "k",
            vec![texts("keys_strings", &["a"]), ints("values_int64s", &[1])],
            "numbers where text",
        ),
        (
            "ml.LabelEncoder",
            "x",
            vec![
                texts("keys_strings", &["a", "b"]),
                ints("values_int64s", &[1]),
            ],
            "2 keys and 1 values",
        ),
    ] {
        let model = file(
            vec![x(), number()],
            vec![],
            vec![node(op, given, "y", &attributes)],
            "y",
        );
        let error = read(&model).expect_err(op).to_string();
        assert!(
            error.contains("`y`") && error.contains(problem),
            "{op}: {error}"
        );
    }
    let wrong = node("RegexFullMatch", "x", "y", &[text("pattern", "a)(")]);
    let gm = read(&file(vec![x()], vec![], vec![wrong], "y"))?.module;
    let error = gm
        .forward::<Tensor>(&rows(&["a"]))
        .expect_err("no pattern")
        .to_string();
    assert!(error.contains("text_matches"), "{error}");
    // Each node doubles a constant: what is made of a file is bounded.
    let name = |at: usize| format!("t{at}");
    let doubled = (0..60).map(|at| {
        let inputs = format!("{} {}", name(at), name(at));
        node("StringConcat", &inputs, &name(at + 1), &[])
    });
    let wide = [
        node("Expand", "t0 size", "y", &[]),
        node("StringConcat", "x y", "z", &[]),
    ];
    let size = wholes("size", &[2], &[1 << 20, 1 << 20]);
    for (nodes, output) in [(doubled.collect::<Vec<_>>(), "t60"), (wide.into(), "z")] {
        let constants = vec![words("t0", &["12345678"]), size.clone()];
        let error = read(&file(vec![x()], constants, nodes, output));
        let error = error.expect_err("no memory holds it").to_string();
        assert!(error.contains("Limits::constant_bytes"), "{error}");
    }
    let mut short = words("w", &["a", "b"]);
    short.dims = vec![3];
    let model = file(
        vec![x()],
        vec![short],
        vec![node("StringConcat", "x w", "y", &[])],
        "y",
    );
    let error = read(&model).expect_err("two texts for three").to_string();
    assert!(
        error.contains("`w`") && error.contains("2 texts"),
        "{error}"
    );
    Ok(())
}
