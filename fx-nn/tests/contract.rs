//! What a graph module's shapes hold for: listed, saved, and checked when a run begins.

use fx_nn::function_table;
use fx_nn::ir::ValueMeta;
use fx_nn::models::gpt2;
use fx_nn::module::ComponentExt;
use fx_nn::prelude::*;
use fx_nn::run::Interpreter;
use fx_nn::shapes::{ShapeRule, Spec, spec};

fn sum() -> Result<GraphModule> {
    symbolic_trace(traced!(|x: &Tensor, y: &Tensor| x + y))
}

fn error(result: Result<Tensor>) -> String {
    result.map_or_else(|e| e.to_string(), |y| format!("no error, but {y:?}"))
}

#[test]
fn a_run_that_breaks_a_guard_names_it_with_its_line() -> Result<()> {
    let mut model = gpt2::Gpt2::new(&gpt2::Config {
        vocab_size: 50,
        block_size: 8,
        n_layer: 1,
        n_head: 2,
        n_embd: 16,
        dropout: 0.0,
    })?;
    model.eval();
    let mut gm = symbolic_trace(&model)?;
    gm.infer_shapes(&[spec!["batch", "t"; I64]])?;
    let ids = |batch: usize, t: usize| Tensor::zeros((batch, t))?.to_dtype(DType::I64);
    gm.forward::<Tensor>(&ids(3, 8)?)?;
    gm.forward::<Tensor>(&ids(3, 7)?)?;
    let found = error(gm.forward(&ids(3, 9)?));
    let wanted = "argument `idx` is int64[3, 9]: `t` is 9, and the graph is for `";
    assert!(
        found.contains(wanted) && found.contains("8` (") && found.contains("gpt2.rs:"),
        "{found}"
    );
    let readable = gm.print_readable();
    assert!(readable.contains("    // guard: "), "{readable}");
    assert!(gm.unguarded());
    // The model's own error now.
    assert!(!error(gm.forward(&ids(3, 9)?)).contains("the graph is for"));
    assert!(!gm.unguarded() && gm.contract().is_none());
    Ok(())
}

#[test]
fn inputs_are_compared_dim_by_dim() -> Result<()> {
    let mut gm = sum()?;
    gm.infer_shapes(&[spec!["n", 3; F32], spec!["n", 3; F32]])?;
    let of = |rows: usize, columns: usize| Tensor::ones((rows, columns));
    gm.forward::<Tensor>((&of(2, 3)?, &of(2, 3)?))?;
    let cases = [
        (
            of(2, 4)?,
            of(2, 3)?,
            "argument `x` is float32[2, 4]: the graph is for float32[n, 3]: dim 1 is 4, not 3",
        ),
        (
            of(2, 3)?,
            of(1, 3)?,
            "argument `y` is float32[1, 3]: the graph is for float32[n, 3]: dim 0 is 1, and 2 elsewhere",
        ),
        (
            Tensor::ones(3)?,
            of(1, 3)?,
            "argument `x` is float32[3]: the graph is for float32[n, 3]: it has 1 dims, not 2",
        ),
        (
            of(2, 3)?.to_dtype(DType::F64)?,
            of(2, 3)?,
            "it is of float64, not of float32",
        ),
        (
            of(0, 3)?,
            of(0, 3)?,
            "`n` is 0, and the graph is for `n >= 1`",
        ),
    ];
    for (x, y, wanted) in cases {
        let found = error(gm.forward((&x, &y)));
        assert!(found.contains(wanted), "{found}\n{wanted}");
        assert!(
            found.ends_with(
                "Infer its shapes with other specs, or drop the guards with `unguarded`"
            ),
            "{found}"
        );
    }
    Ok(())
}

#[test]
fn expressions_are_solved() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.view((-1, 2))))?;
    gm.infer_shapes(&[spec!["2*w"; F32]])?;
    assert_eq!(gm.forward::<Tensor>(&Tensor::ones(6)?)?.dims()?, [3, 2]);
    let found = error(gm.forward(&Tensor::ones(5)?));
    assert!(
        found.contains("argument `x` is float32[5]: the graph is for float32[2*w]: 2*w is not 5"),
        "{found}"
    );
    Ok(())
}

#[test]
fn constraints_of_the_user_simplify_shapes_and_are_checked() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.view((x.size(0)?, -1, 8))))?;
    let spec = spec!["n", "m"; F32];
    let env = gm.infer_shapes(&[spec
        .clone()
        .constrained("m % 16 == 0")
        .constrained("n <= 4")])?;
    let claims: Vec<String> = env
        .guards()
        .iter()
        .map(|guard| guard.claim.to_string())
        .collect();
    assert_eq!(claims, ["m % 16 == 0", "n <= 4"]);
    gm.forward::<Tensor>(&Tensor::ones((4, 32))?)?;
    let found = error(gm.forward(&Tensor::ones((4, 8))?));
    assert!(
        found.contains("`m` is 8, and the graph is for `m % 16 == 0` (")
            && found.contains("contract.rs:"),
        "{found}"
    );
    let found = error(gm.forward(&Tensor::ones((5, 16))?));
    assert!(
        found.contains("`n` is 5, and the graph is for `n <= 4` ("),
        "{found}"
    );

    let wrong = |spec: Spec| gm.clone().infer_shapes(&[spec]).unwrap_err().to_string();
    let found = wrong(spec.clone().constrained("n <= 4").constrained("n > 4"));
    assert!(
        found.contains("contract.rs:") && found.contains("`n >= 5` cannot hold: n <= 4"),
        "{found}"
    );
    let found = wrong(spec.clone().constrained("n == 8").constrained("n == 7"));
    assert!(found.contains("`n == 7` cannot hold: n == 8"), "{found}");
    assert!(wrong(spec.clone().constrained("n 4")).contains("compares nothing"));
    // A constraint that a rule contradicts is an error at the node.
    let found = wrong(spec.constrained("m == 7"));
    assert!(found.contains("%view") || found.contains("view"), "{found}");
    Ok(())
}

#[test]
fn a_symbol_gets_a_value() -> Result<()> {
    let f = traced!(|x: &Tensor| x.view(((x.size(0)? * 2)?, -1)));
    let mut gm = symbolic_trace(f)?;
    gm.infer_shapes(&[spec!["n", "m"; F32]])?;
    assert!(
        gm.clone()
            .specialise("k", 2)
            .unwrap_err()
            .to_string()
            .contains("no size is `k`")
    );
    let odd = gm.specialise("m", 4);
    odd?;
    gm.specialise("n", 3)?;
    assert_eq!(
        gm.graph().to_string().matches("size").count(),
        0,
        "{}",
        gm.graph()
    );
    assert_eq!(
        gm.forward::<Tensor>(&Tensor::ones((3, 4))?)?.dims()?,
        [6, 2]
    );
    let found = error(gm.forward(&Tensor::ones((2, 4))?));
    assert!(
        found.contains("the graph is for float32[3, 4]: dim 0 is 2, not 3"),
        "{found}"
    );
    Ok(())
}

#[test]
fn a_value_that_breaks_a_guard_is_refused() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.view((x.size(0)?, -1, 8))))?;
    gm.infer_shapes(&[spec!["n", "m"; F32]])?;
    let before = gm.to_bytes()?;
    let found = gm.specialise("m", 12).unwrap_err().to_string();
    assert!(
        found.contains("`m` cannot be 12: the graph is for m % 8 == 0   ("),
        "{found}"
    );
    assert_eq!(gm.to_bytes()?, before);
    gm.specialise("m", 16)
}

#[test]
fn files_copies_and_edits_keep_it() -> Result<()> {
    let mut gm = symbolic_trace(traced!(|x: &Tensor| x.view((x.size(0)?, -1, 8))?.relu()))?;
    gm.infer_shapes(&[spec!["n", "m"; F32]])?;
    let wrong = Tensor::ones((2, 6))?;
    let found = error(gm.forward(&wrong));
    let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
    assert_eq!(loaded.contract(), gm.contract());
    assert_eq!(error(loaded.forward(&wrong)), found);
    assert_eq!(error(gm.clone().forward(&wrong)), found);
    let relu = gm.graph().find_name("relu").map(|node| node.id());
    let relu = relu.ok_or_else(|| Error::msg("it calls relu"))?;
    gm.append_before(relu, |_| Ok::<Value, Error>(Value::None))
        .unwrap_err();
    assert_eq!(error(gm.forward(&wrong)), found);
    // Other inputs: it is not for them.
    let input = gm.graph().placeholders().next().map(|node| node.id());
    let input = input.ok_or_else(|| Error::msg("it has an input"))?;
    gm.graph_mut().inserting_before(input)?.placeholder("z")?;
    assert!(gm.contract().is_none());
    Ok(())
}

/// The first half of the rows.
#[wrap]
fn half(x: &Tensor) -> Result<Tensor> {
    x.narrow(0, 0, x.size(0)?.floordiv(2)?)
}

// Wrong on purpose: as many rows as before.
function_table! { ShapeRule {
    function!(half) => ShapeRule(|call| Ok(ValueMeta::from(call.tensor("x")?.clone()))),
} }

#[test]
fn a_wrong_rule_fails_and_gives_no_wrong_number() -> Result<()> {
    struct AsItIs;
    impl Interpreter for AsItIs {}
    let mean = || {
        traced!(|x: &Tensor| {
            let y = half(x)?;
            ops::sum(&y, .., false)? / y.size(0)?
        })
    };
    let x = Tensor::ones((8, 2))?;
    let wrong = "relies on float32[8, 2]: dim 0 is 4, not 8; correct the shape rule of the call";
    let mut gm = Trace::new(mean())
        .inputs([spec![8, 2; F32]])
        .graph_module()?;
    assert!(gm.graph().find_name("size").is_none(), "the size is folded");
    let found = error(gm.forward(&x));
    assert!(
        found.contains(wrong) && found.contains("%half (") && found.contains("contract.rs:"),
        "{found}"
    );
    let found = error(gm.interpret(&mut AsItIs, &x));
    assert!(found.contains(wrong), "{found}");
    let loaded = GraphModule::from_bytes(&gm.to_bytes()?)?;
    let found = error(loaded.forward(&x));
    assert!(found.contains(wrong), "{found}");
    // Who switches the guards off has the numbers of the rule.
    assert!(gm.unguarded());
    assert_eq!(gm.forward::<Tensor>(&x)?.item()?, 1.0);

    let mut named = symbolic_trace(mean())?;
    named.infer_shapes(&[spec!["n", 2; F32]])?;
    assert_eq!(named.forward::<Tensor>(&x)?.item()?, 2.0);
    named.specialise("n", 8)?;
    let found = error(named.forward(&x));
    assert!(found.contains(wrong), "{found}");
    Ok(())
}
