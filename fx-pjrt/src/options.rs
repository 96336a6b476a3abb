//! How a program is compiled: the messages that a plugin takes, of which only what fx sets is stated.

use prost::Message;

use crate::client::Device;

/// XLA's `CompileOptionsProto`.
#[derive(Clone, PartialEq, Message)]
struct CompileOptions {
    #[prost(message, optional, tag = "3")]
    build: Option<BuildOptions>,
}

/// XLA's `ExecutableBuildOptionsProto`.
#[derive(Clone, PartialEq, Message)]
struct BuildOptions {
    #[prost(int64, tag = "4")]
    num_replicas: i64,
    #[prost(int64, tag = "5")]
    num_partitions: i64,
    #[prost(bool, tag = "6")]
    use_spmd_partitioning: bool,
    #[prost(message, optional, tag = "9")]
    device_assignment: Option<DeviceAssignment>,
    #[prost(bool, tag = "19")]
    use_shardy_partitioner: bool,
}

/// XLA's `DeviceAssignmentProto`.
#[derive(Clone, PartialEq, Message)]
struct DeviceAssignment {
    #[prost(int32, tag = "1")]
    replica_count: i32,
    #[prost(int32, tag = "2")]
    computation_count: i32,
    #[prost(message, repeated, tag = "3")]
    computation_devices: Vec<ComputationDevice>,
}

/// The devices of one part of a program.
#[derive(Clone, PartialEq, Message)]
struct ComputationDevice {
    #[prost(int64, repeated, tag = "1")]
    replica_device_ids: Vec<i64>,
}

/// The options of a program that runs on these devices, one part each.
pub(crate) fn compile_options(devices: &[Device]) -> Vec<u8> {
    let parts = devices.iter().map(|device| ComputationDevice {
        replica_device_ids: vec![device.id()],
    });
    let count = i32::try_from(devices.len()).unwrap_or(i32::MAX);
    let is_split = devices.len() > 1;
    let options = CompileOptions {
        build: Some(BuildOptions {
            num_replicas: 1,
            num_partitions: count.into(),
            use_spmd_partitioning: is_split,
            device_assignment: Some(DeviceAssignment {
                replica_count: 1,
                computation_count: count,
                computation_devices: parts.collect(),
            }),
            use_shardy_partitioner: is_split,
        }),
    };
    options.encode_to_vec()
}
