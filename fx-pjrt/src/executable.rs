//! `Executable`: a program that a plugin compiled, and its runs.
//!
//! Invariant: a plugin's executable is freed once; a run gives as many results as the program says.

use fx_nn::prelude::*;
use smallvec::SmallVec;

use crate::buffer::Buffer;
use crate::client::{Client, Device};
use crate::element::dtype_of;
use crate::plugin::{call, slice};
use crate::sys::{self, Structure};

/// Pointers to the buffers of a device, few enough for most programs to need no memory for them.
type Pointers = SmallVec<[*mut sys::PJRT_Buffer; 8]>;

/// The element type and the sizes of a device's part of a result.
pub(crate) type ResultType = (DType, Vec<i64>);

/// A program on its devices.
#[derive(Debug)]
pub(crate) struct Executable {
    client: Client,
    loaded: *mut sys::PJRT_LoadedExecutable,
    devices: Vec<Device>,
    results: Vec<ResultType>,
}

// SAFETY: a plugin's executables may be used by any thread.
unsafe impl Send for Executable {}
// SAFETY: as above.
unsafe impl Sync for Executable {}

/// What a plugin says of a program, freed at the end.
struct About<'c> {
    client: &'c Client,
    executable: *mut sys::PJRT_Executable,
}

impl Drop for About<'_> {
    fn drop(&mut self) {
        let mut args = sys::PJRT_Executable_Destroy_Args::sized();
        args.executable = self.executable;
        // SAFETY: it is ours, and is not used after this.
        let _ = unsafe { call!(self.client.plugin(), PJRT_Executable_Destroy, args) };
    }
}

impl Executable {
    /// Compiles the text of a program.
    ///
    /// # Errors
    /// Returns the plugin's error: a text that it cannot read, or a program that it refuses.
    pub fn compile(
        client: &Client,
        text: &str,
        options: &[u8],
        devices: &[Device],
    ) -> Result<Self> {
        let format = "mlir";
        let mut program = sys::PJRT_Program::sized();
        (program.code, program.code_size) = (text.as_ptr().cast_mut().cast(), text.len());
        (program.format, program.format_size) = (format.as_ptr().cast(), format.len());
        let mut args = sys::PJRT_Client_Compile_Args::sized();
        args.client = client.raw();
        args.program = &raw const program;
        (args.compile_options, args.compile_options_size) =
            (options.as_ptr().cast(), options.len());
        // SAFETY: the texts live until the call is over, and a plugin does not write them.
        unsafe { call!(client.plugin(), PJRT_Client_Compile, args) }?;
        Executable::of(client, args.executable, devices)
    }

    /// An executable that was [serialized](Executable::serialized).
    ///
    /// # Errors
    /// Returns the plugin's error: bytes of another version, another device, or none at all.
    pub fn deserialized(client: &Client, bytes: &[u8], devices: &[Device]) -> Result<Self> {
        let mut args = sys::PJRT_Executable_DeserializeAndLoad_Args::sized();
        args.client = client.raw();
        args.serialized_executable = bytes.as_ptr().cast();
        args.serialized_executable_size = bytes.len();
        // SAFETY: the bytes live until the call is over.
        unsafe { call!(client.plugin(), PJRT_Executable_DeserializeAndLoad, args) }?;
        Executable::of(client, args.loaded_executable, devices)
    }

    fn of(
        client: &Client,
        loaded: *mut sys::PJRT_LoadedExecutable,
        devices: &[Device],
    ) -> Result<Self> {
        let mut made = Executable {
            client: client.clone(),
            loaded,
            devices: devices.to_vec(),
            results: Vec::new(),
        };
        made.results = made.describe()?;
        Ok(made)
    }

    fn about(&self) -> Result<About<'_>> {
        let mut args = sys::PJRT_LoadedExecutable_GetExecutable_Args::sized();
        args.loaded_executable = self.loaded;
        // SAFETY: the executable is alive.
        unsafe {
            call!(
                self.client.plugin(),
                PJRT_LoadedExecutable_GetExecutable,
                args
            )
        }?;
        Ok(About {
            client: &self.client,
            executable: args.executable,
        })
    }

    /// The types of the results of one device.
    fn describe(&self) -> Result<Vec<ResultType>> {
        let (plugin, about) = (self.client.plugin(), self.about()?);
        let mut count = sys::PJRT_Executable_NumOutputs_Args::sized();
        count.executable = about.executable;
        // SAFETY: the executable is alive.
        unsafe { call!(plugin, PJRT_Executable_NumOutputs, count) }?;
        let mut types = sys::PJRT_Executable_OutputElementTypes_Args::sized();
        types.executable = about.executable;
        // SAFETY: as above; what is given lives as long as the executable.
        let types = unsafe {
            call!(plugin, PJRT_Executable_OutputElementTypes, types)?;
            slice(types.output_types, types.num_output_types)
        };
        let mut dims = sys::PJRT_Executable_OutputDimensions_Args::sized();
        dims.executable = about.executable;
        // SAFETY: as above.
        unsafe { call!(plugin, PJRT_Executable_OutputDimensions, dims) }?;
        // SAFETY: there are so many numbers of dims, and as many sizes as they sum up to.
        let (ranks, sizes) = unsafe {
            let ranks: &[usize] = slice(dims.dim_sizes, dims.num_outputs);
            (ranks, slice(dims.dims, ranks.iter().sum()))
        };
        if types.len() != count.num_outputs || ranks.len() != count.num_outputs {
            return Err(Error::msg(format_args!(
                "the plugin says that the program has {} results, {} of known types and {} of known sizes",
                count.num_outputs,
                types.len(),
                ranks.len()
            )));
        }
        let mut left = sizes;
        let all = types.iter().zip(ranks).map(|(of, rank)| {
            let (own, rest) = left.split_at(*rank);
            left = rest;
            Ok((dtype_of(*of)?, own.to_vec()))
        });
        all.collect()
    }

    /// The types of the results of one device, in order.
    pub fn results(&self) -> &[ResultType] {
        &self.results
    }

    /// The executable as bytes, for the same plugin and the same devices.
    ///
    /// # Errors
    /// Returns an error if the plugin cannot.
    pub fn serialized(&self) -> Result<Vec<u8>> {
        let about = self.about()?;
        let mut args = sys::PJRT_Executable_Serialize_Args::sized();
        args.executable = about.executable;
        // SAFETY: the executable is alive; the bytes live until they are deleted.
        unsafe {
            call!(self.client.plugin(), PJRT_Executable_Serialize, args)?;
            let bytes = slice(
                args.serialized_bytes.cast::<u8>(),
                args.serialized_bytes_size,
            );
            let bytes = bytes.to_vec();
            if let Some(delete) = args.serialized_executable_deleter {
                delete(args.serialized_executable);
            }
            Ok(bytes)
        }
    }

    /// The program as the plugin compiled it: bytes of a message of XLA, and their format.
    ///
    /// # Errors
    /// Returns an error if the plugin does not say it.
    pub fn optimized(&self) -> Result<(Vec<u8>, String)> {
        let about = self.about()?;
        let mut program = sys::PJRT_Program::sized();
        let mut args = sys::PJRT_Executable_OptimizedProgram_Args::sized();
        args.executable = about.executable;
        args.program = &raw mut program;
        // SAFETY: the executable is alive. The first call says how many bytes there are.
        unsafe { call!(self.client.plugin(), PJRT_Executable_OptimizedProgram, args) }?;
        let mut bytes = vec![0u8; program.code_size];
        program.code = bytes.as_mut_ptr().cast();
        // SAFETY: as above; the memory has as many bytes.
        let format = unsafe {
            call!(self.client.plugin(), PJRT_Executable_OptimizedProgram, args)?;
            crate::plugin::text(program.format, program.format_size)
        };
        Ok((bytes, format))
    }

    /// Runs it: `arguments` has the buffers of each device, and so do the results. It returns before
    /// the devices are done.
    ///
    /// # Errors
    /// Returns the plugin's error.
    pub fn run<'b>(
        &self,
        arguments: impl IntoIterator<Item = impl IntoIterator<Item = &'b Buffer>>,
    ) -> Result<Vec<Vec<Buffer>>> {
        let given = arguments.into_iter();
        let given = given.map(|of| of.into_iter().map(Buffer::raw).collect());
        let given: SmallVec<[Pointers; 1]> = given.collect();
        let count = given.first().map_or(0, SmallVec::len);
        if given.len() != self.devices.len() || given.iter().any(|of| of.len() != count) {
            return Err(Error::msg(format_args!(
                "the program runs on {} devices, and arguments are given for {}",
                self.devices.len(),
                given.len()
            )));
        }
        let given: SmallVec<[_; 1]> = given.iter().map(|of| of.as_ptr()).collect();
        let empty = Pointers::from_elem(std::ptr::null_mut(), self.results.len());
        let mut made: SmallVec<[Pointers; 1]> = smallvec::smallvec![empty; self.devices.len()];
        let into: SmallVec<[_; 1]> = made.iter_mut().map(|of| of.as_mut_ptr()).collect();
        let mut options = sys::PJRT_ExecuteOptions::sized();
        let mut args = sys::PJRT_LoadedExecutable_Execute_Args::sized();
        args.executable = self.loaded;
        args.options = &raw mut options;
        args.argument_lists = given.as_ptr();
        (args.num_devices, args.num_args) = (self.devices.len(), count);
        args.output_lists = into.as_ptr();
        // SAFETY: every list has as many places as it is said to have, and the buffers are alive.
        let called = unsafe { call!(self.client.plugin(), PJRT_LoadedExecutable_Execute, args) };
        // What was made is freed, whatever failed.
        let made = made.into_iter().zip(&self.devices).map(|(of, device)| {
            let there = of.into_iter().filter(|buffer| !buffer.is_null());
            let owned = there.map(|buffer| Buffer::of(self.client.clone(), device, buffer));
            owned.collect::<Vec<_>>()
        });
        let made: Vec<Vec<Buffer>> = made.collect();
        called?;
        match made.iter().all(|of| of.len() == self.results.len()) {
            true => Ok(made),
            false => Err(Error::msg(
                "the run gave fewer results than the program has, which is a fault of the plugin: try another version of it",
            )),
        }
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        let mut args = sys::PJRT_LoadedExecutable_Destroy_Args::sized();
        args.executable = self.loaded;
        // SAFETY: the executable is ours, and is not used after this. Runs under way hold what they need.
        let _ = unsafe { call!(self.client.plugin(), PJRT_LoadedExecutable_Destroy, args) };
    }
}
