//! Products of matrices and tensors.

use super::arithmetic::both;
use super::rules;
use fx_nn::lowering::{Name, Operand, Val};

rules! {
    matmul => |cx, call| {
        let (a, b) = both(cx, call, "x", "other", call.dtype()?)?;
        let name = cx.op("MatMul", &[&a.name, &b.name]);
        call.given(name)
    },
    linear => |cx, call| {
        let dtype = call.dtype()?;
        let x = cx.widened(call, "x")?;
        let weight = cx.operand(&call.val("weight")?, dtype)?;
        let bias = match call.val("bias")? {
            Val::None => None,
            val => Some(cx.operand(&val, dtype)?.name),
        };
        if x.rank() == 2 && weight.rank() == 2 {
            let name = cx.node("Gemm").input(&x.name).input(&weight.name).optional(bias.as_ref()).int("transB", 1).output();
            return call.given(name);
        }
        // The weight keeps its name; engines fold the transposition.
        let turned = match weight.rank() {
            2 => cx.node("Transpose").input(&weight.name).ints("perm", [1, 0]).output(),
            _ => weight.name,
        };
        let mut name = cx.op("MatMul", &[&x.name, &turned]);
        if let Some(bias) = bias {
            name = cx.op("Add", &[&name, &bias]);
        }
        call.given(name)
    },
    addmm => |cx, call| {
        let dtype = call.dtype()?;
        let x = cx.widened(call, "x")?;
        let (a, b) = both(cx, call, "mat1", "mat2", dtype)?;
        let (alpha, beta) = (call.float("alpha")?, call.float("beta")?);
        let name = cx.node("Gemm").input(&a.name).input(&b.name).input(&x.name).float("alpha", alpha).float("beta", beta).output();
        call.given(name)
    },
    einsum => |cx, call| {
        let dtype = call.dtype()?;
        let equation = call.text("equation")?;
        let mut names: Vec<Name> = Vec::new();
        for operand in call.tensors("operands")? {
            let operand: Operand = cx.cast(&operand, dtype)?;
            names.push(operand.name);
        }
        let mut node = cx.node("Einsum").text("equation", &equation);
        for name in &names {
            node = node.input(name);
        }
        let name = node.output();
        call.given(name)
    },
    linalg::det => |cx, call| {
        let x = call.tensor("x")?;
        let name = cx.op("Det", &[&x.name]);
        call.given(name)
    },
}
