//! A loop over one program by the C interface alone, without fx: what a call costs at least.

#[path = "../../src/sys/mod.rs"]
mod sys;

use std::ffi::c_char;
use std::path::Path;

use fx_nn::{Error, Result};
use sys::*;

/// A program with its arguments on the first device of a client of its own.
pub struct Bare {
    api: &'static PJRT_Api,
    client: *mut PJRT_Client,
    executable: *mut PJRT_LoadedExecutable,
    arguments: Vec<*mut PJRT_Buffer>,
    results: Vec<*mut PJRT_Buffer>,
}

/// Calls an entry, and says what failed.
macro_rules! call {
    ($api:expr, $name:ident, $args:expr) => {{
        let function = $api.$name.ok_or_else(|| Error::msg(stringify!($name)))?;
        // SAFETY: the arguments are what the entry asks for; the callers keep them alive.
        match unsafe { function(&raw mut $args) }.is_null() {
            true => {}
            false => return Err(Error::msg(concat!(stringify!($name), " failed"))),
        }
    }};
}

impl Bare {
    /// The program of a text, for one device.
    pub fn new(plugin: &Path, text: &str, results: usize) -> Result<Self> {
        // SAFETY: the caller trusts the plugin.
        let api: &'static PJRT_Api = unsafe {
            let library = libloading::Library::new(plugin).map_err(Error::other)?;
            let entry = library.get::<unsafe extern "C" fn() -> *const PJRT_Api>(b"GetPjrtApi");
            let api = entry.map_err(Error::other)?();
            std::mem::forget(library);
            &*api
        };
        let mut made = PJRT_Client_Create_Args::sized();
        call!(api, PJRT_Client_Create, made);
        // The options of a program for one replica and one partition.
        let options = [0x1a, 0x04, 0x20, 0x01, 0x28, 0x01u8];
        let mut program = PJRT_Program::sized();
        (program.code, program.code_size) = (text.as_ptr().cast_mut().cast::<c_char>(), text.len());
        (program.format, program.format_size) = ("mlir".as_ptr().cast(), 4);
        let mut args = PJRT_Client_Compile_Args::sized();
        args.client = made.client;
        args.program = &raw const program;
        (args.compile_options, args.compile_options_size) =
            (options.as_ptr().cast(), options.len());
        call!(api, PJRT_Client_Compile, args);
        Ok(Bare {
            api,
            client: made.client,
            executable: args.executable,
            arguments: Vec::new(),
            results: vec![std::ptr::null_mut(); results],
        })
    }

    /// Places another argument.
    pub fn argument(&mut self, type_: u32, dims: &[i64], bytes: &[u8]) -> Result<()> {
        let mut devices = PJRT_Client_AddressableDevices_Args::sized();
        devices.client = self.client;
        call!(self.api, PJRT_Client_AddressableDevices, devices);
        let mut args = PJRT_Client_BufferFromHostBuffer_Args::sized();
        args.client = self.client;
        args.data = bytes.as_ptr().cast();
        args.type_ = type_;
        (args.dims, args.num_dims) = (dims.as_ptr(), dims.len());
        args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
        // SAFETY: there is a device.
        args.device = unsafe { *devices.addressable_devices };
        call!(self.api, PJRT_Client_BufferFromHostBuffer, args);
        self.arguments.push(args.buffer);
        Ok(())
    }

    /// A call; with `wait`, until its first result is there. The results are freed.
    pub fn run(&mut self, wait: bool) -> Result<()> {
        let mut options = PJRT_ExecuteOptions::sized();
        let (given, into) = (self.arguments.as_ptr(), self.results.as_mut_ptr());
        let mut args = PJRT_LoadedExecutable_Execute_Args::sized();
        args.executable = self.executable;
        args.options = &raw mut options;
        args.argument_lists = &raw const given;
        (args.num_devices, args.num_args) = (1, self.arguments.len());
        args.output_lists = &raw const into;
        call!(self.api, PJRT_LoadedExecutable_Execute, args);
        if let (true, Some(first)) = (wait, self.results.first()) {
            let mut ready = PJRT_Buffer_ReadyEvent_Args::sized();
            ready.buffer = *first;
            call!(self.api, PJRT_Buffer_ReadyEvent, ready);
            let mut waited = PJRT_Event_Await_Args::sized();
            waited.event = ready.event;
            call!(self.api, PJRT_Event_Await, waited);
            let mut over = PJRT_Event_Destroy_Args::sized();
            over.event = ready.event;
            call!(self.api, PJRT_Event_Destroy, over);
        }
        for buffer in &self.results {
            let mut args = PJRT_Buffer_Destroy_Args::sized();
            args.buffer = *buffer;
            call!(self.api, PJRT_Buffer_Destroy, args);
        }
        Ok(())
    }
}
