//! Caches of keys and values grow where they are in compiled code, and are values as any: who holds an earlier one can go on
//! from it.

use candle_core::{CpuStorage, Storage};
use fx_nn::cpu::Cpu;
use fx_nn::models::hf::decoder::{Cache, CausalLM, Config};
use fx_nn::passes::backend::{Compile, LowerReport};
use fx_nn::prelude::*;
use fx_nn::{allclose, no_grad};

/// A decoder of two layers whose heads share keys, one of which sees a window.
fn decoder(dtype: DType) -> Result<CausalLM> {
    fx_nn::manual_seed(1);
    let config = Config::from_json(
        r#"{
            "model_type": "mistral", "vocab_size": 64, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 512, "sliding_window": 7,
            "layer_types": ["full_attention", "sliding_attention"]
        }"#,
    )?;
    let mut model = CausalLM::new(&config)?;
    nn::to_dtype(&mut model, dtype)?;
    nn::set_requires_grad(&mut model, false)?;
    Ok(model)
}

type Caches = Vec<Cache>;

/// Words of two texts.
fn words(first: usize, count: usize) -> Result<Tensor> {
    let word = |at: usize| (at * 7 % 61) as i64;
    let text = |text: usize| (first..first + count).map(move |at| word(at + 5 * text));
    Tensor::from_vec((0..2).flat_map(text).collect(), (2, count))
}

/// Where the elements of a tensor are.
fn address(x: &Tensor) -> Result<usize> {
    let (storage, _) = x.candle()?.storage_and_layout();
    Ok(match &*storage {
        Storage::Cpu(CpuStorage::F32(all)) => all.as_ptr() as usize,
        Storage::Cpu(CpuStorage::F16(all)) => all.as_ptr() as usize,
        Storage::Cpu(CpuStorage::BF16(all)) => all.as_ptr() as usize,
        _ => return Err(Error::msg("a cache is of floats")),
    })
}

/// How far code may be from the graph of a type, which rounds more often.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => 1e-5,
        DType::F16 => 0.01,
        _ => 0.08,
    }
}

fn agree(dtype: DType, found: &Tensor, expected: &Tensor) -> Result<()> {
    assert_eq!(found.dtype()?, expected.dtype()?);
    let close = allclose(found, expected, tolerance(dtype), tolerance(dtype))?;
    assert!(close.close, "{dtype} {close}");
    Ok(())
}

#[test]
fn caches_grow_in_place_and_earlier_ones_stay() -> Result<()> {
    for dtype in [DType::F32, DType::BF16, DType::F16] {
        let model = decoder(dtype)?;
        let gm = model.trace()?;
        let fast = gm.compile(Compile::new(Cpu::new()))?;
        no_grad(|| {
            let run = |gm: &GraphModule,
                       words: &Tensor,
                       caches: Caches|
             -> Result<(Tensor, Caches)> { gm.forward((words, caches)) };
            let (_, mut caches) = run(&fast, &words(0, 5)?, model.caches(2)?)?;
            let (_, mut expected) = run(&gm, &words(0, 5)?, model.caches(2)?)?;
            let early = (caches.clone(), expected.clone());
            let first = early.0[0].k.to_vec()?;
            let mut moves = 0;
            for at in 5..150 {
                let word = words(at, 1)?;
                let before = address(&caches[1].v)?;
                let (a, next) = run(&fast, &word, caches)?;
                let (b, same) = run(&gm, &word, expected)?;
                agree(dtype, &a, &b)?;
                (caches, expected) = (next, same);
                moves += usize::from(address(&caches[1].v)? != before);
            }
            assert!(
                moves <= 3,
                "{dtype}: the cache moved {moves} times in 145 words"
            );
            assert_eq!(caches[0].k.dims()?, [2, 2, 150, 8]);
            agree(dtype, &caches[0].k, &expected[0].k)?;

            // Two go on from an earlier cache, and the first one has not changed.
            assert_eq!(early.0[0].k.to_vec()?, first);
            let mut branches = Vec::new();
            for start in [20, 40] {
                let (a, first) = run(&fast, &words(start, 3)?, early.0.clone())?;
                let (b, same) = run(&gm, &words(start, 3)?, early.1.clone())?;
                agree(dtype, &a, &b)?;
                branches.push((start, first, same));
            }
            for (start, caches, expected) in branches {
                let (a, _) = run(&fast, &words(start + 3, 1)?, caches)?;
                let (b, _) = run(&gm, &words(start + 3, 1)?, expected)?;
                agree(dtype, &a, &b)?;
            }
            // What grows is saved and viewed as any tensor.
            let copy: Caches = caches
                .iter()
                .map(|cache| {
                    let whole = |x: &Tensor| x.narrow(2, 100, 50)?.contiguous();
                    Ok(Cache {
                        k: ops::cat(&[cache.k.narrow(2, 0, 100)?, whole(&cache.k)?], 2)?,
                        v: ops::cat(&[cache.v.narrow(2, 0, 100)?, whole(&cache.v)?], 2)?,
                    })
                })
                .collect::<Result<_>>()?;
            let (a, _) = run(&fast, &words(150, 2)?, copy)?;
            let (b, _) = run(&fast, &words(150, 2)?, caches)?;
            assert_eq!(a.to_vec()?, b.to_vec()?);
            Ok::<_, Error>(())
        })?;
        let report = fast
            .meta::<LowerReport>()
            .ok_or_else(|| Error::msg("it is compiled"))?;
        let mut appends = 0;
        for part in &report.parts {
            let part = fast.submodule_as::<GraphModule>(&part.path)?;
            let code = part
                .compiled()
                .ok_or_else(|| Error::msg("it is compiled"))?;
            assert_eq!(code.plans(), 1);
            assert!(code.fallbacks().is_empty(), "{:?}", code.fallbacks());
            let names = code
                .steps()
                .iter()
                .filter(|step| step.name == "concatenation in place")
                .count();
            appends += names;
        }
        assert_eq!(appends, 4);
    }
    Ok(())
}

/// Attention with a cache; `k` and `v` are given back with more.
fn attending(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    more: &Tensor,
) -> Result<(Tensor, Tensor, Tensor)> {
    let k = ops::cat(&[k.clone(), more.clone()], 2)?;
    let v = ops::cat(&[v.clone(), more.clone()], 2)?;
    let y = ops::scaled_dot_product_attention(q, &k, &v, None, 0.0, false, None, false)?;
    Ok((y, k, v))
}

#[test]
fn caches_may_be_one_tensor_or_views_or_of_other_types() -> Result<()> {
    let gm =
        symbolic_trace(traced!(|q: &Tensor,
                                k: &Tensor,
                                v: &Tensor,
                                more: &Tensor| {
            attending(q, k, v, more)
        }))?;
    let fast = gm.compile(Compile::new(Cpu::new()))?;
    type Out = (Tensor, Tensor, Tensor);
    let both = |q: &Tensor, k: &Tensor, v: &Tensor, more: &Tensor| -> Result<Out> {
        let call = || (q.clone(), k.clone(), v.clone(), more.clone());
        let (a, b): (Out, Out) = (fast.forward(call())?, gm.forward(call())?);
        for (a, b) in [(&a.0, &b.0), (&a.1, &b.1), (&a.2, &b.2)] {
            agree(DType::BF16, a, b)?;
        }
        Ok(a)
    };
    for half in [DType::F32, DType::BF16] {
        let random = |length: usize| Tensor::randn((1, 2, length, 8))?.to_dtype(half);
        let (q, k, more) = (random(1)?, random(9)?, random(2)?);
        // One tensor as keys, values and queries.
        let (_, one, other) = both(&q, &k, &k, &more)?;
        let (_, again, _) = both(&q, &one, &one, &more)?;
        let (_, third, _) = both(&more, &one, &other, &one)?;
        assert_eq!((again.dims()?[2], third.dims()?[2]), (13, 22));
        // Views of it beside it.
        both(
            &one.narrow(2, 3, 1)?,
            &one,
            &one.narrow(2, 0, 11)?,
            &one.narrow(2, 4, 3)?,
        )?;
        both(&q, &one.transpose(0, 1)?.transpose(0, 1)?, &other, &more)?;
        // Nothing yet, and of another type.
        both(&q, &random(0)?, &random(0)?, &more)?;
        let wide = k.to_dtype(DType::F32)?;
        both(
            &q.to_dtype(DType::F32)?,
            &wide,
            &wide,
            &more.to_dtype(DType::F32)?,
        )?;
    }
    // Another argument is given back in its type, and one in 16 bits as `f32`.
    let beside =
        symbolic_trace(traced!(|q: &Tensor,
                                k: &Tensor,
                                more: &Tensor,
                                x: &Tensor| {
            let (y, k, _) = attending(q, k, k, more)?;
            Ok((y, k, x.to_dtype(DType::F32)?))
        }))?;
    let fast_beside = beside.compile(Compile::new(Cpu::new()))?;
    for half in [DType::F32, DType::BF16, DType::F16] {
        let random = |length: usize| Tensor::randn((1, 2, length, 8))?.to_dtype(half);
        let call = (random(1)?, random(4)?, random(1)?, random(3)?);
        let (found, expected): (Out, Out) =
            (fast_beside.forward(call.clone())?, beside.forward(call)?);
        agree(half, &found.1, &expected.1)?;
        assert_eq!(found.2.dtype()?, DType::F32);
        assert_eq!(found.2.to_vec()?, expected.2.to_vec()?);
    }
    // Along another dim nothing grows.
    let batches = symbolic_trace(traced!(|q: &Tensor, k: &Tensor, more: &Tensor| {
        let k = ops::cat(&[k.clone(), more.clone()], 0)?;
        Ok((
            ops::scaled_dot_product_attention(q, &k, &k, None, 0.0, false, None, false)?,
            k,
        ))
    }))?;
    let fast_batches = batches.compile(Compile::new(Cpu::new()))?;
    let random = |batch: usize| Tensor::randn((batch, 2, 5, 8));
    let (_, k): (Tensor, Tensor) = fast_batches.forward((random(3)?, random(2)?, random(1)?))?;
    assert_eq!(k.candle()?.stride(), [80, 40, 8, 1]);
    assert_eq!(
        k.candle()?.storage_and_layout().0.dtype(),
        candle_core::DType::F32
    );
    // Who writes into one changes no other, even where its elements are next to each other.
    let random = |length: usize| Tensor::randn((1, 1, length, 8));
    let (q, more) = (random(1)?, random(2)?);
    let (_, mut first, _) = both(&q, &random(9)?, &random(9)?, &more)?;
    let (_, second, _) = both(&q, &first, &first, &more)?;
    let kept = second.to_vec()?;
    first.copy_from(&Tensor::zeros((1, 1, 11, 8))?)?;
    assert!(first.to_vec()?.iter().all(|x| *x == 0.0));
    assert_eq!(second.to_vec()?, kept);
    // Sizes that do not fit are the graph's error.
    let random = |length: usize, size: usize| Tensor::randn((1, 2, length, size));
    let bad = fast.forward::<Out>((random(1, 8)?, random(3, 8)?, random(3, 8)?, random(1, 6)?));
    assert!(bad.is_err_and(|error| error.to_string().contains("cat")));
    Ok(())
}

#[test]
fn threads_may_go_on_from_one_cache() -> Result<()> {
    let model = decoder(DType::F32)?;
    let gm = model.trace()?;
    let fast = gm.compile(Compile::new(Cpu::new()))?;
    let (_, caches): (Tensor, Caches) = no_grad(|| fast.forward((words(0, 9)?, model.caches(2)?)))?;
    let expected: Vec<Vec<f64>> = (0..8)
        .map(|at| {
            let (scores, _): (Tensor, Caches) =
                no_grad(|| gm.forward((words(at, 2)?, caches.clone())))?;
            scores.to_vec()
        })
        .collect::<Result<_>>()?;
    std::thread::scope(|scope| {
        for (at, expected) in expected.iter().enumerate() {
            let (fast, mut caches) = (&fast, caches.clone());
            scope.spawn(move || -> Result<()> {
                for _ in 0..20 {
                    let (scores, next): (Tensor, Caches) =
                        no_grad(|| fast.forward((words(at, 2)?, caches.clone())))?;
                    let found = scores.to_vec()?;
                    let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5;
                    assert!(found.iter().zip(expected).all(near));
                    let _: (Tensor, Caches) = no_grad(|| fast.forward((words(30, 1)?, next)))?;
                    caches = caches.clone();
                }
                Ok(())
            });
        }
    });
    Ok(())
}

/// The words of a text, `[1, count]`.
fn text(first: usize, count: usize) -> Result<Tensor> {
    let words = (first..first + count).map(|at| (at * 7 % 61) as i64);
    Tensor::from_vec(words.collect(), (1, count))
}

#[test]
fn texts_of_one_graph_are_each_as_alone() -> Result<()> {
    for dtype in [DType::F32, DType::BF16, DType::F16] {
        let model = decoder(dtype)?;
        let alone = model.trace()?.compile(Compile::new(Cpu::new()))?;
        let gm = model.trace_texts(3)?;
        let fast = gm.compile(Compile::new(Cpu::new()))?;
        // How many words each text has in each forward: prompts beside single words, and texts that have none.
        let turns = [
            [5, 0, 0],
            [0, 9, 0],
            [1, 0, 2],
            [1, 1, 4],
            [1, 1, 1],
            [2, 0, 1],
            [1, 3, 1],
        ];
        no_grad(|| {
            let none = || (0..3).map(|_| model.caches(1)).collect::<Result<Vec<_>>>();
            let (mut caches, mut eager) = (none()?, none()?);
            let mut lone = none()?;
            let mut read = [0; 3];
            for counts in turns {
                let texts: Result<Vec<Tensor>> = (0..3)
                    .map(|at| text(20 * at + read[at], counts[at]))
                    .collect();
                let texts = texts?;
                let (scores, next): (Tensor, Vec<Caches>) =
                    fast.forward((texts.clone(), caches))?;
                caches = next;
                let (same, next): (Tensor, Vec<Caches>) = gm.forward((texts.clone(), eager))?;
                eager = next;
                let has_words = (0..3).filter(|at| counts[*at] > 0);
                assert_eq!(scores.dims()?[1], has_words.clone().count());
                for (row, at) in has_words.enumerate() {
                    read[at] += counts[at];
                    let seen = std::mem::take(&mut lone[at]);
                    let (expected, next): (Tensor, Caches) = alone.forward((&texts[at], seen))?;
                    lone[at] = next;
                    let of_text = scores.i((.., row))?;
                    agree(dtype, &of_text, &expected.i((.., -1))?)?;
                    agree(dtype, &same.i((.., row))?, &expected.i((.., -1))?)?;
                    // Not a bit differs from what it is alone.
                    assert_eq!(
                        of_text.to_vec()?,
                        expected.i((.., -1))?.to_vec()?,
                        "{dtype} {counts:?} {at}"
                    );
                    assert_eq!(caches[at][0].k.to_vec()?, lone[at][0].k.to_vec()?);
                }
            }
            Ok::<_, Error>(())
        })?;
        let report = fast.meta::<LowerReport>();
        let report = report.ok_or_else(|| Error::msg("it is compiled"))?;
        assert_eq!(report.parts.len(), 1);
        let part = fast.submodule_as::<GraphModule>(&report.parts[0].path)?;
        let code = part
            .compiled()
            .ok_or_else(|| Error::msg("it is compiled"))?;
        assert_eq!(code.plans(), 1);
        assert!(code.fallbacks().is_empty(), "{:?}", code.fallbacks());
        let in_place = code
            .steps()
            .iter()
            .filter(|step| step.name == "concatenation in place")
            .count();
        assert_eq!(in_place, 12);
        // Sizes are asked for before the first layer: between products nothing leaves the code but masks.
        let of = |at: usize| code.steps()[at].name.to_string();
        let products = (0..code.steps().len()).filter(|at| of(*at).starts_with("linear"));
        let first = products.min().unwrap_or(usize::MAX);
        assert!((first..code.steps().len()).all(|at| !of(at).contains("Tensor::size")));
    }
    Ok(())
}
