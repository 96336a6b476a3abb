//! Checkpoints of every kind: loading, renaming, reports and errors.

use std::fs;
use std::path::{Path, PathBuf};

use candle_core::quantized::{GgmlDType, QTensor, gguf_file};
use fx_nn::ErrorKind;
use fx_nn::prelude::*;
use fx_nn::weights::{self, Checkpoint, Save};

/// A folder that is removed when the test ends.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Result<Self> {
        let folder = format!("fx_checkpoint_{name}_{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).map_err(Error::other)?;
        Ok(Scratch(folder))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/checkpoints")
        .join(name)
}

fn numbers(n: usize) -> Vec<f32> {
    (0..n).map(|i| i as f32).collect()
}

fn linear() -> Result<nn::Linear> {
    let mut layer = nn::Linear::new(4, 3)?;
    layer.weight = Tensor::from_vec(numbers(12), (3, 4))?.into_parameter()?;
    layer.bias = Some(Tensor::from_vec(numbers(3), 3)?.into_parameter()?);
    Ok(layer)
}

fn told<T: std::fmt::Debug>(result: Result<T>) -> String {
    let error = result.expect_err("it is refused");
    assert!(matches!(error.kind(), ErrorKind::Weights(_)), "{error}");
    error.to_string()
}

#[test]
fn every_float_type_is_saved_and_loaded_into_every_other() -> Result<()> {
    let scratch = Scratch::new("types")?;
    let file = scratch.file("model.safetensors");
    for saved in [DType::F64, DType::F32, DType::F16, DType::BF16] {
        Save::new().dtype(saved).write(&linear()?, &file)?;
        let checkpoint = Checkpoint::open(&file)?;
        assert_eq!(checkpoint.tensor("weight")?.dtype()?, saved);
        for own in [DType::F64, DType::F32, DType::F16, DType::BF16] {
            let mut layer = nn::Linear::new(4, 3)?;
            nn::to_dtype(&mut layer, own)?;
            checkpoint.load(&mut layer)?;
            assert_eq!(layer.weight.dtype()?, own);
            // All of them have whole numbers below 256.
            assert_eq!(layer.weight.to_vec()?, linear()?.weight.to_vec()?);
        }
    }
    let problem = told(Save::new().dtype(DType::I64).write(&linear()?, &file));
    assert!(problem.ends_with("floats cannot be saved as int64: give a floating point type"));
    Ok(())
}

#[derive(Module)]
struct Counted {
    layer: nn::Linear,
    #[module(buffer)]
    steps: Tensor,
    #[module(buffer, persistent = false)]
    table: Tensor,
}

#[trace]
impl Counted {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        self.layer.forward(x)? * &self.table
    }
}

fn counted() -> Result<Counted> {
    Ok(Counted {
        layer: linear()?,
        steps: Tensor::from_vec(vec![7i64], ())?,
        table: Tensor::from_vec(vec![1.0f32, 2.0, 3.0], 3)?,
    })
}

#[test]
fn integers_stay_what_they_are_and_computed_buffers_stay_out() -> Result<()> {
    let scratch = Scratch::new("buffers")?;
    let file = scratch.file("model.safetensors");
    Save::new().dtype(DType::BF16).write(&counted()?, &file)?;
    let checkpoint = Checkpoint::open(&file)?;
    let mut names: Vec<&str> = checkpoint.names().collect();
    names.sort_unstable();
    assert_eq!(names, ["layer.bias", "layer.weight", "steps"]);
    assert_eq!(checkpoint.tensor("steps")?.dtype()?, DType::I64);

    let mut other = counted()?;
    other.steps = Tensor::from_vec(vec![0i64], ())?;
    checkpoint.load(&mut other)?;
    assert_eq!(other.steps.number()?, fx_nn::Number::Int(7));
    // It is like other buffers except in files of weights: listed, converted, traced and kept in a
    // saved module.
    assert!(other.named_buffers().contains_key("table"));
    assert!(!other.state_dict().contains_key("table"));
    let gm = symbolic_trace(&other)?;
    assert!(!gm.state_dict().contains_key("table"));
    let again = GraphModule::from_bytes(&gm.to_bytes()?)?;
    assert!(!again.state_dict().contains_key("table"));
    let x = Tensor::ones((1, 4))?;
    let expected = other.forward(&x)?.to_vec()?;
    assert_eq!(again.forward::<Tensor>(&x)?.to_vec()?, expected);
    nn::to_dtype(&mut other, DType::BF16)?;
    assert_eq!(other.table.dtype()?, DType::BF16);
    Ok(())
}

#[test]
fn shards_are_written_with_an_index_and_found_in_their_folder() -> Result<()> {
    let scratch = Scratch::new("shards")?;
    let model = nn::Sequential::new()
        .push(nn::Linear::new(8, 8)?)
        .push(nn::Linear::new(8, 8)?);
    Save::new().max_shard_size(300).write(&model, &scratch.0)?;
    let mut files: Vec<String> = fs::read_dir(&scratch.0)
        .map_err(Error::other)?
        .map(|entry| {
            Ok(entry
                .map_err(Error::other)?
                .file_name()
                .display()
                .to_string())
        })
        .collect::<Result<_>>()?;
    files.sort();
    assert_eq!(
        files,
        [
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
            "model.safetensors.index.json"
        ]
    );
    let index = scratch.file("model.safetensors.index.json");
    for path in [scratch.0.clone(), index.clone()] {
        let mut other = nn::Sequential::new()
            .push(nn::Linear::new(8, 8)?)
            .push(nn::Linear::new(8, 8)?);
        weights::load(&mut other, path)?;
        for (own, loaded) in model.state_dict().values().zip(other.state_dict().values()) {
            let numbers = |v: &Value| v.downcast_ref::<Tensor>().map(Tensor::to_vec).transpose();
            assert_eq!(numbers(own)?, numbers(loaded)?);
        }
    }

    // Everything fits into one file: then the previous index must not be found.
    Save::new()
        .max_shard_size(1 << 20)
        .write(&model, &scratch.0)?;
    assert!(!index.exists());
    assert_eq!(Checkpoint::open(&scratch.0)?.names().count(), 4);
    Ok(())
}

#[test]
fn what_an_index_says_wrongly_is_listed() -> Result<()> {
    let scratch = Scratch::new("index")?;
    weights::save(&linear()?, scratch.file("a.safetensors"))?;
    weights::save(&nn::LayerNorm::new(3)?, scratch.file("b.safetensors"))?;
    let index = scratch.file("model.safetensors.index.json");
    let write = |text: &str| fs::write(&index, text).map_err(Error::other);
    write(
        r#"{"weight_map": {"weight": "a.safetensors", "more": "a.safetensors", "up": "../a.safetensors", "n": 3}}"#,
    )?;
    let problem = told(Checkpoint::open(&scratch.0));
    for line in [
        "`up` is in \"../a.safetensors\", which is no file's name",
        "`n` is in 3, which is no file's name",
        "`more` is in the index, and in no file",
    ] {
        assert!(problem.contains(line), "{problem}");
    }
    write(
        r#"{"weight_map": {"weight": "a.safetensors", "x": "b.safetensors", "y": "c.safetensors"}}"#,
    )?;
    let problem = told(Checkpoint::open(&index));
    for line in [
        "b.safetensors: `weight` is in another file too",
        "c.safetensors: No such file",
    ] {
        assert!(problem.contains(line), "{problem}");
    }
    for (text, line) in [
        ("{}", "it is not an index: there is no `weight_map`"),
        ("[1, ", "EOF while parsing"),
    ] {
        write(text)?;
        let problem = told(Checkpoint::open(&index));
        assert!(problem.contains(line), "{problem}");
    }
    let empty = Scratch::new("empty")?;
    let problem = told(Checkpoint::open(&empty.0));
    assert!(problem.contains("the folder has no weights"), "{problem}");
    Ok(())
}

#[test]
fn names_are_renamed_and_what_does_not_fit_is_reported() -> Result<()> {
    let scratch = Scratch::new("names")?;
    let file = scratch.file("model.safetensors");
    let model = nn::Sequential::new().push(linear()?).push(linear()?);
    weights::save(&model, &file)?;

    let problem = told(weights::load(&mut nn::Linear::new(4, 3)?, &file));
    for line in [
        "`0.weight` is in the file but not in the model",
        "`weight` of shape [3, 4] is in the model but not in the file",
    ] {
        assert!(problem.contains(line), "{problem}");
    }
    let mut layer = nn::Linear::new(4, 3)?;
    Checkpoint::open(&file)?.prefix("1.").load(&mut layer)?;
    assert_eq!(layer.weight.to_vec()?, linear()?.weight.to_vec()?);

    let renamed = Checkpoint::open(&file)?.rename(|name| name[2..].to_string());
    let problem = told(renamed);
    assert!(
        problem.contains("`0.bias` and `1.bias` both become `bias`"),
        "{problem}"
    );
    let mut layer = nn::Linear::new(4, 3)?;
    Checkpoint::open(&file)?
        .retain(|name| name.starts_with('0'))
        .rename(|name| name[2..].to_string())?
        .load(&mut layer)?;

    let mut other = nn::Linear::new(5, 3)?;
    let before = other.weight.to_vec()?;
    let report = Checkpoint::open(&file)?
        .prefix("0.")
        .load_partial(&mut other)?;
    assert_eq!(
        report.to_string(),
        "`weight` has shape [3, 4] in the file and [3, 5] in the model"
    );
    assert_eq!(other.weight.to_vec()?, before);
    let bias = other.bias.as_ref().map(Tensor::to_vec).transpose()?;
    assert_eq!(bias, Some(vec![0.0, 1.0, 2.0]));
    Ok(())
}

#[test]
fn a_load_tells_how_far_it_is() -> Result<()> {
    let scratch = Scratch::new("progress")?;
    let file = scratch.file("model.safetensors");
    weights::save(&linear()?, &file)?;
    let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
    let told = seen.clone();
    Checkpoint::open(&file)?
        .on_progress(move |p| {
            told.borrow_mut()
                .push((p.name.to_string(), p.bytes, p.total))
        })
        .load(&mut nn::Linear::new(4, 3)?)?;
    let expected = [("weight", 0, 60), ("bias", 48, 60), ("", 60, 60)];
    assert_eq!(
        *seen.borrow(),
        expected.map(|(n, b, t)| (n.to_string(), b, t))
    );
    Ok(())
}

#[test]
fn files_of_pytorch_are_read() -> Result<()> {
    let checkpoint = Checkpoint::open(recorded("state.pth"))?;
    let mut names: Vec<&str> = checkpoint.names().collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["bfloat", "bias", "count", "half", "turned", "weight"]
    );
    let weight = checkpoint.tensor("weight")?;
    assert_eq!(
        (weight.dims()?, weight.to_vec()?),
        (&[3, 4][..], linear()?.weight.to_vec()?)
    );
    // A view begins where it begins in PyTorch, and a transposed one stays transposed.
    assert_eq!(checkpoint.tensor("bias")?.to_vec()?, [4.0, 5.0, 6.0]);
    assert_eq!(
        checkpoint.tensor("turned")?.to_vec()?,
        weight.t()?.to_vec()?
    );
    for (name, dtype) in [("half", DType::F16), ("bfloat", DType::BF16)] {
        let tensor = checkpoint.tensor(name)?;
        assert_eq!(tensor.dtype()?, dtype);
        assert_eq!(tensor.to_vec()?, (&weight / 4.0)?.to_vec()?);
    }
    let count = checkpoint.tensor("count")?;
    assert_eq!(count.i(0)?.number()?, fx_nn::Number::Int(1 << 40));

    let mut layer = nn::Linear::new(4, 3)?;
    weights::load(&mut layer, recorded("training.pt"))?;
    assert_eq!(layer.weight.to_vec()?, weight.to_vec()?);

    let problem = told(Checkpoint::open(recorded("old.pth")));
    assert!(problem.contains("PyTorch before 1.6"), "{problem}");
    // Every second element of rows of 8.
    let strided = Checkpoint::open(recorded("strided.pth"))?.tensor("weight")?;
    let expected: Vec<f64> = (0..12).map(|at| f64::from(2 * at)).collect();
    assert_eq!(
        (strided.dims()?, strided.to_vec()?),
        (&[3, 4][..], expected)
    );
    Ok(())
}

fn gguf(path: &Path, tensors: &[(&str, &QTensor)], alignment: Option<u32>) -> Result<()> {
    let architecture = gguf_file::Value::String("llama".to_string());
    let mut metadata = vec![("general.architecture", &architecture)];
    let alignment = alignment.map(gguf_file::Value::U32);
    metadata.extend(alignment.iter().map(|value| ("general.alignment", value)));
    let mut file = fs::File::create(path).map_err(Error::other)?;
    gguf_file::write(&mut file, &metadata, tensors).map_err(Error::other)
}

#[test]
fn quantised_tensors_are_loaded_into_layers() -> Result<()> {
    let scratch = Scratch::new("gguf")?;
    let file = scratch.file("model.gguf");
    let source = Tensor::randn((4, 64))?;
    let weight = QTensor::quantize(source.candle()?, GgmlDType::Q8_0).map_err(Error::other)?;
    let bias =
        QTensor::quantize(Tensor::ones(4)?.candle()?, GgmlDType::F32).map_err(Error::other)?;
    gguf(
        &file,
        &[("blk.0.weight", &weight), ("blk.0.bias", &bias)],
        None,
    )?;

    let checkpoint = Checkpoint::open(&file)?;
    assert_eq!(
        checkpoint.metadata("general.architecture").as_deref(),
        Some("llama")
    );
    assert_eq!(
        checkpoint.quantization("blk.0.weight").as_deref(),
        Some("Q8_0")
    );
    assert_eq!(checkpoint.shape("blk.0.weight"), Some(&[4, 64][..]));
    // Unchanged, or dequantised into a layer.
    let kept = checkpoint.quantized_linear("blk.0")?;
    assert_eq!(
        (kept.weight.shape(), &*kept.weight.quantization()),
        ([4, 64], "Q8_0")
    );
    let mut layer = nn::Linear::new(64, 4)?;
    checkpoint.prefix("blk.0.").load(&mut layer)?;
    let close = fx_nn::allclose(&layer.weight, &source, 0.0, 0.03)?;
    assert!(close.close, "{close}");
    let x = Tensor::randn((3, 64))?;
    // 64 products of numbers that are off by half a step of 127 each.
    let close = fx_nn::allclose(&kept.forward(&x)?, &layer.forward(&x)?, 0.0, 0.5)?;
    assert!(close.close, "{close}");
    // Gradients run through to the layer's input.
    let x = x.into_parameter()?;
    let gradients = kept.forward(&x)?.sum(..)?.backward()?;
    let expected = layer.weight.detach()?.sum(0)?;
    let gradient = gradients.get(&x)?.expect("x is a parameter");
    assert!(fx_nn::allclose(&gradient.i(1)?, &expected, 1e-5, 1e-5)?.close);
    Ok(())
}

#[test]
fn damaged_files_are_errors_that_name_them() -> Result<()> {
    let scratch = Scratch::new("damaged")?;
    let file = scratch.file("model.gguf");
    let tensor = QTensor::quantize(Tensor::ones((4, 64))?.candle()?, GgmlDType::Q8_0);
    let tensor = tensor.map_err(Error::other)?;
    // Candle divides by this value of the file.
    gguf(&file, &[("weight", &tensor)], Some(0))?;
    assert!(told(Checkpoint::open(&file)).contains("model.gguf: "));

    gguf(&file, &[("weight", &tensor)], None)?;
    let whole = fs::read(&file).map_err(Error::other)?;
    for cut in [5, 20, 60, whole.len() - 100] {
        fs::write(&file, &whole[..cut]).map_err(Error::other)?;
        let mut layer = nn::Linear::new(64, 4)?.bias(false);
        let before = layer.weight.to_vec()?;
        let problem = told(weights::load(&mut layer, &file));
        assert!(problem.contains("model.gguf: "), "{problem}");
        assert_eq!(layer.weight.to_vec()?, before, "cut at {cut}");
    }

    let file = scratch.file("state.pth");
    let whole = fs::read(recorded("state.pth")).map_err(Error::other)?;
    for cut in [5, 100, 1000, whole.len() - 30] {
        fs::write(&file, &whole[..cut]).map_err(Error::other)?;
        assert!(told(Checkpoint::open(&file)).contains("state.pth: "));
    }
    // Whichever byte changes: an error or other numbers, never a panic.
    for at in 0..whole.len() {
        let mut other = whole.clone();
        other[at] ^= 0x41;
        fs::write(&file, &other).map_err(Error::other)?;
        if let Ok(checkpoint) = Checkpoint::open(&file) {
            let names: Vec<String> = checkpoint.names().map(str::to_string).collect();
            for name in names {
                let _ = checkpoint.tensor(&name);
            }
        }
    }
    Ok(())
}
