//! XLA's PJRT C interface, version 0.90: the table of entries, with what this crate uses of it.
//!
//! Invariant: `bindings.py` writes this folder from the public header; nobody edits it. Structures only grow at their
//! ends, and each says how far ours goes.
#![allow(
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    missing_docs
)]
#![allow(dead_code, reason = "all values of what is used are here")]

mod structures;
mod values;

use std::ffi::{c_int, c_void};

pub use structures::*;
pub use values::*;

/// The version of the interface that these structures are of.
pub const API_VERSION: (c_int, c_int) = (0, 90);

/// A structure that begins with its size.
pub trait Structure: Copy {
    /// The size that it says: up to the end of the last field.
    const STRUCT_SIZE: usize;

    /// The structure with its size, and zero in every other field.
    fn sized() -> Self;
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
