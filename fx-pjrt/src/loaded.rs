//! `LoadedProgram`: a program that is compiled for devices, with its weights on them.
//!
//! Invariant: what is given to a run has the type, the sizes and the placement of the argument that it is for.

use std::path::Path;
use std::sync::Arc;

use fx_nn::prelude::*;
use fx_stablehlo::{ArgumentKind, Program};
use smallvec::SmallVec;

use crate::buffer::Buffer;
use crate::cache::Cache;
use crate::client::{Client, Device};
use crate::device_tensor::DeviceTensor;
use crate::error::AtNode;
use crate::executable::Executable;
use crate::options::compile_options;
use crate::placement::Placement;
use crate::shardings::placements;
use crate::weights::Weights;

/// A program of [`fx_stablehlo`] that is compiled for devices, with its weights on them: for calls
/// whose tensors stay on the devices. Threads may share it, and clones share program and weights.
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
/// let mut placed = program.place([&x, &x])?;
/// let (mut cache, x) = (placed.remove(0), placed.remove(0));
/// for _ in 0..10 {
///     // The old cache's memory is the new one's.
///     cache = program.run(&[&cache, &x])?.remove(0);
/// }
/// assert_eq!(cache.to_tensor()?.amax(..)?.item()?, 11.0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
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
    /// Where the key of random numbers is, if the program takes one.
    key: Option<Arc<Placement>>,
    was_cached: bool,
    /// Why the program is not in the cache.
    cache_error: Option<String>,
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
    /// weights as they are now: what is written into them later is not seen.
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

    /// Why a program that was to be [cached](LoadedProgram::cached) is not: the disk is full, or the plugin cannot write it.
    pub fn cache_error(&self) -> Option<&str> {
        self.compiled.cache_error.as_deref()
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
                .and_then(|()| compiled.is_placed(input, given))
                .map_err(|error| input.blame(error))?;
        }
        let key = match &compiled.key {
            Some(placement) => Some(compiled.drawn(placement)?),
            None => None,
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
        let shapes = Shapes {
            arguments,
            results,
            devices: count,
        };
        let options = compile_options(devices);
        let file = cache.map(|cache| cache.file(client, program.text(), &options));
        // A file that cannot be used is compiled again.
        let kept = file.as_deref().and_then(Cache::read).and_then(|bytes| {
            let executable = Executable::deserialized(client, &bytes, devices).ok()?;
            let placed = shapes.placed(&executable).ok()?;
            Some((executable, placed))
        });
        let was_cached = kept.is_some();
        let (executable, placed) = match kept {
            Some(kept) => kept,
            None => {
                let made = compiled(client, program, &options, devices)?;
                let placed = shapes.placed(&made)?;
                (made, placed)
            }
        };
        let cache_error = match &file {
            Some(file) if !was_cached => written(&executable, file).err(),
            _ => None,
        };
        let (of_arguments, results) = placed;
        let mut made = Compiled {
            client: client.clone(),
            devices: devices.to_vec(),
            executable,
            inputs: Vec::new(),
            weights: Vec::new(),
            results,
            key: None,
            was_cached,
            cache_error,
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
                ArgumentKind::Key => made.key = Some(placement),
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
            false => {
                let names: Vec<&str> = self.inputs.iter().map(|input| &*input.name).collect();
                Err(Error::msg(format_args!(
                    "the program takes {} inputs ({}), and {given} are given",
                    names.len(),
                    names.join(", ")
                )))
            }
        }
    }

    /// The key of a run's random numbers, of this thread's stream.
    fn drawn(&self, placement: &Arc<Placement>) -> Result<DeviceTensor> {
        let key = ops::randint(0, i64::MAX, 2, None)?;
        DeviceTensor::placed(&self.client, &self.devices, placement, &key)
    }

    fn is_placed(&self, input: &Input, given: &DeviceTensor) -> Result<()> {
        let is_here = |(at, device)| given.buffer(at).is_on(&self.client, device);
        let same_parts = *given.placement() == *input.placement;
        match same_parts && self.devices.iter().enumerate().all(is_here) {
            true => Ok(()),
            false => Err(Error::msg(
                "it is on other devices, or in other parts, than the program takes: place it with `LoadedProgram::place`",
            )),
        }
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

    #[cold]
    fn blame(&self, error: Error) -> Error {
        Error::msg(format_args!("the input `{}`: {error}", self.name))
    }
}

/// The executable of a program; an error is blamed on the node that it is about.
fn compiled(
    client: &Client,
    program: &Program,
    options: &[u8],
    devices: &[Device],
) -> Result<Executable> {
    let made = Executable::compile(client, program.text(), options, devices);
    made.map_err(|error| match program.node_of(&error.to_string()) {
        Some(node) => Error::other(AtNode {
            node: node.to_string(),
            error,
        }),
        None => error,
    })
}

/// Writes an executable into its file of the cache.
fn written(executable: &Executable, file: &Path) -> std::result::Result<(), String> {
    let bytes = executable.serialized().map_err(|error| error.to_string())?;
    Cache::write(file, &bytes).map_err(|error| format!("{}: {error}", file.display()))
}

/// What arguments and results are as a whole.
struct Shapes {
    arguments: Vec<Vec<usize>>,
    results: Vec<(DType, Vec<usize>)>,
    devices: usize,
}

/// Where arguments are, and what the results are and where.
type Placed = (Vec<Placement>, Vec<(DType, Arc<Placement>)>);

impl Shapes {
    /// The parts that an executable takes and gives.
    fn placed(&self, executable: &Executable) -> Result<Placed> {
        let shapes: Vec<Vec<usize>> = self
            .results
            .iter()
            .map(|(_, shape)| shape.clone())
            .collect();
        let (of_arguments, of_results) = match self.devices {
            1 => {
                let alone = |shape: &Vec<usize>| Placement::replicated(shape.clone(), 1);
                let of_arguments = self.arguments.iter().map(alone);
                (of_arguments.collect(), shapes.iter().map(alone).collect())
            }
            devices => placements(&executable.optimized()?, &self.arguments, &shapes, devices)?,
        };
        let results = self.results.iter().zip(of_results);
        let results = results.map(|((dtype, _), placement)| (*dtype, Arc::new(placement)));
        let results: Vec<_> = results.collect();
        same_results(&results, executable)?;
        Ok((of_arguments, results))
    }
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
