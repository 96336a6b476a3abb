//! Texts that an engine writes at once are each as if it were alone; what it refuses, and what it frees.

use std::sync::Arc;
use std::time::{Duration, Instant};

use fx_core::{Error, Result};
use fx_lm::Tokenizer;
use fx_lm::engine::{
    Engine, EngineOptions, FinishReason, GenerationOptions, Model, Processor, SubmitError,
};
use fx_nn::models::hf::decoder::{CausalLM, Config, FeedForward};
use fx_nn::prelude::*;

const POSITIONS: usize = 96;

/// A decoder of random weights whose windows are shorter than its texts.
fn decoder() -> Result<(CausalLM, Config)> {
    fx_nn::manual_seed(3);
    let config = Config::from_json(
        r#"{
            "model_type": "mistral", "vocab_size": 512, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 96, "sliding_window": 7
        }"#,
    )?;
    let mut model = CausalLM::new(&config)?;
    nn::set_requires_grad(&mut model, false)?;
    Ok((model, config))
}

fn model(slots: usize) -> Result<Model> {
    let (model, config) = decoder()?;
    Model::of_decoder(&model, &config, slots)
}

fn engine(slots: usize, options: EngineOptions) -> Result<Engine> {
    Engine::start(move || model(slots), options.chunk(8))
}

fn tokenizer() -> Result<Arc<Tokenizer>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/bytes.gguf");
    Ok(Arc::new(Tokenizer::of_gguf(path)?))
}

fn prompt(seed: usize) -> Vec<u32> {
    (0..1 + seed * 5 % 23)
        .map(|at| ((at * 37 + seed * 101) % 512) as u32)
        .collect()
}

/// Every way of writing.
fn options(seed: usize) -> GenerationOptions {
    let options = GenerationOptions::default()
        .max_new_tokens(3 + seed * 7 % 29)
        .seed(seed as u64);
    match seed % 4 {
        0 => options,
        1 => options.temperature(1.5),
        2 => options.temperature(2.0).top_k(20).min_p(0.01),
        _ => options.temperature(0.9).top_p(0.8).repetition_penalty(1.3),
    }
}

fn submitted(
    engine: &Engine,
    prompt: Vec<u32>,
    options: GenerationOptions,
) -> Result<fx_lm::engine::Stream> {
    engine.submit(prompt, options).map_err(Error::other)
}

fn ids(stream: fx_lm::engine::Stream) -> Result<Vec<u32>> {
    stream.map(|token| Ok(token?.id)).collect()
}

#[track_caller]
fn until(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "it did not happen in 20 s"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn texts_written_at_once_are_each_as_alone() -> Result<()> {
    let engine = engine(3, EngineOptions::default())?;
    let alone: Result<Vec<Vec<u32>>> = (0..12)
        .map(|seed| ids(submitted(&engine, prompt(seed), options(seed))?))
        .collect();
    let alone = alone?;
    let streams: Result<Vec<_>> = (0..12)
        .map(|seed| submitted(&engine, prompt(seed), options(seed)))
        .collect();
    for (seed, stream) in streams?.into_iter().enumerate() {
        let found = ids(stream)?;
        assert_eq!(found.len(), 3 + seed * 7 % 29);
        assert_eq!(found, alone[seed], "{seed}");
    }
    // Other chances give other texts.
    let other = ids(submitted(&engine, prompt(1), options(1).seed(77))?)?;
    assert_ne!(other, alone[1]);
    // One token to draw from is the best one.
    let best = options(0).temperature(1.0).top_k(1);
    assert_eq!(ids(submitted(&engine, prompt(0), best)?)?, alone[0]);
    let best = options(0).temperature(1.0).top_p(0.0);
    assert_eq!(ids(submitted(&engine, prompt(0), best)?)?, alone[0]);
    until(|| engine.stats().blocks_in_use == 0);
    engine.shutdown();
    Ok(())
}

#[test]
fn the_greedy_text_is_the_models() -> Result<()> {
    let engine = engine(2, EngineOptions::default())?;
    let found = ids(submitted(&engine, prompt(4), options(4).temperature(0.0))?)?;
    let (model, _) = decoder()?;
    let mut words: Vec<i64> = prompt(4).into_iter().map(i64::from).collect();
    for id in found {
        let text = Tensor::from_vec(words.clone(), (1, words.len()))?;
        let (scores, _) = model.forward(&text, model.caches(1)?)?;
        let best = scores.i((0, -1))?.argmax(-1, false)?.item()?;
        assert_eq!(best as u32, id);
        words.push(i64::from(id));
    }
    Ok(())
}

#[test]
fn a_stream_that_is_dropped_frees_its_blocks_and_others_go_on() -> Result<()> {
    let engine = engine(2, EngineOptions::default().buffered(4))?;
    let long = || GenerationOptions::default().max_new_tokens(1000);
    let kept = submitted(&engine, prompt(1), long())?;
    let mut gone = submitted(&engine, prompt(2), long())?;
    let never_read = submitted(&engine, prompt(3), long())?;
    assert!(gone.next().is_some_and(|token| token.is_ok()));
    until(|| engine.stats().running == 2 && engine.stats().blocks_in_use == 2);
    drop(gone);
    // The place is taken by the one that waits, which nobody reads: it pauses, and the first one goes on.
    until(|| engine.stats().waiting == 0);
    let found = ids(kept)?;
    assert_eq!(found.len(), POSITIONS - prompt(1).len());
    drop(never_read);
    until(|| engine.stats().blocks_in_use == 0 && engine.stats().running == 0);
    Ok(())
}

#[test]
fn what_cannot_be_served_is_refused() -> Result<()> {
    let engine = engine(1, EngineOptions::default().max_waiting(2).buffered(1))?;
    let refused =
        |prompt: Vec<u32>, options: GenerationOptions| match engine.submit(prompt, options) {
            Err(SubmitError::Invalid(error)) => error.to_string(),
            Err(error) => format!("{error:?}"),
            Ok(_) => "taken".to_string(),
        };
    let plain = GenerationOptions::default;
    assert_eq!(refused(Vec::new(), plain()), "the prompt has no tokens");
    let text = refused(vec![1, 512], plain());
    assert_eq!(
        text,
        "the prompt has the token 512, and the model knows 512"
    );
    let text = refused(vec![1; 96], plain());
    assert!(
        text.contains("96 tokens, and the model 96 positions"),
        "{text}"
    );
    let text = refused(
        vec![1],
        plain().temperature(f32::NAN).top_p(1.5).min_p(-0.1),
    );
    assert_eq!(text.lines().count(), 3, "{text}");
    let text = refused(vec![1], plain().repetition_penalty(0.0));
    assert!(text.contains("`repetition_penalty` is 0"), "{text}");
    let text = refused(vec![1], plain().stop_strings(vec!["x".to_string()]));
    assert!(text.contains("has no tokenizer"), "{text}");
    // A processor that fails ends its own text alone.
    let broken = Processor::new(|| Err(Error::msg("no such graph")));
    let mut failed = submitted(&engine, vec![1], plain().processors(vec![broken]))?;
    let error = failed
        .next()
        .map(|token| token.map(|token| token.id).map_err(|e| e.to_string()));
    assert_eq!(error, Some(Err("no such graph".to_string())));
    assert!(failed.next().is_none());

    // One runs and nobody reads it, two wait.
    let running = submitted(&engine, vec![1], plain())?;
    until(|| engine.stats().running == 1 && engine.stats().waiting == 0);
    let waiting: Result<Vec<_>> = (0..2)
        .map(|_| submitted(&engine, vec![1], plain()))
        .collect();
    let waiting = waiting?;
    assert_eq!(refused(vec![1], plain()), "Full");
    engine.close();
    assert_eq!(refused(vec![1], plain()), "Closed");
    // What was taken is written to its end.
    for stream in std::iter::once(running).chain(waiting) {
        assert_eq!(ids(stream)?.len(), POSITIONS - 1);
    }
    engine.shutdown();
    Ok(())
}

#[test]
fn a_model_that_cannot_be_loaded_is_an_error() {
    let broken = || Err(Error::msg("no such file"));
    let error = Engine::start(broken, EngineOptions::default())
        .err()
        .map(|e| e.to_string());
    assert_eq!(error.as_deref(), Some("no such file"));
    let broken = || model(0);
    let error = Engine::start(broken, EngineOptions::default())
        .err()
        .map(|e| e.to_string());
    assert!(error.is_some_and(|error| error.contains("1 at least")));
}

#[test]
fn an_engine_that_is_dropped_ends_its_texts() -> Result<()> {
    let engine = engine(1, EngineOptions::default().buffered(4))?;
    let mut stream = submitted(&engine, vec![1], GenerationOptions::default())?;
    assert!(stream.next().is_some_and(|token| token.is_ok()));
    drop(engine);
    let left = stream.by_ref().count();
    assert!(left < 20, "{left}");
    Ok(())
}

#[test]
fn texts_end_where_they_should() -> Result<()> {
    let tokenizer = tokenizer()?;
    let engine = engine(2, EngineOptions::default().tokenizer(tokenizer.clone()))?;
    let plain = || GenerationOptions::default().max_new_tokens(24);
    let mut whole = submitted(&engine, prompt(3), plain())?;
    let tokens: Vec<_> = whole.by_ref().collect::<Result<_>>()?;
    assert_eq!(
        whole.end().map(|end| end.reason),
        Some(FinishReason::Length)
    );
    let all: Vec<u32> = tokens.iter().map(|token| token.id).collect();
    let text = submitted(&engine, prompt(3), plain())?.text()?;
    let mut told: String = tokens.iter().map(|token| token.text.as_str()).collect();
    told += &whole.end().map(|end| end.text.clone()).unwrap_or_default();
    assert_eq!(told, text);
    assert_eq!(text, tokenizer.decode(&all, true)?);

    // A token that ends it is not given.
    let at = (1..all.len()).find(|at| !all[..*at].contains(&all[*at]));
    let at = at.ok_or_else(|| Error::msg("all tokens are one"))?;
    let mut stream = submitted(&engine, prompt(3), plain().stop_ids(vec![all[at]]))?;
    let found: Result<Vec<u32>> = stream.by_ref().map(|token| Ok(token?.id)).collect();
    assert_eq!(found?, all[..at]);
    assert_eq!(stream.end().map(|end| end.reason), Some(FinishReason::Stop));

    // A string that ends it is not given either, wherever it lies in tokens.
    let letters: Vec<char> = text.chars().collect();
    for (from, count) in [(0, 1), (1, 3), (4, 6), (2, 9)] {
        let stop: String = letters.iter().skip(from).take(count).collect();
        let expected = text.find(&stop).map(|at| text[..at].to_string());
        let options = plain().stop_strings(vec!["never there".to_string(), stop.clone()]);
        let mut stream = submitted(&engine, prompt(3), options)?;
        let mut found = String::new();
        for token in &mut stream {
            found += &token?.text;
        }
        let end = stream.end().cloned().ok_or_else(|| Error::msg("no end"))?;
        assert_eq!(end.reason, FinishReason::Stop, "{stop:?}");
        assert_eq!(Some(found + &end.text), expected, "{stop:?}");
    }
    // What only began like one is given in the end.
    let last: String = letters.iter().rev().take(2).rev().collect();
    let options = plain().stop_strings(vec![format!("{last} and more")]);
    assert_eq!(submitted(&engine, prompt(3), options)?.text()?, text);
    Ok(())
}

#[test]
fn processors_are_graphs_of_scores() -> Result<()> {
    let engine = engine(2, EngineOptions::default())?;
    let plain = ids(submitted(
        &engine,
        prompt(5),
        options(0).max_new_tokens(20),
    )?)?;
    let first = i64::from(plain[0]);
    let without = Processor::new(move || {
        symbolic_trace(traced!(move |scores: &Tensor, tokens: &Tensor| {
            let _ = tokens;
            let is_first = Tensor::arange(0, scores.size(0)?)?.eq(first)?;
            scores.masked_fill(&is_first, f64::NEG_INFINITY)
        }))
    });
    let found = ids(submitted(
        &engine,
        prompt(5),
        options(0).max_new_tokens(20).processors(vec![without]),
    )?)?;
    assert!(!found.contains(&plain[0]));
    assert_eq!(found.len(), 20);
    Ok(())
}

#[test]
fn a_graph_may_be_edited_by_path() -> Result<()> {
    let without = |old: &nn::Linear| -> Result<nn::Linear> {
        let mut new = old.clone();
        new.weight = (&old.weight * 0.0)?;
        Ok(new)
    };
    let load = move || {
        let (model, config) = decoder()?;
        let mut gm = model.trace_texts(2)?;
        gm.replace_modules("model.layers.*.mlp.down_proj", |_, old: &nn::Linear| {
            without(old)
        })?;
        Model::new(&gm, model.caches(1)?, &config, 2)
    };
    let edited = Engine::start(load, EngineOptions::default().chunk(8))?;
    let found = ids(submitted(&edited, prompt(4), options(4))?)?;
    let plain = engine(2, EngineOptions::default())?;
    assert_ne!(found, ids(submitted(&plain, prompt(4), options(4))?)?);
    let load = move || {
        let (mut model, config) = decoder()?;
        for layer in &mut model.model.layers {
            if let FeedForward::Mlp(mlp) = &mut layer.mlp {
                mlp.down_proj = without(&mlp.down_proj)?;
            }
        }
        Model::of_decoder(&model, &config, 2)
    };
    let expected = Engine::start(load, EngineOptions::default().chunk(8))?;
    assert_eq!(found, ids(submitted(&expected, prompt(4), options(4))?)?);
    Ok(())
}
