//! Elements that are stored in fewer bits than candle has types of: what is done with them, by value.

use fx_nn::cpu::Cpu;
use fx_nn::passes::backend::Compile;
use fx_nn::prelude::*;

const STORED: [DType; 3] = [DType::I8, DType::U16, DType::U64];

fn of(numbers: &[i64], dtype: DType) -> Result<Tensor> {
    Tensor::from_vec(numbers.to_vec(), numbers.len())?.to_dtype(dtype)
}

#[test]
fn numbers_wrap_around_in_the_type_that_they_become() -> Result<()> {
    let numbers = [127, 128, -1, 65_535, 65_536, 300];
    for (dtype, expected) in [
        (DType::I8, [127., -128., -1., -1., 0., 44.]),
        (DType::U16, [127., 128., 65_535., 65_535., 0., 300.]),
    ] {
        let x = of(&numbers, dtype)?;
        assert_eq!((x.dtype()?, x.to_vec()?), (dtype, expected.to_vec()));
        // From floats, too.
        let floats = of(&numbers, DType::I64)?.to_dtype(DType::F32)?;
        assert_eq!(floats.to_dtype(dtype)?.to_vec()?, expected);
    }
    let most = of(&[-1], DType::U64)?;
    assert_eq!(most.item()?, u64::MAX as f64);
    assert_eq!(
        most.to_dtype(DType::F32)?.item()?,
        f64::from(u64::MAX as f32)
    );
    assert_eq!(most.to_dtype(DType::U16)?.item()?, 65_535.0);
    assert!(most.number().is_err());
    Ok(())
}

#[test]
fn elements_are_moved_in_their_own_type() -> Result<()> {
    for dtype in STORED {
        let x = of(&[1, 2, 3, 4, 5, 6], dtype)?.reshape((2, 3))?;
        let index = Tensor::from_vec(vec![1i64, 0], 2)?;
        let mask = x.gt(3)?;
        let made = [
            (x.transpose(0, 1)?, vec![1., 4., 2., 5., 3., 6.]),
            (x.i((1, ..))?, vec![4., 5., 6.]),
            (x.index_select(0, &index)?, vec![4., 5., 6., 1., 2., 3.]),
            (ops::cat(&[&x, &x], 0)?.i((2.., 0))?, vec![1., 4.]),
            (x.masked_fill(&mask, 0)?, vec![1., 2., 3., 0., 0., 0.]),
            (
                ops::r#where(&mask, &x, &(&x + 10)?)?,
                vec![11., 12., 13., 4., 5., 6.],
            ),
            (x.flip([1])?, vec![3., 2., 1., 6., 5., 4.]),
            (Tensor::full(2, 7, dtype)?, vec![7., 7.]),
            (ops::zeros_like(&x, None)?, vec![0.; 6]),
        ];
        for (y, expected) in made {
            assert_eq!((y.dtype()?, y.to_vec()?), (dtype, expected));
        }
    }
    Ok(())
}

#[test]
fn the_largest_numbers_without_a_sign_are_compared_and_divided_as_such() -> Result<()> {
    let x = of(&[-1, 5, i64::MIN], DType::U64)?;
    assert_eq!(x.gt(7)?.to_vec()?, [1.0, 0.0, 1.0]);
    assert_eq!(
        x.le(&of(&[-2, 5, -1], DType::U64)?)?.to_vec()?,
        [0.0, 1.0, 1.0]
    );
    assert_eq!(
        x.floor_divide(4)?.to_vec()?,
        [(u64::MAX / 4) as f64, 1.0, (1u64 << 61) as f64]
    );
    assert_eq!(
        (&x >> 1)?.to_vec()?,
        [(u64::MAX >> 1) as f64, 2.0, (1u64 << 62) as f64]
    );
    Ok(())
}

#[test]
fn a_graph_with_them_runs_compiled_and_saved_as_eager() -> Result<()> {
    for dtype in STORED {
        let scales = of(&[3, 7, 11], dtype)?;
        let gm = symbolic_trace(traced!(move |x: &Tensor| {
            let y = ops::cat(&[x, &scales], 0)?.flip([0])?;
            y.to_dtype(DType::F32)? * 0.5
        }))?;
        let x = of(&[1, 2], dtype)?;
        let expected = [5.5, 3.5, 1.5, 1.0, 0.5];
        let bytes = gm.to_bytes()?;
        let compiled = gm.compile(Compile::new(Cpu::new()).like(&x))?;
        assert_eq!(gm.forward::<Tensor>(&x)?.to_vec()?, expected);
        assert_eq!(compiled.forward::<Tensor>(&x)?.to_vec()?, expected);
        let loaded = GraphModule::from_bytes(&bytes)?;
        assert_eq!(loaded.forward::<Tensor>(&x)?.to_vec()?, expected);
    }
    Ok(())
}

#[test]
fn what_computes_refuses_them_and_says_what_to_do() -> Result<()> {
    for dtype in STORED {
        let x = of(&[1, 2], dtype)?;
        let found = [
            x.relu(),
            x.sum(..),
            x.softmax(0),
            x.sort(0, false).map(|(y, _)| y),
        ];
        for refused in found {
            let Err(error) = refused else {
                panic!("computed in {dtype}");
            };
            let text = error.to_string();
            assert!(
                text.contains(dtype.name()) && text.contains("to_dtype"),
                "{text}"
            );
        }
    }
    Ok(())
}
