//! Defects once found in scalars, each by its number: none may come back. The numbers are
//! PyTorch's.

use fx_core::value::{Float, Int};
use fx_nn::prelude::*;
use fx_nn::{Number, Tensor};

const BIG: i64 = (1 << 53) + 1;

fn bytes(data: &[u8]) -> Result<Tensor> {
    Tensor::from_vec(data.to_vec(), data.len())
}

fn ints(data: &[i64]) -> Result<Tensor> {
    Tensor::from_vec(data.to_vec(), data.len())
}

fn bools(data: &[u8]) -> Result<Tensor> {
    bytes(data)?.to_dtype(DType::Bool)
}

/// The type and the elements, each read in 64 bits.
#[track_caller]
fn is(x: &Tensor, dtype: DType, data: &[i64]) -> Result<()> {
    let wide = x.to_dtype(DType::I64)?.flatten(0, -1)?;
    let found = wide.candle()?.to_vec1::<i64>().map_err(Error::other)?;
    assert_eq!((x.dtype()?, found.as_slice()), (dtype, data));
    Ok(())
}

/// The same, of truth values as they are held.
#[track_caller]
fn holds(x: &Tensor, data: &[u8]) -> Result<()> {
    assert_eq!(x.dtype()?, DType::Bool);
    let flat = x.candle()?.flatten_all().map_err(Error::other)?;
    assert_eq!(flat.to_vec1::<u8>().map_err(Error::other)?, data);
    Ok(())
}

#[test]
fn defect_r05_integer_scalars_wrap_around_and_are_exact() -> Result<()> {
    let x = bytes(&[0, 5, 255])?;
    is(&(&x + (-1))?, DType::U8, &[255, 4, 254])?;
    is(&(&x + 300)?, DType::U8, &[44, 49, 43])?;
    is(&(300 - &x)?, DType::U8, &[44, 39, 45])?;
    is(&x.floor_divide(-1)?, DType::U8, &[0, 0, 1])?;
    is(&(&x % 300)?, DType::U8, &[0, 5, 35])?;
    is(&(&x & 300)?, DType::U8, &[0, 4, 44])?;
    holds(&x.eq(-1)?, &[0, 0, 1])?;
    holds(&x.lt(300)?, &[1, 1, 0])?;
    assert_eq!((&x / -1)?.to_vec()?, [-0.0, -5.0, -255.0]);
    assert!(x.pow(300).is_err() && x.pow(-1).is_err());
    is(&bytes(&[2])?.pow(7)?, DType::U8, &[128])?;

    is(&(ints(&[0])? + BIG)?, DType::I64, &[BIG])?;
    is(&(ints(&[i64::MAX])? + 1)?, DType::I64, &[i64::MIN])?;
    is(&(ints(&[i64::MIN])? * -1)?, DType::I64, &[i64::MIN])?;
    holds(&ints(&[1 << 53])?.eq(BIG)?, &[0])?;
    is(
        &ints(&[1, -1, 2])?.pow(&ints(&[-1, -3, -1])?)?,
        DType::I64,
        &[1, -1, 0],
    )?;

    let narrow = Tensor::from_vec(vec![0i16, 5, -1], 3)?;
    is(&(&narrow << 15)?, DType::I16, &[0, -32768, -32768])?;
    is(&(&narrow >> 16)?, DType::I16, &[0, 0, -1])?;
    let least = Tensor::from_vec(vec![i16::MIN], 1)?;
    is(&least.abs()?, DType::I16, &[-32768])?;
    is(&(-&x)?, DType::U8, &[0, 251, 1])?;
    is(&(!&x)?, DType::U8, &[255, 250, 0])
}

#[test]
fn defect_r05_traced_and_interpreted_give_the_same() -> Result<()> {
    let f = traced!(|x: &Tensor| ((x + BIG)? * -3)?.clamp(None, i64::MAX - 1));
    let x = ints(&[0, 7])?;
    let expected = [BIG * -3, (BIG + 7) * -3];
    let gm = symbolic_trace(f)?;
    is(&gm.forward::<Tensor>(&x)?, DType::I64, &expected)?;
    let saved = GraphModule::from_bytes(&gm.to_bytes()?)?;
    is(&saved.forward::<Tensor>(&x)?, DType::I64, &expected)?;
    assert!(gm.code().contains("9007199254740993_i64"), "{}", gm.code());
    Ok(())
}

#[test]
fn defect_r05_numbers_enter_operations_as_what_they_are() -> Result<()> {
    let x = ints(&[BIG, 1])?;
    is(&x.clamp(BIG, None)?, DType::I64, &[BIG, BIG])?;
    is(
        &bytes(&[0, 5, 255])?.clamp(-1, 300)?,
        DType::U8,
        &[0, 5, 255],
    )?;
    assert_eq!(x.clamp(0.0, None)?.dtype()?, DType::F32);
    is(&bools(&[1, 0])?.clamp(0, 1)?, DType::I64, &[1, 0])?;
    let half = Tensor::ones(2)?.to_dtype(DType::F16)?;
    assert!(half.clamp(-70000, None).is_err() && half.pow(70000).is_err());
    assert!(
        half.clamp(f64::NAN, 1.0)?
            .to_vec()?
            .iter()
            .all(|x| x.is_nan())
    );

    is(
        &x.masked_fill(&x.gt(1)?, BIG + 1)?,
        DType::I64,
        &[BIG + 1, 1],
    )?;
    assert_eq!(x.i(0)?.number()?, Number::Int(BIG));
    assert_eq!(bools(&[1])?.number()?, Number::Bool(true));
    is(&Tensor::full(2, BIG, DType::I64)?, DType::I64, &[BIG, BIG])?;
    is(
        &Tensor::arange(i64::MAX - 2, i64::MAX)?,
        DType::I64,
        &[i64::MAX - 2, i64::MAX - 1],
    )?;
    is(
        &Tensor::from_vec(vec![-1.5f32, 3.5], 2)?.to_dtype(DType::U8)?,
        DType::U8,
        &[255, 3],
    )?;
    let weak = Tensor::from_vec(vec![3.5f32], ())?;
    let wide = Tensor::from_vec(vec![300i64], ())?;
    is(&(&wide + &bytes(&[1])?)?, DType::U8, &[45])?;
    let half = Tensor::ones(1)?.to_dtype(DType::F16)?;
    assert_eq!(weak.maximum(&half)?.dtype()?, DType::F16);
    Ok(())
}

#[test]
fn defect_r05_scalars_compare_exactly() -> Result<()> {
    let n = Int::from(BIG);
    assert_eq!(n.eq(9_007_199_254_740_992.0)?.concrete(), Some(false));
    assert_eq!(n.gt(9_007_199_254_740_992.0)?.concrete(), Some(true));
    assert_eq!(
        Int::from(i64::MAX)
            .lt(9_223_372_036_854_775_808.0)?
            .concrete(),
        Some(true)
    );
    assert_eq!(Int::from(-1).gt(-1.5)?.concrete(), Some(true));
    assert_eq!(Int::from(1).ne(f64::NAN)?.concrete(), Some(true));
    Ok(())
}

#[test]
fn defect_r10_truth_values_are_0_or_1_after_every_operation() -> Result<()> {
    let (b, m) = (bools(&[0, 0, 1])?, bools(&[1, 0, 0])?);
    for value in [
        Number::Int(2),
        Number::Int(300),
        Number::Float(-1.0),
        Number::Float(f64::NAN),
    ] {
        holds(&b.masked_fill(&m, value)?, &[1, 0, 1])?;
    }
    holds(&Tensor::full(2, 7, DType::Bool)?, &[1, 1])?;
    holds(&(!b.amax(..)?)?, &[0])?;
    holds(&b.amin(0)?, &[0])?;
    holds(&b.max(0, false)?.0, &[1])?;
    holds(&ops::cat(&[b.clone(), m.clone()], 0)?, &[0, 0, 1, 1, 0, 0])?;
    holds(&ops::r#where(&m, &b, &m)?, &[0, 0, 0])?;
    holds(&b.gather(0, &ints(&[2, 0])?)?, &[1, 0])?;
    let rows = bools(&[0, 1])?.unsqueeze(1)?;
    holds(&ops::embedding(&ints(&[1])?, &rows, None)?, &[1])?;
    holds(&b.i(1..)?.tril_like()?, &[0, 1])?;
    holds(
        &ops::einsum("i,j->ij", &[b.clone(), m.clone()])?,
        &[0, 0, 0, 0, 0, 0, 1, 0, 0],
    )?;
    holds(&b.clone().into_parameter()?, &[0, 0, 1])?;
    let mut held = bools(&[0, 0, 1])?;
    held.copy_from(&bytes(&[2, 0, 255])?)?;
    holds(&held, &[1, 0, 1])?;
    is(&b.cumsum(0)?, DType::I64, &[0, 0, 1])?;
    is(&b.square()?, DType::I64, &[0, 0, 1])?;
    is(&(&b + 1)?, DType::I64, &[1, 1, 2])?;
    holds(&(&b + &b)?, &[0, 0, 1])?;
    holds(&b.pow(false)?, &[1, 1, 1])
}

/// A view of a view, of the same elements.
trait Viewed: Sized {
    fn tril_like(&self) -> Result<Self>;
}

impl Viewed for Tensor {
    fn tril_like(&self) -> Result<Tensor> {
        self.unsqueeze(0)?.tril(1)?.flatten(0, -1)
    }
}

#[test]
fn defect_r13_what_pytorch_refuses_is_refused() -> Result<()> {
    let (b, x, n) = (bools(&[0, 1])?, Tensor::ones((2, 2))?, ints(&[0, 1])?);
    let double = x.to_dtype(DType::F64)?;
    let rows = Tensor::ones((2, 3))?;
    let refused = [
        ops::embedding(&n, &rows, Some(2)),
        ops::embedding(&bytes(&[0])?, &rows, None),
        ops::one_hot(&bytes(&[0])?, 2),
        ops::layer_norm(
            &Tensor::zeros((0, 3))?,
            3,
            Some(&Tensor::ones(2)?),
            None,
            1e-5,
        ),
        ops::rms_norm(&Tensor::zeros((0, 3))?, 3, Some(&Tensor::ones(2)?), 1e-5),
        &b - &b,
        &b - 1,
        1.5 - &b,
        &n - &b,
        &n - true,
        x.matmul(&double),
        double.matmul(&x),
        b.matmul(&b),
        b.topk(1, 0, true, true).map(|(values, _)| values),
        b.argmax(0, false),
        b.clamp(Number::Bool(false), None),
        n.silu(),
        bytes(&[1])?.masked_fill(&bools(&[1])?, 256),
        bytes(&[1])?.masked_fill(&bools(&[1])?, -256),
        n.masked_fill(&b, f64::INFINITY),
        x.masked_fill(&b, 1e39),
        n.pow(-1),
        b.floor_divide(&b),
        &b % &b,
        ops::linear(&b, &bools(&[1, 1])?.unsqueeze(0)?, None),
    ];
    for (at, result) in refused.into_iter().enumerate() {
        assert!(result.is_err(), "{at}: {result:?}");
    }
    is(
        &bytes(&[1])?.masked_fill(&bools(&[1])?, -255)?,
        DType::U8,
        &[1],
    )?;
    is(&n.masked_fill(&b, 1.5)?, DType::I64, &[0, 1])
}

#[test]
fn defect_r13_shifts_of_scalars_are_pythons() -> Result<()> {
    assert_eq!((Int::from(5) >> 64)?.concrete(), Some(0));
    assert_eq!((Int::from(-5) >> (1i64 << 40))?.concrete(), Some(-1));
    assert_eq!((Int::from(0) << (1i64 << 40))?.concrete(), Some(0));
    let text = |result: Result<Int>| result.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(text(Int::from(1) << 64).contains("64 bits"));
    assert!(text(Int::from(1) >> -1).contains("negative"));
    Ok(())
}

#[test]
fn defect_n04_a_float_power_of_an_integer_is_a_float_eager_and_traced() -> Result<()> {
    let half = |x: &Tensor| -> Result<Tensor> {
        let width: Float = x.size(-1)?.pow(0.5)?;
        let part: Float = x.size(-1)?.floordiv(2.5)?;
        (x / width)? + part
    };
    let x = Tensor::ones((1, 16))?;
    let eager = half(&x)?;
    assert_eq!(eager.to_vec()?, [6.25; 16]);
    let gm = symbolic_trace(traced!(|x: &Tensor| {
        let width: Float = x.size(-1)?.pow(0.5)?;
        let part: Float = x.size(-1)?.floordiv(2.5)?;
        (x / width)? + part
    }))?;
    assert_eq!(gm.forward::<Tensor>(&x)?.to_vec()?, eager.to_vec()?);
    assert_eq!(Int::from(16).pow(2)?.concrete(), Some(256));
    assert!(Int::from(16).pow(-1).is_err());
    assert!(symbolic_trace(traced!(|x: &Tensor| x / x.size(0)?.pow(-1)?)).is_err());
    Ok(())
}
