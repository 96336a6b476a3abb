//! Mamba's selective scan: a loop over the words that carries the state.

use fx_nn::ir::TensorMeta;
use fx_nn::models::hf::mamba::selective_scan;
use fx_nn::value::{DType, Dim};
use fx_nn::{Result, function, function_table};

use crate::out::Rule;
use crate::out::context::{Cx, put_all, value_info};
use fx_nn::lowering::OpCall;
use fx_nn::lowering::{Name, Operand, Val};

function_table! { Rule {
    function!(selective_scan) => Rule::new(selective),
} }

fn selective(cx: &mut Cx, call: &OpCall<'_>) -> Result<Val> {
    let u = call.tensor("u")?;
    let mut wide = |name: &str| cx.cast(&call.tensor(name)?, DType::F32);
    let (delta, a, b, state) = (wide("delta")?, wide("a")?, wide("b")?, wide("state")?);
    let wide_u = cx.cast(&u, DType::F32)?;
    // What is kept of the state and what is added to it, `[N, L, I, S]`.
    let (two, three) = (cx.i64s(&[2]), cx.i64s(&[3]));
    let step = cx.op("Unsqueeze", &[&delta.name, &three]);
    let rate = cx.op("Mul", &[&step, &a.name]);
    let kept = cx.op("Exp", &[&rate]);
    let b = cx.op("Unsqueeze", &[&b.name, &two]);
    let read = cx.op("Unsqueeze", &[&wide_u.name, &three]);
    let weight = cx.op("Mul", &[&step, &b]);
    let added = cx.op("Mul", &[&weight, &read]);

    let count = cx.size_scalar(&u.shape[1])?;
    let [last, states] = turns(cx, &count, &state, &kept, &added)?;
    let states = cx
        .node("Transpose")
        .input(&states)
        .ints("perm", [1, 0, 2, 3])
        .output();
    let mut shape: Vec<Dim> = state.shape.clone();
    shape.insert(1, u.shape[1].clone());
    let states = Operand {
        name: states,
        dtype: DType::F32,
        shape,
    };
    let (states, c) = (
        cx.cast(&states, u.dtype)?,
        cx.cast(&call.tensor("c")?, u.dtype)?,
    );
    let c = cx.op("Unsqueeze", &[&c.name, &three]);
    let y = cx.op("MatMul", &[&states.name, &c]);
    let y = cx.op("Squeeze", &[&y, &three]);
    call.all_given(vec![y, last])
}

/// The loop: the last state, and all states `[L, N, I, S]`.
fn turns(
    cx: &mut Cx,
    count: &Name,
    state: &Operand,
    kept: &Name,
    added: &Name,
) -> Result<[Name; 2]> {
    let scalar = |dtype| TensorMeta::new([0usize; 0]).dtype(dtype);
    let carried = TensorMeta::new(state.shape.iter().cloned()).dtype(DType::F32);
    cx.open();
    let (turn, goes_on, before) = (cx.fresh("turn"), cx.fresh("goes_on"), cx.fresh("carried"));
    let at = |cx: &mut Cx, of: &Name| {
        cx.node("Gather")
            .input(of)
            .input(&turn)
            .int("axis", 1)
            .output()
    };
    let (kept, added) = (at(cx, kept), at(cx, added));
    let rest = cx.op("Mul", &[&kept, &before]);
    let after = cx.op("Add", &[&rest, &added]);
    let (still, seen) = (cx.op("Identity", &[&goes_on]), cx.op("Identity", &[&after]));
    let (mut body, marks) = cx.close("body");
    put_all(marks, &mut body.node);
    body.input = vec![
        value_info(&turn, &scalar(DType::I64))?,
        value_info(&goes_on, &scalar(DType::Bool))?,
        value_info(&before, &carried)?,
    ];
    body.output = vec![
        value_info(&still, &scalar(DType::Bool))?,
        value_info(&after, &carried)?,
        value_info(&seen, &carried)?,
    ];
    let empty: Option<&Name> = None;
    let node = cx
        .node("Loop")
        .input(count)
        .optional(empty)
        .input(&state.name);
    let names = node.graph("body", body).outputs(2);
    Ok([names[0].clone(), names[1].clone()])
}
