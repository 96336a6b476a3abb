//! A plugin without devices, as a library in C's calling convention: it gives arguments back as results, fails where a
//! test asks for it, and counts what is alive.
//!
//! A test opens a copy of the file, says with `stub_mode` what is to go wrong, and loads it as a plugin. `stub_live` is
//! the number of errors, events, clients, buffers and executables that were made and not freed.
#![allow(non_snake_case, reason = "the names of the header")]

#[path = "../../src/sys/mod.rs"]
mod sys;

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

use sys::*;

/// What is to go wrong: `fail:ENTRY`, `null:ENTRY`, or one word.
static MODE: Mutex<String> = Mutex::new(String::new());
static LIVE: AtomicI64 = AtomicI64::new(0);

fn mode() -> String {
    MODE.lock().unwrap().clone()
}

/// Says what is to go wrong from now on.
///
/// # Safety
/// It is text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn stub_mode(text: *const c_char) {
    *MODE.lock().unwrap() = unsafe { CStr::from_ptr(text) }
        .to_str()
        .unwrap()
        .to_string();
}

/// How many objects are alive.
#[unsafe(no_mangle)]
pub extern "C" fn stub_live() -> i64 {
    LIVE.load(Ordering::SeqCst)
}

/// Gives an object to the caller.
fn given<T, O>(object: T) -> *mut O {
    LIVE.fetch_add(1, Ordering::SeqCst);
    Box::into_raw(Box::new(object)).cast()
}

/// Takes an object back.
unsafe fn taken<T, O>(object: *mut O) -> T {
    LIVE.fetch_sub(1, Ordering::SeqCst);
    *unsafe { Box::from_raw(object.cast::<T>()) }
}

struct Failure {
    code: PJRT_Error_Code,
    message: String,
}

fn failure(code: PJRT_Error_Code, message: &str) -> *mut PJRT_Error {
    let message = message.to_string();
    given(Failure { code, message })
}

/// What happens later, or has happened.
#[derive(Clone)]
struct Happening(Arc<(Mutex<State>, Condvar)>);

struct State {
    is_over: bool,
    fails: bool,
    waiting: Vec<(unsafe extern "C" fn(*mut PJRT_Error, *mut c_void), usize)>,
}

impl Happening {
    /// Not over.
    fn later() -> Self {
        let state = State {
            is_over: false,
            fails: false,
            waiting: Vec::new(),
        };
        Happening(Arc::new((Mutex::new(state), Condvar::new())))
    }

    /// Over at once, or some time later on another thread; with an error if the mode says so.
    fn begin(fails: bool) -> Self {
        let state = State {
            is_over: false,
            fails,
            waiting: Vec::new(),
        };
        let made = Happening(Arc::new((Mutex::new(state), Condvar::new())));
        if mode() == "late" || fails {
            let later = made.clone();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(20));
                later.finish();
            });
        } else {
            made.finish();
        }
        made
    }

    fn finish(&self) {
        let mut state = self.0.0.lock().unwrap();
        state.is_over = true;
        let fails = state.fails;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.0.1.notify_all();
        for (callback, argument) in waiting {
            unsafe { callback(error_if(fails), argument as *mut c_void) };
        }
    }

    fn wait(&self) -> bool {
        let state = self.0.0.lock().unwrap();
        let state = self.0.1.wait_while(state, |state| !state.is_over).unwrap();
        state.fails
    }
}

fn error_if(fails: bool) -> *mut PJRT_Error {
    match fails {
        true => failure(PJRT_Error_Code_INTERNAL, "the device died"),
        false => std::ptr::null_mut(),
    }
}

struct Client;

#[derive(Clone)]
struct Array {
    type_: PJRT_Buffer_Type,
    dims: Vec<i64>,
    bytes: Vec<u8>,
    /// Where the elements lie that it was made of, if they are used until it is freed, and what happens then.
    lent: Option<(usize, Happening)>,
}

impl Array {
    fn of((type_, dims): Type, bytes: Vec<u8>) -> Self {
        Array {
            type_,
            dims,
            bytes,
            lent: None,
        }
    }
}

type Type = (PJRT_Buffer_Type, Vec<i64>);

/// The results of a program, by its text: `-> (tensor<2x3xf32>, ..)` of its function.
#[derive(Clone)]
struct Program {
    results: Vec<Type>,
    donated: Vec<usize>,
}

impl Program {
    fn of(text: &str) -> Option<Self> {
        let (_, main) = text.split_once("func.func public @main(")?;
        let (arguments, rest) = main.split_once(") -> (")?;
        let (results, _) = rest.split_once(") {\n")?;
        let donated = arguments.split(", %").enumerate();
        let donated = donated.filter(|(_, text)| text.contains("tf.aliasing_output"));
        Some(Program {
            results: results.split(", ").map(tensor).collect::<Option<_>>()?,
            donated: donated.map(|(at, _)| at).collect(),
        })
    }
}

fn tensor(text: &str) -> Option<Type> {
    let inner = text.trim().strip_prefix("tensor<")?.split('>').next()?;
    let mut parts: Vec<&str> = inner.split('x').collect();
    let type_ = match parts.pop()? {
        "f32" => PJRT_Buffer_Type_F32,
        "i64" => PJRT_Buffer_Type_S64,
        _ => return None,
    };
    Some((
        type_,
        parts
            .iter()
            .map(|size| size.parse().ok())
            .collect::<Option<_>>()?,
    ))
}

/// What `PJRT_Executable` is: facts that live as long as it.
struct About {
    types: Vec<PJRT_Buffer_Type>,
    dims: Vec<i64>,
    ranks: Vec<usize>,
}

static DEVICE: u8 = 0;

macro_rules! entries {
    ($table:ident; $($name:ident($args:ident: $type:ident) $body:block)*) => {
        $(
            unsafe extern "C" fn $name($args: *mut $type) -> *mut PJRT_Error {
                let $args = unsafe { &mut *$args };
                assert!($args.struct_size >= $type::STRUCT_SIZE, stringify!($name));
                if mode() == concat!("fail:", stringify!($name)) {
                    return failure(PJRT_Error_Code_INTERNAL, concat!(stringify!($name), " was to fail"));
                }
                #[allow(unused_unsafe, reason = "not every body needs it")]
                unsafe { $body }
                #[allow(unreachable_code, reason = "some bodies return")]
                std::ptr::null_mut()
            }
        )*

        fn fill($table: &mut PJRT_Api) {
            $( $table.$name = Some($name); )*
            $(
                if mode() == concat!("null:", stringify!($name)) {
                    $table.$name = None;
                }
            )*
        }

        /// The entries that a test may have fail.
        const ENTRIES: &str = concat!($( stringify!($name), "\n", )* "\0");
    };
}

/// The names of the entries that can fail or be null, a line each.
#[unsafe(no_mangle)]
pub extern "C" fn stub_entries() -> *const c_char {
    ENTRIES.as_ptr().cast()
}

entries! { table;
    PJRT_Plugin_Initialize(args: PJRT_Plugin_Initialize_Args) { let _ = &args; }
    PJRT_Plugin_Attributes(args: PJRT_Plugin_Attributes_Args) { args.num_attributes = 0; }
    PJRT_Event_Destroy(args: PJRT_Event_Destroy_Args) { drop(taken::<Happening, _>(args.event)); }
    PJRT_Event_Await(args: PJRT_Event_Await_Args) {
        return error_if((*args.event.cast::<Happening>()).wait());
    }
    PJRT_Event_OnReady(args: PJRT_Event_OnReady_Args) {
        let event = (*args.event.cast::<Happening>()).clone();
        let mut state = event.0.0.lock().unwrap();
        let callback = args.callback.unwrap();
        match state.is_over {
            false => state.waiting.push((callback, args.user_arg as usize)),
            true => {
                let fails = state.fails;
                drop(state);
                callback(error_if(fails), args.user_arg);
            }
        }
    }
    PJRT_Client_Create(args: PJRT_Client_Create_Args) { args.client = given(Client); }
    PJRT_Client_Destroy(args: PJRT_Client_Destroy_Args) { drop(taken::<Client, _>(args.client)); }
    PJRT_Client_PlatformName(args: PJRT_Client_PlatformName_Args) {
        (args.platform_name, args.platform_name_size) = ("stub".as_ptr().cast(), 4);
    }
    PJRT_Client_PlatformVersion(args: PJRT_Client_PlatformVersion_Args) {
        (args.platform_version, args.platform_version_size) = ("1".as_ptr().cast(), 1);
    }
    PJRT_Client_ProcessIndex(args: PJRT_Client_ProcessIndex_Args) { args.process_index = 0; }
    PJRT_Client_AddressableDevices(args: PJRT_Client_AddressableDevices_Args) {
        static DEVICES: [&u8; 1] = [&DEVICE];
        args.addressable_devices = DEVICES.as_ptr().cast();
        args.num_addressable_devices = 1;
    }
    PJRT_Device_GetDescription(args: PJRT_Device_GetDescription_Args) {
        args.device_description = (&raw const DEVICE).cast_mut().cast();
    }
    PJRT_DeviceDescription_Id(args: PJRT_DeviceDescription_Id_Args) { args.id = 0; }
    PJRT_DeviceDescription_ProcessIndex(args: PJRT_DeviceDescription_ProcessIndex_Args) { args.process_index = 0; }
    PJRT_DeviceDescription_Kind(args: PJRT_DeviceDescription_Kind_Args) {
        (args.device_kind, args.device_kind_size) = ("stub".as_ptr().cast(), 4);
    }
    PJRT_DeviceDescription_ToString(args: PJRT_DeviceDescription_ToString_Args) {
        (args.to_string, args.to_string_size) = ("StubDevice".as_ptr().cast(), 10);
    }
    PJRT_Device_MemoryStats(args: PJRT_Device_MemoryStats_Args) { args.bytes_in_use = 0; }
    PJRT_Client_BufferFromHostBuffer(args: PJRT_Client_BufferFromHostBuffer_Args) {
        if mode() == "memory" {
            return failure(PJRT_Error_Code_RESOURCE_EXHAUSTED, "no room");
        }
        let dims = std::slice::from_raw_parts(args.dims, args.num_dims).to_vec();
        let size = if args.type_ == PJRT_Buffer_Type_S64 { 8 } else { 4 };
        let count = dims.iter().product::<i64>() as usize * size;
        let bytes = std::slice::from_raw_parts(args.data.cast::<u8>(), count).to_vec();
        let mut array = Array::of((args.type_, dims), bytes);
        let stays = args.host_buffer_semantics == PJRT_HostBufferSemantics_kImmutableZeroCopy;
        let done = match mode() == "lent" && stays {
            true => {
                let until_freed = Happening::later();
                array.lent = Some((args.data as usize, until_freed.clone()));
                until_freed
            }
            false => Happening::begin(mode() == "copy dies"),
        };
        args.buffer = given(array);
        args.done_with_host_buffer = given(done);
    }
    PJRT_Buffer_Destroy(args: PJRT_Buffer_Destroy_Args) {
        let array = taken::<Array, _>(args.buffer);
        if let Some((at, done)) = array.lent {
            // A sanitizer sees whether they are still there.
            let lent = std::slice::from_raw_parts(at as *const u8, array.bytes.len());
            assert!(lent == array.bytes, "the elements changed");
            done.finish();
        }
    }
    PJRT_Buffer_ToHostBuffer(args: PJRT_Buffer_ToHostBuffer_Args) {
        let array = &*args.src.cast::<Array>();
        assert_eq!(args.dst_size, array.bytes.len());
        std::ptr::copy_nonoverlapping(array.bytes.as_ptr(), args.dst.cast(), array.bytes.len());
        args.event = given(Happening::begin(mode() == "dies"));
    }
    PJRT_Buffer_ReadyEvent(args: PJRT_Buffer_ReadyEvent_Args) {
        args.event = given(Happening::begin(mode() == "dies"));
    }
    PJRT_Buffer_UnsafePointer(args: PJRT_Buffer_UnsafePointer_Args) {
        args.buffer_pointer = (*args.buffer.cast::<Array>()).bytes.as_ptr() as usize;
    }
    PJRT_Client_Compile(args: PJRT_Client_Compile_Args) {
        let program = &*args.program;
        let text = std::slice::from_raw_parts(program.code.cast::<u8>(), program.code_size);
        let text = std::str::from_utf8(text).unwrap();
        if mode() == "refuse the second place" {
            // As MLIR says it: the place of an operation, and what is wrong.
            let place = text.lines().find_map(|line| line.strip_prefix("#loc2 = loc("));
            let place = place.and_then(|place| place.split_once("\"(\"")?.1.strip_suffix("))"));
            let message = format!("{}: error: no such operation", place.unwrap().replace("\":", ":"));
            return failure(PJRT_Error_Code_INVALID_ARGUMENT, &message);
        }
        let Some(program) = Program::of(text) else {
            return failure(PJRT_Error_Code_INVALID_ARGUMENT, "no such program");
        };
        args.executable = given(program);
    }
    PJRT_LoadedExecutable_Destroy(args: PJRT_LoadedExecutable_Destroy_Args) {
        drop(taken::<Program, _>(args.executable));
    }
    PJRT_LoadedExecutable_GetExecutable(args: PJRT_LoadedExecutable_GetExecutable_Args) {
        let program = &*args.loaded_executable.cast::<Program>();
        let mut results = program.results.clone();
        match mode().as_str() {
            "more results" => results.push((PJRT_Buffer_Type_F32, vec![])),
            "fewer results" => drop(results.pop()),
            "another shape" => results[0].1.push(7),
            "another type" => results[0].0 = PJRT_Buffer_Type_S64,
            "unknown type" => results[0].0 = PJRT_Buffer_Type_C64,
            _ => {}
        }
        args.executable = given(About {
            types: results.iter().map(|(type_, _)| *type_).collect(),
            ranks: results.iter().map(|(_, dims)| dims.len()).collect(),
            dims: results.into_iter().flat_map(|(_, dims)| dims).collect(),
        });
    }
    PJRT_Executable_Destroy(args: PJRT_Executable_Destroy_Args) { drop(taken::<About, _>(args.executable)); }
    PJRT_Executable_NumOutputs(args: PJRT_Executable_NumOutputs_Args) {
        args.num_outputs = (*args.executable.cast::<About>()).types.len();
    }
    PJRT_Executable_OutputElementTypes(args: PJRT_Executable_OutputElementTypes_Args) {
        let about = &mut *args.executable.cast::<About>();
        (args.output_types, args.num_output_types) = (about.types.as_mut_ptr(), about.types.len());
    }
    PJRT_Executable_OutputDimensions(args: PJRT_Executable_OutputDimensions_Args) {
        let about = &*args.executable.cast::<About>();
        (args.dims, args.dim_sizes, args.num_outputs) = (about.dims.as_ptr(), about.ranks.as_ptr(), about.ranks.len());
    }
    PJRT_Executable_Serialize(args: PJRT_Executable_Serialize_Args) {
        if mode() == "no serialization" {
            return failure(PJRT_Error_Code_UNIMPLEMENTED, "it is not written");
        }
        let about = &*args.executable.cast::<About>();
        let sizes = |dims: &[i64]| dims.iter().map(|size| format!("{size}x")).collect::<String>();
        let mut left = &about.dims[..];
        let results = about.types.iter().zip(&about.ranks).map(|(type_, rank)| {
            let (own, rest) = left.split_at(*rank);
            left = rest;
            let name = if *type_ == PJRT_Buffer_Type_S64 { "i64" } else { "f32" };
            format!("tensor<{}{name}>", sizes(own))
        });
        let text = results.collect::<Vec<_>>().join(", ");
        let text = Box::new(format!("func.func public @main() -> ({text}) {{\n"));
        (args.serialized_bytes, args.serialized_bytes_size) = (text.as_ptr().cast(), text.len());
        args.serialized_executable = given(text);
        unsafe extern "C" fn delete(text: *mut PJRT_SerializedExecutable) {
            drop(unsafe { taken::<Box<String>, _>(text) });
        }
        args.serialized_executable_deleter = Some(delete);
    }
    PJRT_Executable_DeserializeAndLoad(args: PJRT_Executable_DeserializeAndLoad_Args) {
        let bytes = args.serialized_executable.cast::<u8>();
        let bytes = std::slice::from_raw_parts(bytes, args.serialized_executable_size);
        let Some(program) = std::str::from_utf8(bytes).ok().and_then(Program::of) else {
            return failure(PJRT_Error_Code_INVALID_ARGUMENT, "no such program");
        };
        args.loaded_executable = given(program);
    }
    PJRT_LoadedExecutable_Execute(args: PJRT_LoadedExecutable_Execute_Args) {
        let program = &*args.executable.cast::<Program>();
        let given_arrays = std::slice::from_raw_parts(*args.argument_lists, args.num_args);
        let given_arrays: Vec<&Array> = given_arrays.iter().map(|array| &*array.cast::<Array>()).collect();
        for (at, (type_, dims)) in program.results.iter().enumerate() {
            if mode() == "run gives less" && at + 1 == program.results.len() {
                continue;
            }
            let size = if *type_ == PJRT_Buffer_Type_S64 { 8 } else { 4 };
            let same = given_arrays.iter().find(|array| array.type_ == *type_ && array.dims == *dims);
            let zeros = vec![0; dims.iter().product::<i64>() as usize * size];
            let bytes = same.map_or(zeros, |array| array.bytes.clone());
            *(*args.output_lists).add(at) = given(Array::of((*type_, dims.clone()), bytes));
        }
        let _ = &program.donated;
    }
}

unsafe extern "C" fn error_destroy(args: *mut PJRT_Error_Destroy_Args) {
    unsafe { drop(taken::<Failure, _>((*args).error)) };
}

unsafe extern "C" fn error_message(args: *mut PJRT_Error_Message_Args) {
    unsafe {
        let error = &*(*args).error.cast::<Failure>();
        ((*args).message, (*args).message_size) =
            (error.message.as_ptr().cast(), error.message.len());
    }
}

unsafe extern "C" fn error_code(args: *mut PJRT_Error_GetCode_Args) -> *mut PJRT_Error {
    unsafe { (*args).code = (*(*args).error.cast::<Failure>()).code };
    std::ptr::null_mut()
}

struct Table(PJRT_Api);

unsafe impl Send for Table {}
unsafe impl Sync for Table {}

static TABLE: OnceLock<Box<Table>> = OnceLock::new();

/// The table, as the mode says.
#[cfg(not(no_entry))]
#[unsafe(no_mangle)]
pub extern "C" fn GetPjrtApi() -> *const PJRT_Api {
    if mode() == "nothing" {
        return std::ptr::null();
    }
    let made = TABLE.get_or_init(|| {
        let mut table: PJRT_Api = unsafe { std::mem::zeroed() };
        table.struct_size = match mode().as_str() {
            "short" => std::mem::offset_of!(PJRT_Api, PJRT_Buffer_ToHostBuffer),
            "empty" => 8,
            _ => std::mem::size_of::<PJRT_Api>(),
        };
        table.pjrt_api_version = PJRT_Api_Version::sized();
        let (major, minor) = API_VERSION;
        table.pjrt_api_version.major_version = if mode() == "major" { major + 1 } else { major };
        table.pjrt_api_version.minor_version = minor;
        table.PJRT_Error_Destroy = Some(error_destroy);
        table.PJRT_Error_Message = Some(error_message);
        table.PJRT_Error_GetCode = Some(error_code);
        fill(&mut table);
        if mode() == "null:PJRT_Error_Message" {
            table.PJRT_Error_Message = None;
        }
        Box::new(Table(table))
    });
    &raw const made.0
}
