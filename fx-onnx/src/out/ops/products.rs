//! Products of matrices and tensors.

use super::arithmetic::both;
use super::rules;
use fx_nn::lowering::{Name, Operand, Val};

rules! {
    matmul => |cx, call| {
        let (a, b) = both(cx, call, "x", "other", call.dtype()?)?;
        let name = cx.cast_op("MatMul", &[&a, &b])?;
        call.given(name)
    },
    linear => |cx, call| {
        let dtype = call.dtype()?;
        let x = cx.widened(call, "x")?;
        let x = cx.carried("MatMul", &x)?;
        let weight = cx.operand(&call.val("weight")?, dtype)?;
        let weight = cx.cast(&weight, x.dtype)?;
        let bias = match call.val("bias")? {
            Val::None => None,
            val => {
                let bias = cx.operand(&val, dtype)?;
                Some(cx.cast(&bias, x.dtype)?.name)
            }
        };
        if x.rank() == 2 && weight.rank() == 2 {
            let name = cx.node("Gemm").input(&x.name).input(&weight.name).optional(bias.as_ref()).int("transB", 1).output();
            let name = cx.given_as(name, x.dtype, dtype)?;
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
        let name = cx.given_as(name, x.dtype, dtype)?;
        call.given(name)
    },
    addmm => |cx, call| {
        let dtype = call.dtype()?;
        let x = cx.widened(call, "x")?;
        let x = cx.carried("Gemm", &x)?;
        let (a, b) = both(cx, call, "mat1", "mat2", dtype)?;
        let (a, b) = (cx.cast(&a, x.dtype)?, cx.cast(&b, x.dtype)?);
        let (alpha, beta) = (call.float("alpha")?, call.float("beta")?);
        let name = cx.node("Gemm").input(&a.name).input(&b.name).input(&x.name).float("alpha", alpha).float("beta", beta).output();
        let name = cx.given_as(name, x.dtype, dtype)?;
        call.given(name)
    },
    einsum => |cx, call| {
        let dtype = call.dtype()?;
        let equation = call.text("equation")?;
        let (mut names, mut carrier): (Vec<Name>, _) = (Vec::new(), dtype);
        for operand in call.tensors("operands")? {
            let operand: Operand = cx.cast(&operand, dtype)?;
            let operand = cx.carried("Einsum", &operand)?;
            carrier = operand.dtype;
            names.push(operand.name);
        }
        let mut node = cx.node("Einsum").text("equation", &equation);
        for name in &names {
            node = node.input(name);
        }
        let name = node.output();
        let name = cx.given_as(name, carrier, dtype)?;
        call.given(name)
    },
    linalg::det => |cx, call| {
        let x = call.tensor("x")?;
        let name = cx.cast_op("Det", &[&x])?;
        call.given(name)
    },
}
