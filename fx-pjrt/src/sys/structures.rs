//! The structures of the C interface with their sizes, and functions that take them.

use std::ffi::{c_char, c_int, c_void};
use std::mem::{offset_of, size_of};

use super::Structure;
use super::values::*;

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
