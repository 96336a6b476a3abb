//! The values and the objects that structures of the C interface name.

/// Known to the plugin only.
#[repr(C)]
pub struct PJRT_Buffer {
    private: [u8; 0],
}

/// Values of `PJRT_Buffer_MemoryLayout_Type`.
pub type PJRT_Buffer_MemoryLayout_Type = u32;
pub const PJRT_Buffer_MemoryLayout_Type_Tiled: PJRT_Buffer_MemoryLayout_Type = 0;
pub const PJRT_Buffer_MemoryLayout_Type_Strides: PJRT_Buffer_MemoryLayout_Type = 1;

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

/// Known to the plugin only.
#[repr(C)]
pub struct PJRT_Client {
    private: [u8; 0],
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

/// Known to the plugin only.
#[repr(C)]
pub struct PJRT_Event {
    private: [u8; 0],
}

/// Known to the plugin only.
#[repr(C)]
pub struct PJRT_Executable {
    private: [u8; 0],
}

/// Known to the plugin only.
#[repr(C)]
pub struct PJRT_ExecuteContext {
    private: [u8; 0],
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

/// Known to the plugin only.
#[repr(C)]
pub struct PJRT_LoadedExecutable {
    private: [u8; 0],
}

/// Known to the plugin only.
#[repr(C)]
pub struct PJRT_Memory {
    private: [u8; 0],
}

/// Values of `PJRT_NamedValue_Type`.
pub type PJRT_NamedValue_Type = u32;
pub const PJRT_NamedValue_kString: PJRT_NamedValue_Type = 0;
pub const PJRT_NamedValue_kInt64: PJRT_NamedValue_Type = 1;
pub const PJRT_NamedValue_kInt64List: PJRT_NamedValue_Type = 2;
pub const PJRT_NamedValue_kFloat: PJRT_NamedValue_Type = 3;
pub const PJRT_NamedValue_kBool: PJRT_NamedValue_Type = 4;

/// Known to the plugin only.
#[repr(C)]
pub struct PJRT_SerializedExecutable {
    private: [u8; 0],
}
