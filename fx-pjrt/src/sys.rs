//! XLA's PJRT C interface, version 0.90: the structures and the table of entries that this crate uses.
//!
//! Invariant: written by `bindings.py` from the public header; not edited by hand. Structures only grow at their ends.
#![allow(
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    missing_docs
)]
#![allow(dead_code, reason = "all values of what is used are here")]

use std::ffi::{c_char, c_int, c_void};
use std::mem::{offset_of, size_of};

/// The version of the interface that these structures are of.
pub const API_VERSION: (c_int, c_int) = (0, 90);

/// A structure that begins with its size.
pub trait Structure: Copy {
    /// The size that a plugin is told: up to the end of the last field.
    const STRUCT_SIZE: usize;

    /// The structure with its size, and zero in every other field.
    fn sized() -> Self;
}

macro_rules! structures {
    ($($name:ident: $last:ident, $type:ty;)*) => {$(
        impl Structure for $name {
            const STRUCT_SIZE: usize = offset_of!($name, $last) + size_of::<$type>();

            fn sized() -> Self {
                // SAFETY: zero is a value of every field: of numbers, of pointers, and of functions that may be absent.
                let mut made: Self = unsafe { std::mem::zeroed() };
                made.struct_size = Self::STRUCT_SIZE;
                made
            }
        }
    )*};
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Api_Version {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub major_version: c_int,
    pub minor_version: c_int,
}

/// Known to the plugin only.
#[repr(C)]
pub struct PJRT_Buffer {
    private: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_Destroy_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: *mut PJRT_Buffer,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union PJRT_Buffer_MemoryLayout_value {
    pub tiled: PJRT_Buffer_MemoryLayout_Tiled,
    pub strides: PJRT_Buffer_MemoryLayout_Strides,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_MemoryLayout {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub value: PJRT_Buffer_MemoryLayout_value,
    pub type_: PJRT_Buffer_MemoryLayout_Type,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_MemoryLayout_Strides {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub byte_strides: *const i64,
    pub num_byte_strides: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_MemoryLayout_Tiled {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub minor_to_major: *const i64,
    pub minor_to_major_size: usize,
    pub tile_dims: *const i64,
    pub tile_dim_sizes: *const usize,
    pub num_tiles: usize,
}

/// Values of `PJRT_Buffer_MemoryLayout_Type`.
pub type PJRT_Buffer_MemoryLayout_Type = u32;
pub const PJRT_Buffer_MemoryLayout_Type_Tiled: PJRT_Buffer_MemoryLayout_Type = 0;
pub const PJRT_Buffer_MemoryLayout_Type_Strides: PJRT_Buffer_MemoryLayout_Type = 1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_ReadyEvent_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: *mut PJRT_Buffer,
    pub event: *mut PJRT_Event,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_ToHostBuffer_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub src: *mut PJRT_Buffer,
    pub host_layout: *mut PJRT_Buffer_MemoryLayout,
    pub dst: *mut c_void,
    pub dst_size: usize,
    pub event: *mut PJRT_Event,
}

/// Values of `PJRT_Buffer_Type`.
pub type PJRT_Buffer_Type = u32;
pub const PJRT_Buffer_Type_INVALID: PJRT_Buffer_Type = 0;
pub const PJRT_Buffer_Type_PRED: PJRT_Buffer_Type = 1;
pub const PJRT_Buffer_Type_S8: PJRT_Buffer_Type = 2;
pub const PJRT_Buffer_Type_S16: PJRT_Buffer_Type = 3;
pub const PJRT_Buffer_Type_S32: PJRT_Buffer_Type = 4;
pub const PJRT_Buffer_Type_S64: PJRT_Buffer_Type = 5;
pub const PJRT_Buffer_Type_U8: PJRT_Buffer_Type = 6;
pub const PJRT_Buffer_Type_U16: PJRT_Buffer_Type = 7;
pub const PJRT_Buffer_Type_U32: PJRT_Buffer_Type = 8;
pub const PJRT_Buffer_Type_U64: PJRT_Buffer_Type = 9;
pub const PJRT_Buffer_Type_F16: PJRT_Buffer_Type = 10;
pub const PJRT_Buffer_Type_F32: PJRT_Buffer_Type = 11;
pub const PJRT_Buffer_Type_F64: PJRT_Buffer_Type = 12;
pub const PJRT_Buffer_Type_BF16: PJRT_Buffer_Type = 13;
pub const PJRT_Buffer_Type_C64: PJRT_Buffer_Type = 14;
pub const PJRT_Buffer_Type_C128: PJRT_Buffer_Type = 15;
pub const PJRT_Buffer_Type_F8E5M2: PJRT_Buffer_Type = 16;
pub const PJRT_Buffer_Type_F8E4M3FN: PJRT_Buffer_Type = 17;
pub const PJRT_Buffer_Type_F8E4M3B11FNUZ: PJRT_Buffer_Type = 18;
pub const PJRT_Buffer_Type_F8E5M2FNUZ: PJRT_Buffer_Type = 19;
pub const PJRT_Buffer_Type_F8E4M3FNUZ: PJRT_Buffer_Type = 20;
pub const PJRT_Buffer_Type_S4: PJRT_Buffer_Type = 21;
pub const PJRT_Buffer_Type_U4: PJRT_Buffer_Type = 22;
pub const PJRT_Buffer_Type_TOKEN: PJRT_Buffer_Type = 23;
pub const PJRT_Buffer_Type_S2: PJRT_Buffer_Type = 24;
pub const PJRT_Buffer_Type_U2: PJRT_Buffer_Type = 25;
pub const PJRT_Buffer_Type_F8E4M3: PJRT_Buffer_Type = 26;
pub const PJRT_Buffer_Type_F8E3M4: PJRT_Buffer_Type = 27;
pub const PJRT_Buffer_Type_F8E8M0FNU: PJRT_Buffer_Type = 28;
pub const PJRT_Buffer_Type_F4E2M1FN: PJRT_Buffer_Type = 29;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Buffer_UnsafePointer_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub buffer: *mut PJRT_Buffer,
    pub buffer_pointer: usize,
}

/// A function that the plugin calls.
pub type PJRT_CallbackError =
    Option<unsafe extern "C" fn(PJRT_Error_Code, *const c_char, usize) -> *mut PJRT_Error>;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Chunk {
    pub data: *mut c_void,
    pub size: usize,
    pub deleter: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
    pub deleter_arg: *mut c_void,
}

/// Known to the plugin only.
#[repr(C)]
pub struct PJRT_Client {
    private: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_AddressableDevices_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: *mut PJRT_Client,
    pub addressable_devices: *const *mut PJRT_Device,
    pub num_addressable_devices: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_BufferFromHostBuffer_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: *mut PJRT_Client,
    pub data: *const c_void,
    pub type_: PJRT_Buffer_Type,
    pub dims: *const i64,
    pub num_dims: usize,
    pub byte_strides: *const i64,
    pub num_byte_strides: usize,
    pub host_buffer_semantics: PJRT_HostBufferSemantics,
    pub device: *mut PJRT_Device,
    pub memory: *mut PJRT_Memory,
    pub device_layout: *mut PJRT_Buffer_MemoryLayout,
    pub done_with_host_buffer: *mut PJRT_Event,
    pub buffer: *mut PJRT_Buffer,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_Compile_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: *mut PJRT_Client,
    pub program: *const PJRT_Program,
    pub compile_options: *const c_char,
    pub compile_options_size: usize,
    pub executable: *mut PJRT_LoadedExecutable,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_Create_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub create_options: *const PJRT_NamedValue,
    pub num_options: usize,
    pub kv_get_callback: PJRT_KeyValueGetCallback,
    pub kv_get_user_arg: *mut c_void,
    pub kv_put_callback: PJRT_KeyValuePutCallback,
    pub kv_put_user_arg: *mut c_void,
    pub client: *mut PJRT_Client,
    pub kv_try_get_callback: PJRT_KeyValueTryGetCallback,
    pub kv_try_get_user_arg: *mut c_void,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_Destroy_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: *mut PJRT_Client,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_PlatformName_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: *mut PJRT_Client,
    pub platform_name: *const c_char,
    pub platform_name_size: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_PlatformVersion_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: *mut PJRT_Client,
    pub platform_version: *const c_char,
    pub platform_version_size: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Client_ProcessIndex_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: *mut PJRT_Client,
    pub process_index: c_int,
}

/// Known to the plugin only.
#[repr(C)]
pub struct PJRT_CopyToDeviceStream {
    private: [u8; 0],
}

/// Known to the plugin only.
#[repr(C)]
pub struct PJRT_Device {
    private: [u8; 0],
}

/// Known to the plugin only.
#[repr(C)]
pub struct PJRT_DeviceDescription {
    private: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_DeviceDescription_Id_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device_description: *mut PJRT_DeviceDescription,
    pub id: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_DeviceDescription_Kind_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device_description: *mut PJRT_DeviceDescription,
    pub device_kind: *const c_char,
    pub device_kind_size: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_DeviceDescription_ProcessIndex_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device_description: *mut PJRT_DeviceDescription,
    pub process_index: c_int,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_DeviceDescription_ToString_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device_description: *mut PJRT_DeviceDescription,
    pub to_string: *const c_char,
    pub to_string_size: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Device_GetDescription_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device: *mut PJRT_Device,
    pub device_description: *mut PJRT_DeviceDescription,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Device_MemoryStats_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub device: *mut PJRT_Device,
    pub bytes_in_use: i64,
    pub peak_bytes_in_use: i64,
    pub peak_bytes_in_use_is_set: bool,
    pub num_allocs: i64,
    pub num_allocs_is_set: bool,
    pub largest_alloc_size: i64,
    pub largest_alloc_size_is_set: bool,
    pub bytes_limit: i64,
    pub bytes_limit_is_set: bool,
    pub bytes_reserved: i64,
    pub bytes_reserved_is_set: bool,
    pub peak_bytes_reserved: i64,
    pub peak_bytes_reserved_is_set: bool,
    pub bytes_reservable_limit: i64,
    pub bytes_reservable_limit_is_set: bool,
    pub largest_free_block_bytes: i64,
    pub largest_free_block_bytes_is_set: bool,
    pub pool_bytes: i64,
    pub pool_bytes_is_set: bool,
    pub peak_pool_bytes: i64,
    pub peak_pool_bytes_is_set: bool,
}

/// Known to the plugin only.
#[repr(C)]
pub struct PJRT_Error {
    private: [u8; 0],
}

/// Values of `PJRT_Error_Code`.
pub type PJRT_Error_Code = u32;
pub const PJRT_Error_Code_OK: PJRT_Error_Code = 0;
pub const PJRT_Error_Code_CANCELLED: PJRT_Error_Code = 1;
pub const PJRT_Error_Code_UNKNOWN: PJRT_Error_Code = 2;
pub const PJRT_Error_Code_INVALID_ARGUMENT: PJRT_Error_Code = 3;
pub const PJRT_Error_Code_DEADLINE_EXCEEDED: PJRT_Error_Code = 4;
pub const PJRT_Error_Code_NOT_FOUND: PJRT_Error_Code = 5;
pub const PJRT_Error_Code_ALREADY_EXISTS: PJRT_Error_Code = 6;
pub const PJRT_Error_Code_PERMISSION_DENIED: PJRT_Error_Code = 7;
pub const PJRT_Error_Code_RESOURCE_EXHAUSTED: PJRT_Error_Code = 8;
pub const PJRT_Error_Code_FAILED_PRECONDITION: PJRT_Error_Code = 9;
pub const PJRT_Error_Code_ABORTED: PJRT_Error_Code = 10;
pub const PJRT_Error_Code_OUT_OF_RANGE: PJRT_Error_Code = 11;
pub const PJRT_Error_Code_UNIMPLEMENTED: PJRT_Error_Code = 12;
pub const PJRT_Error_Code_INTERNAL: PJRT_Error_Code = 13;
pub const PJRT_Error_Code_UNAVAILABLE: PJRT_Error_Code = 14;
pub const PJRT_Error_Code_DATA_LOSS: PJRT_Error_Code = 15;
pub const PJRT_Error_Code_UNAUTHENTICATED: PJRT_Error_Code = 16;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Error_Destroy_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub error: *mut PJRT_Error,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Error_GetCode_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub error: *const PJRT_Error,
    pub code: PJRT_Error_Code,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Error_Message_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub error: *const PJRT_Error,
    pub message: *const c_char,
    pub message_size: usize,
}

/// Known to the plugin only.
#[repr(C)]
pub struct PJRT_Event {
    private: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Event_Await_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub event: *mut PJRT_Event,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Event_Destroy_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub event: *mut PJRT_Event,
}

/// A function that the plugin calls.
pub type PJRT_Event_OnReadyCallback = Option<unsafe extern "C" fn(*mut PJRT_Error, *mut c_void)>;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Event_OnReady_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub event: *mut PJRT_Event,
    pub callback: PJRT_Event_OnReadyCallback,
    pub user_arg: *mut c_void,
}

/// Known to the plugin only.
#[repr(C)]
pub struct PJRT_Executable {
    private: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_DeserializeAndLoad_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub client: *mut PJRT_Client,
    pub serialized_executable: *const c_char,
    pub serialized_executable_size: usize,
    pub loaded_executable: *mut PJRT_LoadedExecutable,
    pub overridden_serialized_compile_options: *const c_char,
    pub overridden_serialized_compile_options_size: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_Destroy_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: *mut PJRT_Executable,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_NumOutputs_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: *mut PJRT_Executable,
    pub num_outputs: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_OptimizedProgram_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: *mut PJRT_Executable,
    pub program: *mut PJRT_Program,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_OutputDimensions_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: *mut PJRT_Executable,
    pub num_outputs: usize,
    pub dims: *const i64,
    pub dim_sizes: *const usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_OutputElementTypes_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: *mut PJRT_Executable,
    pub output_types: *mut PJRT_Buffer_Type,
    pub num_output_types: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Executable_Serialize_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: *const PJRT_Executable,
    pub serialized_bytes: *const c_char,
    pub serialized_bytes_size: usize,
    pub serialized_executable: *mut PJRT_SerializedExecutable,
    pub serialized_executable_deleter: Option<unsafe extern "C" fn(*mut PJRT_SerializedExecutable)>,
}

/// Known to the plugin only.
#[repr(C)]
pub struct PJRT_ExecuteContext {
    private: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_ExecuteOptions {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub send_callbacks: *mut *mut PJRT_SendCallbackInfo,
    pub recv_callbacks: *mut *mut PJRT_RecvCallbackInfo,
    pub num_send_ops: usize,
    pub num_recv_ops: usize,
    pub launch_id: c_int,
    pub non_donatable_input_indices: *const i64,
    pub num_non_donatable_input_indices: usize,
    pub context: *mut PJRT_ExecuteContext,
    pub call_location: *const c_char,
    pub num_tasks: usize,
    pub task_ids: *mut c_int,
    pub incarnation_ids: *mut i64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Extension_Base {
    pub struct_size: usize,
    pub type_: PJRT_Extension_Type,
    pub next: *mut PJRT_Extension_Base,
}

/// Values of `PJRT_Extension_Type`.
pub type PJRT_Extension_Type = u32;
pub const PJRT_Extension_Type_Gpu_Custom_Call: PJRT_Extension_Type = 0;
pub const PJRT_Extension_Type_Profiler: PJRT_Extension_Type = 1;
pub const PJRT_Extension_Type_Custom_Partitioner: PJRT_Extension_Type = 2;
pub const PJRT_Extension_Type_Stream: PJRT_Extension_Type = 3;
pub const PJRT_Extension_Type_Layouts: PJRT_Extension_Type = 4;
pub const PJRT_Extension_Type_FFI: PJRT_Extension_Type = 5;
pub const PJRT_Extension_Type_MemoryDescriptions: PJRT_Extension_Type = 6;
pub const PJRT_Extension_Type_Triton: PJRT_Extension_Type = 7;
pub const PJRT_Extension_Type_RawBuffer: PJRT_Extension_Type = 8;
pub const PJRT_Extension_Type_PhaseCompile: PJRT_Extension_Type = 9;
pub const PJRT_Extension_Type_Example: PJRT_Extension_Type = 10;
pub const PJRT_Extension_Type_Unknown: PJRT_Extension_Type = 11;
pub const PJRT_Extension_Type_CrossHostTransfers: PJRT_Extension_Type = 12;
pub const PJRT_Extension_Type_ExecutableMetadata: PJRT_Extension_Type = 13;
pub const PJRT_Extension_Type_Callback: PJRT_Extension_Type = 14;
pub const PJRT_Extension_Type_HostAllocator: PJRT_Extension_Type = 15;
pub const PJRT_Extension_Type_TpuTopology: PJRT_Extension_Type = 16;
pub const PJRT_Extension_Type_TpuExecutable: PJRT_Extension_Type = 17;
pub const PJRT_Extension_Type_Megascale: PJRT_Extension_Type = 18;

/// Values of `PJRT_HostBufferSemantics`.
pub type PJRT_HostBufferSemantics = u32;
pub const PJRT_HostBufferSemantics_kImmutableOnlyDuringCall: PJRT_HostBufferSemantics = 0;
pub const PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes: PJRT_HostBufferSemantics = 1;
pub const PJRT_HostBufferSemantics_kImmutableZeroCopy: PJRT_HostBufferSemantics = 2;
pub const PJRT_HostBufferSemantics_kMutableZeroCopy: PJRT_HostBufferSemantics = 3;

/// A function that the plugin calls.
pub type PJRT_KeyValueGetCallback =
    Option<unsafe extern "C" fn(*mut PJRT_KeyValueGetCallback_Args) -> *mut PJRT_Error>;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_KeyValueGetCallback_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub key: *const c_char,
    pub key_size: usize,
    pub timeout_in_ms: c_int,
    pub callback_error: *mut PJRT_CallbackError,
    pub user_arg: *mut c_void,
    pub value: *mut c_char,
    pub value_size: usize,
    pub value_deleter_callback: PJRT_KeyValueGetCallback_ValueDeleter,
}

/// A function that the plugin calls.
pub type PJRT_KeyValueGetCallback_ValueDeleter = Option<unsafe extern "C" fn(*mut c_char)>;

/// A function that the plugin calls.
pub type PJRT_KeyValuePutCallback =
    Option<unsafe extern "C" fn(*mut PJRT_KeyValuePutCallback_Args) -> *mut PJRT_Error>;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_KeyValuePutCallback_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub key: *const c_char,
    pub key_size: usize,
    pub value: *const c_char,
    pub value_size: usize,
    pub callback_error: *mut PJRT_CallbackError,
    pub user_arg: *mut c_void,
}

/// A function that the plugin calls.
pub type PJRT_KeyValueTryGetCallback =
    Option<unsafe extern "C" fn(*mut PJRT_KeyValueTryGetCallback_Args) -> *mut PJRT_Error>;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_KeyValueTryGetCallback_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub key: *const c_char,
    pub key_size: usize,
    pub callback_error: *mut PJRT_CallbackError,
    pub user_arg: *mut c_void,
    pub value: *mut c_char,
    pub value_size: usize,
    pub value_deleter_callback: PJRT_KeyValueTryGetCallback_ValueDeleter,
}

/// A function that the plugin calls.
pub type PJRT_KeyValueTryGetCallback_ValueDeleter = Option<unsafe extern "C" fn(*mut c_char)>;

/// Known to the plugin only.
#[repr(C)]
pub struct PJRT_LoadedExecutable {
    private: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_LoadedExecutable_Destroy_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: *mut PJRT_LoadedExecutable,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_LoadedExecutable_Execute_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub executable: *mut PJRT_LoadedExecutable,
    pub options: *mut PJRT_ExecuteOptions,
    pub argument_lists: *const *const *mut PJRT_Buffer,
    pub num_devices: usize,
    pub num_args: usize,
    pub output_lists: *const *mut *mut PJRT_Buffer,
    pub device_complete_events: *mut *mut PJRT_Event,
    pub execute_device: *mut PJRT_Device,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_LoadedExecutable_GetExecutable_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub loaded_executable: *mut PJRT_LoadedExecutable,
    pub executable: *mut PJRT_Executable,
}

/// Known to the plugin only.
#[repr(C)]
pub struct PJRT_Memory {
    private: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub union PJRT_NamedValue_value {
    pub string_value: *const c_char,
    pub int64_value: i64,
    pub int64_array_value: *const i64,
    pub float_value: f32,
    pub bool_value: bool,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_NamedValue {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub name: *const c_char,
    pub name_size: usize,
    pub type_: PJRT_NamedValue_Type,
    pub value: PJRT_NamedValue_value,
    pub value_size: usize,
}

/// Values of `PJRT_NamedValue_Type`.
pub type PJRT_NamedValue_Type = u32;
pub const PJRT_NamedValue_kString: PJRT_NamedValue_Type = 0;
pub const PJRT_NamedValue_kInt64: PJRT_NamedValue_Type = 1;
pub const PJRT_NamedValue_kInt64List: PJRT_NamedValue_Type = 2;
pub const PJRT_NamedValue_kFloat: PJRT_NamedValue_Type = 3;
pub const PJRT_NamedValue_kBool: PJRT_NamedValue_Type = 4;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Plugin_Attributes_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub attributes: *const PJRT_NamedValue,
    pub num_attributes: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Plugin_Initialize_Args {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Program {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub code: *mut c_char,
    pub code_size: usize,
    pub format: *const c_char,
    pub format_size: usize,
}

/// A function that the plugin calls.
pub type PJRT_RecvCallback =
    Option<unsafe extern "C" fn(*mut PJRT_CopyToDeviceStream, *mut c_void)>;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_RecvCallbackInfo {
    pub channel_id: i64,
    pub user_arg: *mut c_void,
    pub recv_callback: PJRT_RecvCallback,
}

/// A function that the plugin calls.
pub type PJRT_SendCallback = Option<
    unsafe extern "C" fn(
        *mut PJRT_Chunk,
        *mut PJRT_CallbackError,
        usize,
        bool,
        *mut c_void,
    ) -> *mut PJRT_Error,
>;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_SendCallbackInfo {
    pub channel_id: i64,
    pub user_arg: *mut c_void,
    pub send_callback: PJRT_SendCallback,
}

/// Known to the plugin only.
#[repr(C)]
pub struct PJRT_SerializedExecutable {
    private: [u8; 0],
}

structures! {
    PJRT_Api_Version: minor_version, c_int;
    PJRT_Buffer_Destroy_Args: buffer, *mut PJRT_Buffer;
    PJRT_Buffer_MemoryLayout: type_, PJRT_Buffer_MemoryLayout_Type;
    PJRT_Buffer_MemoryLayout_Strides: num_byte_strides, usize;
    PJRT_Buffer_MemoryLayout_Tiled: num_tiles, usize;
    PJRT_Buffer_ReadyEvent_Args: event, *mut PJRT_Event;
    PJRT_Buffer_ToHostBuffer_Args: event, *mut PJRT_Event;
    PJRT_Buffer_UnsafePointer_Args: buffer_pointer, usize;
    PJRT_Client_AddressableDevices_Args: num_addressable_devices, usize;
    PJRT_Client_BufferFromHostBuffer_Args: buffer, *mut PJRT_Buffer;
    PJRT_Client_Compile_Args: executable, *mut PJRT_LoadedExecutable;
    PJRT_Client_Create_Args: kv_try_get_user_arg, *mut c_void;
    PJRT_Client_Destroy_Args: client, *mut PJRT_Client;
    PJRT_Client_PlatformName_Args: platform_name_size, usize;
    PJRT_Client_PlatformVersion_Args: platform_version_size, usize;
    PJRT_Client_ProcessIndex_Args: process_index, c_int;
    PJRT_DeviceDescription_Id_Args: id, c_int;
    PJRT_DeviceDescription_Kind_Args: device_kind_size, usize;
    PJRT_DeviceDescription_ProcessIndex_Args: process_index, c_int;
    PJRT_DeviceDescription_ToString_Args: to_string_size, usize;
    PJRT_Device_GetDescription_Args: device_description, *mut PJRT_DeviceDescription;
    PJRT_Device_MemoryStats_Args: peak_pool_bytes_is_set, bool;
    PJRT_Error_Destroy_Args: error, *mut PJRT_Error;
    PJRT_Error_GetCode_Args: code, PJRT_Error_Code;
    PJRT_Error_Message_Args: message_size, usize;
    PJRT_Event_Await_Args: event, *mut PJRT_Event;
    PJRT_Event_Destroy_Args: event, *mut PJRT_Event;
    PJRT_Event_OnReady_Args: user_arg, *mut c_void;
    PJRT_Executable_DeserializeAndLoad_Args: overridden_serialized_compile_options_size, usize;
    PJRT_Executable_Destroy_Args: executable, *mut PJRT_Executable;
    PJRT_Executable_NumOutputs_Args: num_outputs, usize;
    PJRT_Executable_OptimizedProgram_Args: program, *mut PJRT_Program;
    PJRT_Executable_OutputDimensions_Args: dim_sizes, *const usize;
    PJRT_Executable_OutputElementTypes_Args: num_output_types, usize;
    PJRT_Executable_Serialize_Args: serialized_executable_deleter, Option<unsafe extern "C" fn(*mut PJRT_SerializedExecutable)>;
    PJRT_ExecuteOptions: incarnation_ids, *mut i64;
    PJRT_Extension_Base: next, *mut PJRT_Extension_Base;
    PJRT_KeyValueGetCallback_Args: value_deleter_callback, PJRT_KeyValueGetCallback_ValueDeleter;
    PJRT_KeyValuePutCallback_Args: user_arg, *mut c_void;
    PJRT_KeyValueTryGetCallback_Args: value_deleter_callback, PJRT_KeyValueTryGetCallback_ValueDeleter;
    PJRT_LoadedExecutable_Destroy_Args: executable, *mut PJRT_LoadedExecutable;
    PJRT_LoadedExecutable_Execute_Args: execute_device, *mut PJRT_Device;
    PJRT_LoadedExecutable_GetExecutable_Args: executable, *mut PJRT_Executable;
    PJRT_NamedValue: value_size, usize;
    PJRT_Plugin_Attributes_Args: num_attributes, usize;
    PJRT_Plugin_Initialize_Args: extension_start, *mut PJRT_Extension_Base;
    PJRT_Program: format_size, usize;
}

/// The table of entries; those that are not called here have no type.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PJRT_Api {
    pub struct_size: usize,
    pub extension_start: *mut PJRT_Extension_Base,
    pub pjrt_api_version: PJRT_Api_Version,
    pub PJRT_Error_Destroy: Option<unsafe extern "C" fn(*mut PJRT_Error_Destroy_Args)>,
    pub PJRT_Error_Message: Option<unsafe extern "C" fn(*mut PJRT_Error_Message_Args)>,
    pub PJRT_Error_GetCode:
        Option<unsafe extern "C" fn(*mut PJRT_Error_GetCode_Args) -> *mut PJRT_Error>,
    pub PJRT_Plugin_Initialize:
        Option<unsafe extern "C" fn(*mut PJRT_Plugin_Initialize_Args) -> *mut PJRT_Error>,
    pub PJRT_Plugin_Attributes:
        Option<unsafe extern "C" fn(*mut PJRT_Plugin_Attributes_Args) -> *mut PJRT_Error>,
    pub PJRT_Event_Destroy:
        Option<unsafe extern "C" fn(*mut PJRT_Event_Destroy_Args) -> *mut PJRT_Error>,
    pub PJRT_Event_IsReady: *const c_void,
    pub PJRT_Event_Error: *const c_void,
    pub PJRT_Event_Await:
        Option<unsafe extern "C" fn(*mut PJRT_Event_Await_Args) -> *mut PJRT_Error>,
    pub PJRT_Event_OnReady:
        Option<unsafe extern "C" fn(*mut PJRT_Event_OnReady_Args) -> *mut PJRT_Error>,
    pub PJRT_Client_Create:
        Option<unsafe extern "C" fn(*mut PJRT_Client_Create_Args) -> *mut PJRT_Error>,
    pub PJRT_Client_Destroy:
        Option<unsafe extern "C" fn(*mut PJRT_Client_Destroy_Args) -> *mut PJRT_Error>,
    pub PJRT_Client_PlatformName:
        Option<unsafe extern "C" fn(*mut PJRT_Client_PlatformName_Args) -> *mut PJRT_Error>,
    pub PJRT_Client_ProcessIndex:
        Option<unsafe extern "C" fn(*mut PJRT_Client_ProcessIndex_Args) -> *mut PJRT_Error>,
    pub PJRT_Client_PlatformVersion:
        Option<unsafe extern "C" fn(*mut PJRT_Client_PlatformVersion_Args) -> *mut PJRT_Error>,
    pub PJRT_Client_Devices: *const c_void,
    pub PJRT_Client_AddressableDevices:
        Option<unsafe extern "C" fn(*mut PJRT_Client_AddressableDevices_Args) -> *mut PJRT_Error>,
    pub PJRT_Client_LookupDevice: *const c_void,
    pub PJRT_Client_LookupAddressableDevice: *const c_void,
    pub PJRT_Client_AddressableMemories: *const c_void,
    pub PJRT_Client_Compile:
        Option<unsafe extern "C" fn(*mut PJRT_Client_Compile_Args) -> *mut PJRT_Error>,
    pub PJRT_Client_DefaultDeviceAssignment: *const c_void,
    pub PJRT_Client_BufferFromHostBuffer:
        Option<unsafe extern "C" fn(*mut PJRT_Client_BufferFromHostBuffer_Args) -> *mut PJRT_Error>,
    pub PJRT_DeviceDescription_Id:
        Option<unsafe extern "C" fn(*mut PJRT_DeviceDescription_Id_Args) -> *mut PJRT_Error>,
    pub PJRT_DeviceDescription_ProcessIndex: Option<
        unsafe extern "C" fn(*mut PJRT_DeviceDescription_ProcessIndex_Args) -> *mut PJRT_Error,
    >,
    pub PJRT_DeviceDescription_Attributes: *const c_void,
    pub PJRT_DeviceDescription_Kind:
        Option<unsafe extern "C" fn(*mut PJRT_DeviceDescription_Kind_Args) -> *mut PJRT_Error>,
    pub PJRT_DeviceDescription_DebugString: *const c_void,
    pub PJRT_DeviceDescription_ToString:
        Option<unsafe extern "C" fn(*mut PJRT_DeviceDescription_ToString_Args) -> *mut PJRT_Error>,
    pub PJRT_Device_GetDescription:
        Option<unsafe extern "C" fn(*mut PJRT_Device_GetDescription_Args) -> *mut PJRT_Error>,
    pub PJRT_Device_IsAddressable: *const c_void,
    pub PJRT_Device_LocalHardwareId: *const c_void,
    pub PJRT_Device_AddressableMemories: *const c_void,
    pub PJRT_Device_DefaultMemory: *const c_void,
    pub PJRT_Device_MemoryStats:
        Option<unsafe extern "C" fn(*mut PJRT_Device_MemoryStats_Args) -> *mut PJRT_Error>,
    pub PJRT_Memory_Id: *const c_void,
    pub PJRT_Memory_Kind: *const c_void,
    pub PJRT_Memory_DebugString: *const c_void,
    pub PJRT_Memory_ToString: *const c_void,
    pub PJRT_Memory_AddressableByDevices: *const c_void,
    pub PJRT_Executable_Destroy:
        Option<unsafe extern "C" fn(*mut PJRT_Executable_Destroy_Args) -> *mut PJRT_Error>,
    pub PJRT_Executable_Name: *const c_void,
    pub PJRT_Executable_NumReplicas: *const c_void,
    pub PJRT_Executable_NumPartitions: *const c_void,
    pub PJRT_Executable_NumOutputs:
        Option<unsafe extern "C" fn(*mut PJRT_Executable_NumOutputs_Args) -> *mut PJRT_Error>,
    pub PJRT_Executable_SizeOfGeneratedCodeInBytes: *const c_void,
    pub PJRT_Executable_GetCostAnalysis: *const c_void,
    pub PJRT_Executable_OutputMemoryKinds: *const c_void,
    pub PJRT_Executable_OptimizedProgram:
        Option<unsafe extern "C" fn(*mut PJRT_Executable_OptimizedProgram_Args) -> *mut PJRT_Error>,
    pub PJRT_Executable_Serialize:
        Option<unsafe extern "C" fn(*mut PJRT_Executable_Serialize_Args) -> *mut PJRT_Error>,
    pub PJRT_LoadedExecutable_Destroy:
        Option<unsafe extern "C" fn(*mut PJRT_LoadedExecutable_Destroy_Args) -> *mut PJRT_Error>,
    pub PJRT_LoadedExecutable_GetExecutable: Option<
        unsafe extern "C" fn(*mut PJRT_LoadedExecutable_GetExecutable_Args) -> *mut PJRT_Error,
    >,
    pub PJRT_LoadedExecutable_AddressableDevices: *const c_void,
    pub PJRT_LoadedExecutable_Delete: *const c_void,
    pub PJRT_LoadedExecutable_IsDeleted: *const c_void,
    pub PJRT_LoadedExecutable_Execute:
        Option<unsafe extern "C" fn(*mut PJRT_LoadedExecutable_Execute_Args) -> *mut PJRT_Error>,
    pub PJRT_Executable_DeserializeAndLoad: Option<
        unsafe extern "C" fn(*mut PJRT_Executable_DeserializeAndLoad_Args) -> *mut PJRT_Error,
    >,
    pub PJRT_LoadedExecutable_Fingerprint: *const c_void,
    pub PJRT_Buffer_Destroy:
        Option<unsafe extern "C" fn(*mut PJRT_Buffer_Destroy_Args) -> *mut PJRT_Error>,
    pub PJRT_Buffer_ElementType: *const c_void,
    pub PJRT_Buffer_Dimensions: *const c_void,
    pub PJRT_Buffer_UnpaddedDimensions: *const c_void,
    pub PJRT_Buffer_DynamicDimensionIndices: *const c_void,
    pub PJRT_Buffer_GetMemoryLayout: *const c_void,
    pub PJRT_Buffer_OnDeviceSizeInBytes: *const c_void,
    pub PJRT_Buffer_Device: *const c_void,
    pub PJRT_Buffer_Memory: *const c_void,
    pub PJRT_Buffer_Delete: *const c_void,
    pub PJRT_Buffer_IsDeleted: *const c_void,
    pub PJRT_Buffer_CopyToDevice: *const c_void,
    pub PJRT_Buffer_ToHostBuffer:
        Option<unsafe extern "C" fn(*mut PJRT_Buffer_ToHostBuffer_Args) -> *mut PJRT_Error>,
    pub PJRT_Buffer_IsOnCpu: *const c_void,
    pub PJRT_Buffer_ReadyEvent:
        Option<unsafe extern "C" fn(*mut PJRT_Buffer_ReadyEvent_Args) -> *mut PJRT_Error>,
    pub PJRT_Buffer_UnsafePointer:
        Option<unsafe extern "C" fn(*mut PJRT_Buffer_UnsafePointer_Args) -> *mut PJRT_Error>,
    pub PJRT_Buffer_IncreaseExternalReferenceCount: *const c_void,
    pub PJRT_Buffer_DecreaseExternalReferenceCount: *const c_void,
    pub PJRT_Buffer_OpaqueDeviceMemoryDataPointer: *const c_void,
    pub PJRT_CopyToDeviceStream_Destroy: *const c_void,
    pub PJRT_CopyToDeviceStream_AddChunk: *const c_void,
    pub PJRT_CopyToDeviceStream_TotalBytes: *const c_void,
    pub PJRT_CopyToDeviceStream_GranuleSize: *const c_void,
    pub PJRT_CopyToDeviceStream_CurrentBytes: *const c_void,
    pub PJRT_TopologyDescription_Create: *const c_void,
    pub PJRT_TopologyDescription_Destroy: *const c_void,
    pub PJRT_TopologyDescription_PlatformName: *const c_void,
    pub PJRT_TopologyDescription_PlatformVersion: *const c_void,
    pub PJRT_TopologyDescription_GetDeviceDescriptions: *const c_void,
    pub PJRT_TopologyDescription_Serialize: *const c_void,
    pub PJRT_TopologyDescription_Attributes: *const c_void,
    pub PJRT_Compile: *const c_void,
    pub PJRT_Executable_OutputElementTypes: Option<
        unsafe extern "C" fn(*mut PJRT_Executable_OutputElementTypes_Args) -> *mut PJRT_Error,
    >,
    pub PJRT_Executable_OutputDimensions:
        Option<unsafe extern "C" fn(*mut PJRT_Executable_OutputDimensions_Args) -> *mut PJRT_Error>,
    pub PJRT_Buffer_CopyToMemory: *const c_void,
    pub PJRT_Client_CreateViewOfDeviceBuffer: *const c_void,
    pub PJRT_Executable_Fingerprint: *const c_void,
    pub PJRT_Client_TopologyDescription: *const c_void,
    pub PJRT_Executable_GetCompiledMemoryStats: *const c_void,
    pub PJRT_Memory_Kind_Id: *const c_void,
    pub PJRT_ExecuteContext_Create: *const c_void,
    pub PJRT_ExecuteContext_Destroy: *const c_void,
    pub PJRT_Buffer_CopyRawToHost: *const c_void,
    pub PJRT_AsyncHostToDeviceTransferManager_Destroy: *const c_void,
    pub PJRT_AsyncHostToDeviceTransferManager_TransferData: *const c_void,
    pub PJRT_Client_CreateBuffersForAsyncHostToDevice: *const c_void,
    pub PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer: *const c_void,
    pub PJRT_AsyncHostToDeviceTransferManager_Device: *const c_void,
    pub PJRT_AsyncHostToDeviceTransferManager_BufferCount: *const c_void,
    pub PJRT_AsyncHostToDeviceTransferManager_BufferSize: *const c_void,
    pub PJRT_AsyncHostToDeviceTransferManager_SetBufferError: *const c_void,
    pub PJRT_AsyncHostToDeviceTransferManager_AddMetadata: *const c_void,
    pub PJRT_Client_DmaMap: *const c_void,
    pub PJRT_Client_DmaUnmap: *const c_void,
    pub PJRT_Client_CreateUninitializedBuffer: *const c_void,
    pub PJRT_Client_UpdateGlobalProcessInfo: *const c_void,
    pub PJRT_TopologyDescription_Deserialize: *const c_void,
    pub PJRT_Client_CreateAliasBuffer: *const c_void,
    pub PJRT_Client_FulfillAliasBuffer: *const c_void,
    pub PJRT_LoadedExecutable_GetDeviceAssignment: *const c_void,
    pub PJRT_Client_CreateErrorBuffer: *const c_void,
    pub PJRT_AsyncHostToDeviceTransferManager_TransferLiteral: *const c_void,
    pub PJRT_Buffer_CopyRawToHostFuture: *const c_void,
    pub PJRT_Device_PoisonExecution: *const c_void,
    pub PJRT_Device_CreateAsyncTrackingEvent: *const c_void,
    pub PJRT_AsyncTrackingEvent_Destroy: *const c_void,
    pub PJRT_Executable_GetCompileOptions: *const c_void,
    pub PJRT_Buffer_DonateWithControlDependency: *const c_void,
    pub PJRT_Event_Create: *const c_void,
    pub PJRT_Event_Set: *const c_void,
}
