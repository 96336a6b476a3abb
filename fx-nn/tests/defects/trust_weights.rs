//! Files of weights: hostile ones, those of other libraries, and what is around them.

use std::io::Write;
use std::path::{Path, PathBuf};

use fx_nn::optim::{
    Adam, CosineAnnealingLR, CosineAnnealingWarmRestarts, LinearLR, Optimizer, SGD, Schedule,
    Scheduler, SequentialLR,
};
use fx_nn::prelude::*;
use fx_nn::weights::{self, Checkpoint, Materialise};
use zip::write::SimpleFileOptions;

/// A file that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Scratch(std::env::temp_dir().join(format!("fx_trust_{}_{name}", std::process::id())))
    }

    /// A PyTorch file of a pickle and one storage.
    fn pth(name: &str, pickle: &[u8], storage: &[f32]) -> Result<Self> {
        let own = Scratch::new(name);
        let file = std::fs::File::create(&own.0).map_err(Error::other)?;
        let mut zip = zip::ZipWriter::new(file);
        let stored =
            SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        let elements: Vec<u8> = storage.iter().flat_map(|x| x.to_le_bytes()).collect();
        for (name, bytes) in [("m/data.pkl", pickle), ("m/data/0", &elements)] {
            zip.start_file(name, stored).map_err(Error::other)?;
            zip.write_all(bytes).map_err(Error::other)?;
        }
        zip.finish().map_err(Error::other)?;
        Ok(own)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl AsRef<Path> for Scratch {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

fn told<T>(result: Result<T>) -> String {
    result.map_or_else(|error| error.to_string(), |_| "it was read".to_string())
}

fn text(pickle: &mut Vec<u8>, text: &str) {
    pickle.push(b'X');
    pickle.extend((text.len() as u32).to_le_bytes());
    pickle.extend(text.as_bytes());
}

fn number(pickle: &mut Vec<u8>, number: i64) {
    pickle.extend([0x8a, 8]);
    pickle.extend(number.to_le_bytes());
}

fn tuple(pickle: &mut Vec<u8>, numbers: &[i64]) {
    pickle.push(b'(');
    numbers.iter().for_each(|n| number(pickle, *n));
    pickle.push(b't');
}

/// The pickle of a state dict with one tensor.
fn state_dict(offset: i64, size: &[i64], stride: &[i64]) -> Vec<u8> {
    let mut pickle = vec![0x80, 2, b'}', b'('];
    text(&mut pickle, "w");
    pickle.extend(b"ctorch._utils\n_rebuild_tensor_v2\n((");
    text(&mut pickle, "storage");
    pickle.extend(b"ctorch\nFloatStorage\n");
    text(&mut pickle, "0");
    text(&mut pickle, "cpu");
    number(&mut pickle, 6);
    pickle.extend(b"tQ");
    number(&mut pickle, offset);
    tuple(&mut pickle, size);
    tuple(&mut pickle, stride);
    pickle.push(0x89);
    pickle.extend(b"ccollections\nOrderedDict\n)RtRu.");
    pickle
}

const SIX: [f32; 6] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];

#[test]
fn defect_t3_p1_lists_in_lists_end_in_an_error() -> Result<()> {
    const DEEP: usize = 1_000_000;
    let mut lists = vec![0x80, 2];
    lists.extend(std::iter::repeat_n(b']', DEEP));
    lists.extend(std::iter::repeat_n(b'a', DEEP - 1));
    lists.push(b'.');
    let mut tuples = vec![0x80, 2, b')'];
    tuples.extend(std::iter::repeat_n(0x85, DEEP));
    tuples.push(b'.');
    let mut calls = vec![0x80, 2];
    calls.extend(b"ca\nb\n)".repeat(DEEP / 10));
    calls.extend(std::iter::repeat_n(b'R', DEEP / 10));
    calls.push(b'.');
    let mut dicts = vec![0x80, 2];
    dicts.extend(b"}K\x01".repeat(DEEP / 4));
    dicts.push(b'N');
    dicts.extend(std::iter::repeat_n(b's', DEEP / 4));
    dicts.push(b'.');
    for (name, pickle) in [
        ("lists", lists),
        ("tuples", tuples),
        ("calls", calls),
        ("dicts", dicts),
    ] {
        let file = Scratch::pth(name, &pickle, &[])?;
        let problem = told(Checkpoint::open(&file));
        assert!(problem.contains("no tensors by name"), "{name}: {problem}");
    }
    Ok(())
}

#[test]
fn defect_t3_p1_what_is_shared_is_held_once() -> Result<()> {
    // A list that holds the one before twice, and so on; and the same by tuples.
    let mut lists = vec![0x80, 2, b']', b'q', 0];
    let mut tuples = vec![0x80, 2, b')', b'q', 0];
    for at in 0..200u8 {
        lists.extend([b']', b'h', at, b'a', b'h', at, b'a', b'q', at + 1]);
        tuples.extend([b'h', at, b'h', at, 0x86, b'q', at + 1]);
    }
    // A list that holds itself.
    let itself = vec![0x80, 2, b']', b'q', 0, b'h', 0, b'a', b'.'];
    lists.push(b'.');
    tuples.push(b'.');
    for (name, pickle) in [("twice", lists), ("pairs", tuples), ("itself", itself)] {
        let file = Scratch::pth(name, &pickle, &[])?;
        let problem = told(Checkpoint::open(&file));
        assert!(problem.contains("no tensors by name"), "{name}: {problem}");
    }
    Ok(())
}

#[test]
fn defect_t3_p1_a_tensor_outside_of_its_storage_is_refused() -> Result<()> {
    let big = 1i64 << 62;
    let wrong: [(i64, &[i64], &[i64]); 9] = [
        (big, &[2], &[1]),
        (i64::MAX, &[1], &[1]),
        (-1, &[2], &[1]),
        (5, &[2], &[1]),
        (0, &[7], &[1]),
        (0, &[2, 3], &[big, 1]),
        (0, &[3], &[3]),
        (0, &[big, 4], &[4, 1]),
        (0, &[-2], &[1]),
    ];
    for (offset, size, stride) in wrong {
        let file = Scratch::pth("outside", &state_dict(offset, size, stride), &SIX)?;
        let problem = told(Checkpoint::open(&file));
        let is_named = problem.contains("`w`");
        assert!(is_named, "{offset} {size:?} {stride:?}: {problem}");
    }
    /// The first element's place, sizes, strides, and the elements.
    type Inside<'a> = (i64, &'a [i64], &'a [i64], &'a [f64]);
    let sound: [Inside<'_>; 6] = [
        (1, &[2], &[1], &[1.0, 2.0]),
        (0, &[2, 3], &[3, 1], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        (0, &[3, 2], &[1, 3], &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]),
        (1, &[3], &[2], &[1.0, 3.0, 5.0]),
        // The stride of a dim of size 1 is any number.
        (2, &[1, 1, 2], &[big, big, 3], &[2.0, 5.0]),
        (3, &[2, 2], &[0, 1], &[3.0, 4.0, 3.0, 4.0]),
    ];
    for (offset, size, stride, expected) in sound {
        let file = Scratch::pth("inside", &state_dict(offset, size, stride), &SIX)?;
        let tensor = Checkpoint::open(&file)?.tensor("w")?;
        let dims: Vec<usize> = size.iter().map(|n| *n as usize).collect();
        assert_eq!(
            (tensor.dims()?, tensor.to_vec()?),
            (&*dims, expected.to_vec())
        );
    }
    Ok(())
}

/// Types that candle's own reader left out with a line on the standard error.
#[test]
fn defect_t3_p1_every_element_type_of_a_pytorch_file_is_read_or_named() -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/checkpoints/kinds.pth");
    let file = Checkpoint::open(&path)?;
    let expected: [(&str, DType, &[usize], &[f64]); 8] = [
        ("bool", DType::Bool, &[3], &[1.0, 0.0, 1.0]),
        ("int16", DType::I16, &[2], &[-300.0, 300.0]),
        ("int32", DType::I32, &[2], &[-70000.0, 70000.0]),
        ("double", DType::F64, &[1], &[0.1]),
        (
            "expanded",
            DType::F32,
            &[2, 3],
            &[3.0, 3.0, 3.0, 4.0, 4.0, 4.0],
        ),
        ("parameter", DType::F32, &[1], &[5.0]),
        ("none", DType::F32, &[0, 4], &[]),
        ("scalar", DType::F32, &[], &[7.0]),
    ];
    for (name, dtype, dims, numbers) in expected {
        let tensor = file.tensor(name)?;
        assert_eq!((tensor.dtype()?, tensor.dims()?), (dtype, dims), "{name}");
        assert_eq!(tensor.to_vec()?, numbers, "{name}");
    }
    assert_eq!(file.tensor("int8")?.dtype()?, DType::I8);
    let problem = told(file.tensor("complex"));
    assert!(problem.contains("ComplexFloatStorage"), "{problem}");
    let wide = Checkpoint::open(&path)?.widen();
    assert_eq!(wide.tensor("int8")?.to_vec()?, [-128.0, 127.0]);
    assert_eq!(wide.tensor("uint16")?.to_vec()?, [0.0, 65535.0]);
    Ok(())
}

#[test]
fn defect_t3_p2_devices_and_folders_are_no_checkpoints() {
    for path in ["/dev/zero", "/dev/stdin", "/dev/random"] {
        if Path::new(path).exists() {
            let problem = told(Checkpoint::open(path));
            assert!(problem.contains("no file"), "{path}: {problem}");
            let problem = told(GraphModule::load(path));
            assert!(problem.contains("no file"), "{path}: {problem}");
        }
    }
}

#[derive(Module, Clone, Debug)]
struct Normed {
    linear: nn::Linear,
    norm: nn::BatchNorm1d,
}

impl Normed {
    fn new() -> Result<Self> {
        Ok(Normed {
            linear: nn::Linear::new(3, 2)?,
            norm: nn::BatchNorm1d::new(2)?,
        })
    }
}

#[test]
fn defect_t3_w1_a_batch_norm_without_its_count_is_loaded() -> Result<()> {
    let model = Normed::new()?;
    let count = |model: &Normed| match &model.norm.num_batches_tracked {
        Some(count) => count.to_vec(),
        None => Err(Error::msg("a batch norm counts its batches")),
    };
    let file = Scratch::new("candle.safetensors");
    let kept = model.state_dict().into_iter().filter_map(|(name, value)| {
        let tensor = value.downcast_ref::<Tensor>()?.clone();
        (!name.ends_with("num_batches_tracked")).then_some((name, tensor))
    });
    let kept: fx_nn::IndexMap<String, Tensor> = kept.collect();
    weights::save_tensors(kept.clone(), &file)?;

    // It stays what it is, as PyTorch's strict load leaves it.
    let mut trained = Normed::new()?;
    trained.norm.num_batches_tracked = Some(Tensor::full((), 7, DType::I64)?);
    weights::load(&mut trained, &file)?;
    assert_eq!(count(&trained)?, [7.0]);
    assert_eq!(
        trained.linear.weight.to_vec()?,
        model.linear.weight.to_vec()?
    );
    weights::load_state_dict(&mut trained, &kept)?;
    let report = Checkpoint::open(&file)?.load_partial(&mut trained)?;
    assert!(report.is_empty(), "{report}");
    // Without data, it begins at 0.
    let mut fake = nn::fake(Normed::new)?;
    fake.materialise(&Checkpoint::open(&file)?)?;
    assert_eq!(count(&fake)?, [0.0]);
    // A graph module of it, too.
    let mut traced = symbolic_trace(&nn::Sequential::new().push(nn::BatchNorm1d::new(2)?))?;
    let ones = |name: &str| Ok((format!("0.{name}"), Tensor::ones(2)?));
    let names = ["weight", "bias", "running_mean", "running_var"];
    let state = names.into_iter().map(ones).collect::<Result<_>>()?;
    weights::load_state_dict(&mut traced, &state)?;

    // What else is missing is an error, also under that name without statistics beside it.
    let mut less = kept;
    less.shift_remove("norm.running_mean");
    let problem = told(weights::load_state_dict(&mut trained, &less));
    assert!(problem.contains("`norm.running_mean`"), "{problem}");
    #[derive(Module)]
    struct Counted {
        #[module(buffer)]
        num_batches_tracked: Tensor,
    }
    let mut counted = Counted {
        num_batches_tracked: Tensor::zeros(())?,
    };
    let problem = told(weights::load_state_dict(
        &mut counted,
        &fx_nn::IndexMap::new(),
    ));
    assert!(problem.contains("num_batches_tracked"), "{problem}");
    Ok(())
}

#[test]
fn defect_t3_w4_an_optimizer_is_saved_by_any_path() -> Result<()> {
    let layer = nn::Linear::new(2, 1)?;
    let mut optimizer = Adam::new(&layer)?;
    let loss = layer.forward(&Tensor::ones((1, 2))?)?.sum(..)?;
    optimizer.step(&loss.backward()?)?;
    let file = Scratch::new("adam.safetensors");
    let name = file.0.display().to_string();
    optimizer.save(&name)?;
    optimizer.save(name.as_str())?;
    let mut other = Adam::new(&layer)?;
    other.load(&file)?;
    other.load(file.0.as_path())?;
    let mut any: Box<dyn Optimizer> = Box::new(other);
    any.save(&name)?;
    any.load(&name)?;
    assert_eq!(
        any.state_dict()?["weight.step"].to_vec()?,
        optimizer.state_dict()?["weight.step"].to_vec()?
    );
    Ok(())
}

const COSINE: [f64; 6] = [
    0.1,
    0.08828427124746191,
    0.06,
    0.0317157287525381,
    0.02,
    0.0317157287525381,
];
const RESTARTS: [f64; 6] = [
    0.1,
    0.06,
    0.1,
    0.08828427124746191,
    0.06,
    0.0317157287525381,
];

/// PyTorch 2.15: `CosineAnnealingLR(SGD(lr=0.1), 4, eta_min=0.02)`, and so on.
#[test]
fn defect_t3_w4_the_least_rate_of_a_cosine_is_a_rate() -> Result<()> {
    let near = |found: &[f64], expected: &[f64]| {
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() < 1e-12, "{found:?} and {expected:?}");
        }
    };
    let rates = |schedule: &dyn Schedule| -> Vec<f64> {
        (0..6).map(|step| schedule.rate(0.1, step)).collect()
    };
    let cosine = CosineAnnealingLR::new(4, 0.0).eta_min(0.02);
    let expected = COSINE;
    near(&rates(&cosine), &expected);
    near(&rates(&CosineAnnealingLR::new(4, 0.2)), &expected);
    let restarts = CosineAnnealingWarmRestarts::new(2, 2, 0.0).eta_min(0.02);
    near(&rates(&restarts), &RESTARTS);
    // Behind another schedule, in a box, and in an optimizer.
    let boxed: Box<dyn Schedule> = Box::new(cosine);
    let behind = SequentialLR::new(LinearLR::new(0.5, 1.0, 2)).then(2, boxed);
    near(&[behind.rate(0.1, 2), behind.rate(0.1, 6)], &[0.1, 0.02]);
    let mut optimizer = SGD::new(&nn::Linear::new(2, 2)?)?.lr(0.1);
    let mut scheduler = Scheduler::new(cosine, &mut optimizer);
    (0..4).for_each(|_| scheduler.step(&mut optimizer));
    near(&[optimizer.learning_rate()], &[0.02]);
    Ok(())
}

#[test]
fn defect_t3_w4_the_names_of_what_is_trained() -> Result<()> {
    let mut model = Normed::new()?;
    nn::set_requires_grad_at(&mut model, "norm.**", false)?;
    let names: Vec<String> = nn::trainable_parameters(&model).into_keys().collect();
    assert_eq!(names, ["linear.weight", "linear.bias"]);
    Ok(())
}

#[derive(Module, Clone, Debug)]
struct Tied {
    wte: nn::Embedding,
    head: nn::Linear,
}

#[test]
fn defect_t3_w4_a_shared_tensor_is_saved_once() -> Result<()> {
    let wte = nn::Embedding::new(5, 3)?;
    let mut head = nn::Linear::new(3, 5)?.bias(false);
    head.weight = wte.weight.clone();
    let tied = Tied { wte, head };
    let file = Scratch::new("tied.safetensors");
    weights::save(&tied, &file)?;
    let checkpoint = Checkpoint::open(&file)?;
    assert_eq!(checkpoint.names().collect::<Vec<_>>(), ["wte.weight"]);
    let mut other = tied.clone();
    other.wte.weight = Tensor::randn((5, 3))?.into_parameter()?;
    other.head.weight = other.wte.weight.clone();
    checkpoint.load(&mut other)?;
    assert_eq!(other.head.weight.to_vec()?, tied.wte.weight.to_vec()?);
    Ok(())
}

#[test]
fn defect_t3_w4_the_page_of_layers_has_each_once() -> Result<()> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ops.md");
    let page = std::fs::read_to_string(page).map_err(Error::other)?;
    let (_, layers) = page
        .split_once("## Layers")
        .ok_or_else(|| Error::msg("the page has the layers"))?;
    let rows = layers.lines().filter_map(|line| line.strip_prefix("| `"));
    let mut names: Vec<&str> = rows.filter_map(|row| row.split('`').next()).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert!(count > 100, "{count} layers");
    assert_eq!(names.len(), count, "a layer is there twice");
    Ok(())
}
