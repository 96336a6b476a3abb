//! What a port from candle cost: candle's names of what PyTorch calls otherwise.

use fx_nn::prelude::*;

#[derive(Module, Clone, Debug)]
struct Net {
    first: nn::Linear,
    norm: Option<nn::LayerNorm>,
    last: nn::Linear,
    rest: nn::Sequential,
}

#[trace]
impl Net {
    fn forward(&self, xs: &Tensor) -> Result<Tensor> {
        let ys = xs.apply(&self.first)?.apply(&self.norm)?.sqr()?;
        let ys = ys
            .broadcast_add(&ys.mean_keepdim(D::Minus1)?)?
            .apply(&|x: &Tensor| x.relu())?;
        let ys = ys.apply(&self.last)?.apply(&self.rest[0])?;
        let both = Tensor::cat(&[&ys, &ys], D::Minus2)?;
        Tensor::stack(&[&both, &both], 0)?
            .flatten_to(1)?
            .flatten_from(0)
    }
}

fn net(norm: Option<nn::LayerNorm>) -> Result<Net> {
    Ok(Net {
        first: nn::Linear::new(3, 4)?,
        norm,
        last: nn::Linear::new(4, 2)?,
        rest: nn::Sequential::new().push(nn::Tanh::new()),
    })
}

#[test]
fn defect_t3_w5_layers_are_applied_as_candles_are() -> Result<()> {
    let xs = Tensor::rand((5, 3))?;
    for norm in [None, Some(nn::LayerNorm::new(4)?)] {
        let model = net(norm)?;
        let eager = model.forward(&xs)?;
        assert_eq!(eager.dims()?, [40]);
        let gm = symbolic_trace(&model)?;
        assert_eq!(gm.forward::<Tensor>(&xs)?.to_vec()?, eager.to_vec()?);
        let text = gm.graph().to_string();
        for part in [
            "call_module[target=first]",
            "call_module[target=rest.0]",
            "[target=square]",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        for part in ["apply", "sqr]", "broadcast_add", "flatten_to"] {
            assert!(!text.contains(part), "{part} in {text}");
        }
    }
    Ok(())
}

#[test]
fn defect_t3_w5_names_are_pytorchs_functions() -> Result<()> {
    let x = Tensor::from_vec(vec![1.0f32, 4.0, 2.0, 9.0], (2, 2))?;
    let y = Tensor::from_vec(vec![2.0f32, 1.0], 2)?;
    let cases: Vec<(&str, Tensor, &[f64])> = vec![
        ("broadcast_sub", x.broadcast_sub(&y)?, &[-1., 3., 0., 8.]),
        ("broadcast_mul", x.broadcast_mul(&y)?, &[2., 4., 4., 9.]),
        ("broadcast_div", x.broadcast_div(&y)?, &[0.5, 4., 1., 9.]),
        ("broadcast_pow", x.broadcast_pow(&y)?, &[1., 4., 4., 9.]),
        (
            "broadcast_maximum",
            x.broadcast_maximum(&y)?,
            &[2., 4., 2., 9.],
        ),
        (
            "broadcast_minimum",
            x.broadcast_minimum(&y)?,
            &[1., 1., 2., 1.],
        ),
        (
            "broadcast_gt",
            x.broadcast_gt(&y)?.to_dtype(DType::F32)?,
            &[0., 1., 0., 1.],
        ),
        (
            "broadcast_matmul",
            x.broadcast_matmul(&x)?,
            &[9., 40., 20., 89.],
        ),
        ("broadcast_as", y.broadcast_as((2, 2))?, &[2., 1., 2., 1.]),
        ("add", x.add(&y)?, &[3., 5., 4., 10.]),
        ("sub", x.sub(&y)?, &[-1., 3., 0., 8.]),
        ("mul", x.mul(&y)?, &[2., 4., 4., 9.]),
        ("div", x.div(&y)?, &[0.5, 4., 1., 9.]),
        ("recip", x.recip()?, &[1., 0.25, 0.5, 1.0 / 9.0]),
        ("affine", x.affine(2.0, 1.0)?, &[3., 9., 5., 19.]),
        (
            "powf",
            x.powf(0.5)?,
            &[1., 2., std::f64::consts::SQRT_2, 3.],
        ),
        ("sum_all", x.sum_all()?, &[16.]),
        ("mean_all", x.mean_all()?, &[4.]),
        ("max_all", x.max_all()?, &[9.]),
        ("min_all", x.min_all()?, &[1.]),
        ("max_keepdim", x.max_keepdim(D::Minus1)?, &[4., 9.]),
        ("argmax_keepdim", x.argmax_keepdim(0)?, &[1., 1.]),
        ("get", x.get(1)?, &[2., 9.]),
        ("get_on_dim", x.get_on_dim(1, 0)?, &[1., 2.]),
        (
            "where_cond",
            x.gt(3.0)?.where_cond(&x, &x.zeros_like()?)?,
            &[0., 4., 0., 9.],
        ),
        (
            "arg_sort_last_dim",
            x.arg_sort_last_dim(false)?,
            &[1., 0., 1., 0.],
        ),
        (
            "sort_last_dim",
            x.sort_last_dim(false)?.0,
            &[4., 1., 9., 2.],
        ),
        (
            "pad_with_zeros",
            x.pad_with_zeros(0, 1, 0)?,
            &[0., 0., 1., 4., 2., 9.],
        ),
        (
            "pad_with_zeros",
            x.pad_with_zeros(D::Minus1, 0, 1)?,
            &[1., 4., 0., 2., 9., 0.],
        ),
        (
            "upsample_nearest1d",
            x.unsqueeze(0)?.upsample_nearest1d(4)?,
            &[1., 1., 4., 4., 2., 2., 9., 9.],
        ),
    ];
    for (name, found, expected) in cases {
        let found = found.to_vec()?;
        assert_eq!(found.len(), expected.len(), "{name}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(
                (found - expected).abs() < 1e-6,
                "{name}: {found} and {expected}"
            );
        }
    }
    assert_eq!(x.sum_all()?.to_scalar::<f32>()?, 16.0);
    assert_eq!(x.to_vec2::<f32>()?, [[1.0, 4.0], [2.0, 9.0]]);
    assert_eq!(
        (x.rank()?.concrete(), x.elem_count()?.concrete()),
        (Some(2), Some(4))
    );
    let image = x.reshape((1, 1, 2, 2))?;
    assert_eq!(image.max_pool2d(2)?.to_vec()?, [9.0]);
    assert_eq!(image.avg_pool2d(2)?.to_vec()?, [4.0]);
    assert_eq!(image.upsample_nearest2d(4, 2)?.dims()?, [1, 1, 4, 2]);
    assert_eq!(image.upsample_bilinear2d(3, 3, true)?.to_vec()?[4], 4.0);
    assert_eq!(
        image
            .upsample_bilinear2d_with_scale(2.0, 1.0, false)?
            .dims()?,
        [1, 1, 4, 2]
    );
    // A trace does not know the rank: a dim from the start is an error that says so.
    let traced = symbolic_trace(traced!(|x: &Tensor| x.pad_with_zeros(0, 1, 1)));
    let error = traced.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("count it from the end"), "{error}");
    Ok(())
}
