//! `LoadedProgram`: a program that is compiled for devices, with its weights on them.
//!
//! Invariant: what is given to a run has the type, the sizes and the placement of the argument that it is for.

use std::path::PathBuf;
use std::sync::Arc;

use fx_nn::prelude::*;
use fx_stablehlo::{ArgumentKind, Program};
use smallvec::SmallVec;

use crate::buffer::Buffer;
use crate::cache::Cache;
use crate::client::{Client, Device};
use crate::device_tensor::DeviceTensor;
use crate::executable::Executable;
use crate::options::compile_options;
use crate::placement::Placement;
use crate::shardings::placements;
use crate::weights::Weights;

/// A program of [`fx_stablehlo`] that is compiled for devices, with its weights on them: for calls
/// whose tensors stay on the devices. Threads may share it.
///
/// ```no_run
/// use fx_nn::prelude::*;
/// use fx_pjrt::{LoadedProgram, Pjrt};
/// use fx_stablehlo::{Export, Program};
/// let gm = symbolic_trace(traced!(|cache: &Tensor, x: &Tensor| cache + x))?;
/// let x = Tensor::ones((2, 3))?;
/// let program = Program::of(&gm, &Export::example((&x, &x)).donate(["cache"]))?;
/// let pjrt = Pjrt::cpu()?;
/// let program = LoadedProgram::new(pjrt.client(), &program)?;
/// let [mut cache, x] = program.place([&x, &x])?[..] else { unreachable!("there are two inputs") };
/// for _ in 0..10 {
///     // The old cache's memory is the new one's.
///     cache = program.run(&[&cache, &x])?.remove(0);
/// }
/// assert_eq!(cache.to_tensor()?.max(..)?.item()?, 11.0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct LoadedProgram {
    compiled: Arc<Compiled>,
    weights: Vec<Arc<DeviceTensor>>,
}

/// What does not change with the weights.
#[derive(Debug)]
struct Compiled {
    client: Client,
    devices: Vec<Device>,
    executable: Executable,
    inputs: Vec<Input>,
    weights: Vec<Arc<Placement>>,
    results: Vec<(DType, Arc<Placement>)>,
    takes_key: bool,
    was_cached: bool,
}

/// An input of a program.
#[derive(Debug)]
struct Input {
    name: Arc<str>,
    dtype: DType,
    placement: Arc<Placement>,
    is_donated: bool,
}

impl LoadedProgram {
    /// Compiles a program for the first devices of a client, as many as its mesh has, and places its
    /// weights.
    ///
    /// # Errors
    /// Returns an error if the client has fewer devices, the plugin refuses the program, its results
    /// are not those of the program, or a device has no room for the weights.
    pub fn new(client: &Client, program: &Program) -> Result<Self> {
        LoadedProgram::made(client, program, None, &Weights::default())
    }

    /// As [`new`](LoadedProgram::new), from a cache if the program was compiled before.
    ///
    /// # Errors
    /// As [`new`](LoadedProgram::new). A file of the cache that cannot be used is written anew.
    pub fn cached(client: &Client, program: &Program, cache: &Cache) -> Result<Self> {
        LoadedProgram::made(client, program, Some(cache), &Weights::default())
    }

    pub(crate) fn made(
        client: &Client,
        program: &Program,
        cache: Option<&Cache>,
        weights: &Weights,
    ) -> Result<Self> {
        let compiled = Arc::new(Compiled::of(client, program, cache)?);
        let values = program
            .arguments()
            .filter_map(|argument| match argument.kind {
                ArgumentKind::Weight { value, .. } => Some(value),
                _ => None,
            });
        let weights = compiled.placed(weights, values)?;
        Ok(LoadedProgram { compiled, weights })
    }

    /// The same program with other weights, in the order of the program's.
    pub(crate) fn with_weights(&self, weights: &Weights, values: &[Value]) -> Result<Self> {
        Ok(LoadedProgram {
            compiled: self.compiled.clone(),
            weights: self.compiled.placed(weights, values.iter())?,
        })
    }

    /// The same program and weights once more.
    pub(crate) fn shared(&self) -> Self {
        LoadedProgram {
            compiled: self.compiled.clone(),
            weights: self.weights.clone(),
        }
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.compiled.client
    }

    /// The names of the inputs, in order.
    pub fn inputs(&self) -> impl ExactSizeIterator<Item = &str> {
        self.compiled.inputs.iter().map(|input| &*input.name)
    }

    /// The number of devices that it runs on.
    pub fn devices(&self) -> usize {
        self.compiled.devices.len()
    }

    /// Whether it came from a cache.
    pub fn was_cached(&self) -> bool {
        self.compiled.was_cached
    }

    /// The inputs on the devices, each split as the program takes it.
    ///
    /// # Errors
    /// Returns an error if there are more or fewer than inputs, one has another type or other sizes, or a device has no
    /// room.
    pub fn place<'t>(
        &self,
        inputs: impl IntoIterator<Item = &'t Tensor>,
    ) -> Result<Vec<DeviceTensor>> {
        let compiled = &*self.compiled;
        let given: SmallVec<[&Tensor; 8]> = inputs.into_iter().collect();
        compiled.counted(given.len())?;
        let both = compiled.inputs.iter().zip(given);
        let placed = both.map(|(input, tensor)| {
            input.fits(tensor.dtype()?, tensor.dims()?)?;
            DeviceTensor::placed(
                &compiled.client,
                &compiled.devices,
                &input.placement,
                tensor,
            )
        });
        placed.collect()
    }

    /// Runs it on tensors of the devices. It returns at once; whoever reads a result waits for it.
    /// Inputs that are [donated](fx_stablehlo::Export::donate) cannot be read after it.
    ///
    /// # Errors
    /// Returns an error if the inputs are others than the program takes, one was donated before, or
    /// the plugin's error. An error of the devices comes with the results.
    pub fn run(&self, inputs: &[&DeviceTensor]) -> Result<Vec<DeviceTensor>> {
        let compiled = &*self.compiled;
        compiled.counted(inputs.len())?;
        for (input, given) in compiled.inputs.iter().zip(inputs) {
            input.fits(given.dtype(), given.shape())?;
            given
                .readable()
                .and_then(|()| input.is_placed(given))
                .map_err(|error| input.blame(error))?;
        }
        let key = match compiled.takes_key {
            true => Some(compiled.key()?),
            false => None,
        };
        let weights = self.weights.iter().map(Arc::as_ref);
        let arguments = inputs.iter().copied().chain(weights).chain(&key);
        let arguments: SmallVec<[&DeviceTensor; 8]> = arguments.collect();
        let of_device = |device| arguments.iter().map(move |tensor| tensor.buffer(device));
        let made = compiled
            .executable
            .run((0..compiled.devices.len()).map(of_device))?;
        for (input, given) in compiled.inputs.iter().zip(inputs) {
            if input.is_donated {
                given.donate(&input.name);
            }
        }
        let mut of_devices: SmallVec<[std::vec::IntoIter<Buffer>; 1]> =
            made.into_iter().map(Vec::into_iter).collect();
        let results = compiled.results.iter().map(|(dtype, placement)| {
            let buffers = of_devices.iter_mut().filter_map(Iterator::next);
            DeviceTensor::of(*dtype, placement.clone(), buffers)
        });
        Ok(results.collect())
    }

    /// Runs it on tensors of the host: they are placed, and the results are copied back.
    ///
    /// # Errors
    /// As [`place`](LoadedProgram::place) and [`run`](LoadedProgram::run), and the errors of the devices.
    pub fn call<'t>(&self, inputs: impl IntoIterator<Item = &'t Tensor>) -> Result<Vec<Tensor>> {
        let inputs = self.place(inputs)?;
        let inputs: SmallVec<[&DeviceTensor; 8]> = inputs.iter().collect();
        let results = self.run(&inputs)?;
        results.iter().map(DeviceTensor::to_tensor).collect()
    }
}

impl Compiled {
    fn of(client: &Client, program: &Program, cache: Option<&Cache>) -> Result<Self> {
        let count = program.mesh().map_or(1, |mesh| mesh.devices());
        let there = client.devices();
        let devices = there.get(..count).ok_or_else(|| {
            Error::msg(format_args!(
                "the program is split over {count} devices, and the client has {}: the plugin of CPUs takes `cpu_device_count`",
                there.len()
            ))
        })?;
        let options = compile_options(devices);
        let (executable, was_cached) = executable(client, program, &options, count, cache)?;
        let whole = |shape: &[i64]| -> Result<Vec<usize>> {
            let sizes = shape.iter().map(|size| usize::try_from(*size));
            sizes
                .collect::<std::result::Result<_, _>>()
                .map_err(Error::other)
        };
        let arguments: Vec<Vec<usize>> = program
            .arguments()
            .map(|argument| whole(argument.shape))
            .collect::<Result<_>>()?;
        let results: Vec<(DType, Vec<usize>)> = program
            .results()
            .map(|(dtype, shape)| Ok((dtype, whole(shape)?)))
            .collect::<Result<_>>()?;
        let (of_arguments, of_results) = match count {
            1 => {
                let alone = |shape: &Vec<usize>| Placement::replicated(shape.clone(), 1);
                let of_results = results.iter().map(|(_, shape)| alone(shape));
                (arguments.iter().map(alone).collect(), of_results.collect())
            }
            _ => {
                let shapes: Vec<Vec<usize>> =
                    results.iter().map(|(_, shape)| shape.clone()).collect();
                placements(&executable.optimized()?, &arguments, &shapes, count)?
            }
        };
        let results: Vec<(DType, Arc<Placement>)> = results
            .iter()
            .zip(of_results)
            .map(|((dtype, _), placement)| (*dtype, Arc::new(placement)))
            .collect();
        same_results(&results, &executable)?;
        let mut made = Compiled {
            client: client.clone(),
            devices: devices.to_vec(),
            executable,
            inputs: Vec::new(),
            weights: Vec::new(),
            results,
            takes_key: false,
            was_cached,
        };
        for (argument, placement) in program.arguments().zip(of_arguments) {
            let placement = Arc::new(placement);
            match argument.kind {
                ArgumentKind::Input(name) => made.inputs.push(Input {
                    name: name.into(),
                    dtype: argument.dtype,
                    placement,
                    is_donated: argument.is_donated,
                }),
                ArgumentKind::Weight { path, .. } if argument.is_donated => {
                    return Err(Error::msg(format_args!(
                        "`{path}` is a tensor of the module and donated, so that a second run would lack it: make it an input of the graph"
                    )));
                }
                ArgumentKind::Weight { .. } => made.weights.push(placement),
                ArgumentKind::Key => made.takes_key = true,
                other => {
                    return Err(Error::msg(format_args!(
                        "the program takes {other:?}, which this crate does not know"
                    )));
                }
            }
        }
        Ok(made)
    }

    /// The weights on the devices.
    fn placed<'v>(
        &self,
        weights: &Weights,
        values: impl Iterator<Item = &'v Value>,
    ) -> Result<Vec<Arc<DeviceTensor>>> {
        let both = self.weights.iter().zip(values);
        let placed = both.map(|(placement, value)| {
            weights.placed(&self.client, &self.devices, placement, value)
        });
        placed.collect()
    }

    fn counted(&self, given: usize) -> Result<()> {
        match given == self.inputs.len() {
            true => Ok(()),
            false => Err(Error::msg(format_args!(
                "the program takes {} inputs, and {given} are given",
                self.inputs.len()
            ))),
        }
    }

    /// The key of a run's random numbers, of this thread's stream.
    fn key(&self) -> Result<DeviceTensor> {
        let key = ops::randint(0, i64::MAX, 2, None)?;
        let placement = Arc::new(Placement::replicated(vec![2], self.devices.len()));
        DeviceTensor::placed(&self.client, &self.devices, &placement, &key)
    }
}

impl Input {
    fn fits(&self, dtype: DType, shape: &[usize]) -> Result<()> {
        let whole = self.placement.whole();
        match dtype == self.dtype && shape == whole {
            true => Ok(()),
            false => Err(Error::msg(format_args!(
                "the input `{}` is a tensor of {dtype} with the sizes {shape:?}, and the program was compiled for {} with {whole:?}",
                self.name, self.dtype
            ))),
        }
    }

    fn is_placed(&self, given: &DeviceTensor) -> Result<()> {
        match *given.placement() == *self.placement {
            true => Ok(()),
            false => Err(Error::msg(format_args!(
                "it is on {} devices in other parts than the program takes: place it with `LoadedProgram::place`",
                given.devices()
            ))),
        }
    }

    #[cold]
    fn blame(&self, error: Error) -> Error {
        Error::msg(format_args!("the input `{}`: {error}", self.name))
    }
}

/// The executable of a program, and whether it is from the cache.
fn executable(
    client: &Client,
    program: &Program,
    options: &[u8],
    devices: usize,
    cache: Option<&Cache>,
) -> Result<(Executable, bool)> {
    let file: Option<PathBuf> = match cache {
        Some(cache) => Some(cache.file(client, program.text(), options)?),
        None => None,
    };
    let kept = file.as_deref().and_then(Cache::read);
    if let Some(bytes) = kept
        && let Ok(executable) = Executable::deserialized(client, &bytes, devices)
    {
        return Ok((executable, true));
    }
    let executable = Executable::compile(client, program.text(), options, devices);
    let executable = executable.map_err(|error| match program.node_of(&error.to_string()) {
        Some(node) => Error::msg(format_args!("%{node}: {error}")),
        None => error,
    })?;
    // A plugin that cannot write its programs compiles them each time.
    if let Some(file) = file
        && let Ok(bytes) = executable.serialized()
    {
        Cache::write(&file, &bytes).map_err(|error| {
            Error::msg(format_args!(
                "{} cannot be written: {error}",
                file.display()
            ))
        })?;
    }
    Ok((executable, false))
}

/// An error if an executable gives other results than the program.
fn same_results(results: &[(DType, Arc<Placement>)], executable: &Executable) -> Result<()> {
    let found = executable.results();
    if found.len() != results.len() {
        return Err(Error::msg(format_args!(
            "the plugin's program gives {} results, and the graph gives {}",
            found.len(),
            results.len()
        )));
    }
    for (at, ((dtype, placement), (found, dims))) in results.iter().zip(found).enumerate() {
        let part = placement.part().iter();
        if dtype != found || !part.map(|size| *size as i64).eq(dims.iter().copied()) {
            return Err(Error::msg(format_args!(
                "the plugin's program gives {found} with the sizes {dims:?} as result {at}, and the graph gives {dtype} with {:?}",
                placement.part()
            )));
        }
    }
    Ok(())
}
