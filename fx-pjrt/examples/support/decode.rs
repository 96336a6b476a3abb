//! GPT-2 with caches of a fixed length: one program for every step of a text, whose caches stay on the device.

use fx_nn::models::gpt2::{Block, Gpt2};
use fx_nn::prelude::*;
use fx_pjrt::{Client, DeviceTensor, LoadedProgram};
use fx_stablehlo::{Export, Program};

/// GPT-2 that reads tokens after those that its caches hold.
#[derive(Module)]
pub struct Decoder {
    pub gpt2: Gpt2,
}

#[trace]
impl Decoder {
    /// The next token after `tokens` `[1, T]`, of which the first is at `start` `[1]`; the caches `[layers, heads,
    /// length, width]` of keys and values with those of the tokens.
    pub fn forward(
        &self,
        tokens: &Tensor,
        start: &Tensor,
        keys: &Tensor,
        values: &Tensor,
    ) -> Result<(Tensor, Tensor, Tensor)> {
        let count = tokens.size(1)?;
        let at = (Tensor::arange(0, count)? + start)?;
        let length = keys.size(2)?;
        // A token sees those up to itself, and not what the cache has no token for.
        let hidden = Tensor::arange(0, length)?
            .unsqueeze(0)?
            .gt(&at.unsqueeze(1)?)?;
        let mut x = (self.gpt2.wte.forward(tokens)? + self.gpt2.wpe.forward(&at)?)?;
        let (mut all_keys, mut all_values) = (Vec::new(), Vec::new());
        for (layer, block) in self.gpt2.h.iter().enumerate() {
            let layer = layer as i64;
            let seen = (keys.select(0, layer)?, values.select(0, layer)?);
            let (y, k, v) = attend(block, &x, &at, &hidden, seen)?;
            x = (x + y)?;
            x = (&x + block.mlp.forward(&block.ln_2.forward(&x)?)?)?;
            all_keys.push(k);
            all_values.push(v);
        }
        let last = self.gpt2.ln_f.forward(&x.narrow(1, -1, 1)?)?;
        let token = self.gpt2.lm_head.forward(&last)?.argmax(-1, false)?;
        Ok((
            token,
            ops::stack(&all_keys, 0)?,
            ops::stack(&all_values, 0)?,
        ))
    }
}

/// A layer's attention to its caches, and the caches with the keys and values of these tokens.
fn attend(
    block: &Block,
    x: &Tensor,
    at: &Tensor,
    hidden: &Tensor,
    (keys, values): (Tensor, Tensor),
) -> Result<(Tensor, Tensor, Tensor)> {
    let attn = &block.attn;
    let (heads, width) = (attn.n_head, attn.n_embd / attn.n_head);
    let split = attn.c_attn.forward(&block.ln_1.forward(x)?)?;
    let [q, k, v] = split.split(attn.n_embd, 2)?.unpack()?;
    let count = x.size(1)?;
    let per_head = |x: &Tensor| x.view((count, heads, width))?.transpose(0, 1);
    let (q, k, v) = (per_head(&q)?, per_head(&k)?, per_head(&v)?);
    let keys = ops::index_copy(&keys, 1, at, &k)?;
    let values = ops::index_copy(&values, 1, at, &v)?;
    let scores = (ops::matmul(&q, &keys.transpose(-2, -1)?)? * (1.0 / (width as f64).sqrt()))?;
    let weights = ops::softmax(&scores.masked_fill(hidden, f64::NEG_INFINITY)?, -1)?;
    let y = ops::matmul(&weights, &values)?.transpose(0, 1)?;
    let y = y.reshape((1, count, attn.n_embd))?;
    Ok((attn.c_proj.forward(&y)?, keys, values))
}

impl Decoder {
    /// For inference.
    pub fn new(mut gpt2: Gpt2) -> Result<Self> {
        gpt2.eval();
        nn::set_requires_grad(&mut gpt2, false)?;
        Ok(Decoder { gpt2 })
    }

    /// Empty caches for so many tokens.
    pub fn cache(&self, length: usize) -> Result<Tensor> {
        let first = self
            .gpt2
            .h
            .first()
            .map(|block| (block.attn.n_head, block.attn.n_embd));
        let (heads, width) = first.ok_or_else(|| Error::msg("the model has no layer"))?;
        Tensor::zeros((self.gpt2.h.len(), heads, length, width / heads))
    }
}

impl Decoder {
    /// The tokens that the model writes on the CPU, reading the whole text for each.
    pub fn on_the_cpu(&self, prompt: &[i64], count: usize) -> Result<Vec<i64>> {
        let mut text = prompt.to_vec();
        for _ in 0..count {
            let tokens = Tensor::from_vec(text.clone(), (1, text.len()))?;
            let scores = self.gpt2.forward(&tokens)?;
            text.push(scores.i((0, -1))?.argmax(0, false)?.item()? as i64);
        }
        Ok(text.split_off(prompt.len()))
    }
}

/// The programs of a decoder on a device: for the prompt, and for each token after it.
pub struct Programs {
    pub prompt: LoadedProgram,
    pub step: LoadedProgram,
    /// The step as it was written.
    #[allow(dead_code, reason = "one of the programs saves it")]
    pub written: Program,
}

/// What a text has on the device: its caches, and its last token.
pub struct Text {
    pub token: DeviceTensor,
    keys: DeviceTensor,
    values: DeviceTensor,
    at: usize,
}

impl Programs {
    /// For a prompt and a text of so many tokens; the caches are donated, so that each is held once.
    pub fn new(client: &Client, decoder: &Decoder, prompt: usize, length: usize) -> Result<Self> {
        let gm = symbolic_trace(decoder)?;
        let cache = decoder.cache(length)?;
        let written = |count: usize| {
            let (tokens, start) = (
                Tensor::full((1, count), 0, DType::I64)?,
                Tensor::full(1, 0, DType::I64)?,
            );
            let export = Export::example((&tokens, &start, &cache, &cache));
            Program::of(&gm, &export.donate(["keys", "values"]))
        };
        let step = written(1)?;
        Ok(Programs {
            prompt: LoadedProgram::new(client, &written(prompt)?)?,
            step: LoadedProgram::new(client, &step)?,
            written: step,
        })
    }

    /// Reads a prompt.
    pub fn read(&self, decoder: &Decoder, prompt: &[i64], length: usize) -> Result<Text> {
        let tokens = Tensor::from_vec(prompt.to_vec(), (1, prompt.len()))?;
        let (start, cache) = (Tensor::full(1, 0, DType::I64)?, decoder.cache(length)?);
        let given = self.prompt.place([&tokens, &start, &cache, &cache])?;
        let results = self.prompt.run(&given.iter().collect::<Vec<_>>())?;
        Text::of(results, prompt.len())
    }

    /// Writes the next token: only its place goes to the device.
    pub fn next(&self, client: &Client, text: Text) -> Result<Text> {
        let start = Tensor::full(1, text.at as i64, DType::I64)?;
        let start = DeviceTensor::new(client, &start)?;
        let results = self
            .step
            .run(&[&text.token, &start, &text.keys, &text.values])?;
        Text::of(results, text.at + 1)
    }
}

impl Text {
    fn of(results: Vec<DeviceTensor>, at: usize) -> Result<Self> {
        let [token, keys, values] = <[DeviceTensor; 3]>::try_from(results)
            .map_err(|_| Error::msg("the program has other results"))?;
        Ok(Text {
            token,
            keys,
            values,
            at,
        })
    }

    /// Where the keys lie on the device.
    #[allow(dead_code, reason = "one of the programs shows it")]
    pub fn address(&self) -> Result<usize> {
        self.keys.address()
    }
}
