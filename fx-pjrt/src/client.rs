//! `Client`: the devices of a plugin, and what is made on them.
//!
//! Invariant: whatever was made by a client keeps it alive, so that things may be dropped in any order.

use std::ffi::c_char;
use std::fmt;
use std::sync::Arc;

use fx_nn::{Error, Result};

use crate::plugin::{Plugin, call, slice, text};
use crate::sys::{self, Structure};

/// A connection with the devices of a plugin. Clones are the same client; threads may share it.
///
/// ```no_run
/// use fx_pjrt::{Client, ClientOptions, Plugin};
/// let plugin = Plugin::load("/opt/plugins/pjrt_c_api_cpu_plugin.so")?;
/// let client = Client::new(plugin, &ClientOptions::new().int("cpu_device_count", 8))?;
/// for device in client.devices() {
///     println!("{device}");
/// }
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    plugin: Plugin,
    client: *mut sys::PJRT_Client,
    platform: String,
    platform_version: String,
    process_index: i32,
    devices: Vec<Device>,
}

// SAFETY: a plugin's client may be used by any thread.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        let mut args = sys::PJRT_Client_Destroy_Args::sized();
        args.client = self.client;
        // SAFETY: the client is ours, and all that was made by it is gone.
        let _ = unsafe { call!(self.plugin, PJRT_Client_Destroy, args) };
    }
}

/// A device of a client.
#[derive(Debug, Clone)]
pub struct Device {
    pub(crate) device: *mut sys::PJRT_Device,
    id: i64,
    kind: String,
    process_index: i32,
    shown: String,
}

// SAFETY: a plugin's devices may be used by any thread.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    /// Its number, of all processes.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// What kind of device it is, in the plugin's words, such as `NVIDIA H200` or `cpu`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// The process that it belongs to.
    pub fn process_index(&self) -> i32 {
        self.process_index
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

/// The memory of a device, as the plugin counts it, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStats {
    /// What is in use.
    pub in_use: u64,
    /// The most that was in use at a time; `None` if it is not counted.
    pub peak: Option<u64>,
    /// What there is; `None` if it is not known.
    pub limit: Option<u64>,
}

/// The options that a plugin takes for a client. Which there are depends on the plugin.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct ClientOptions(Vec<(String, Setting)>);

#[derive(Debug, Clone)]
enum Setting {
    Text(String),
    Int(i64),
    Ints(Vec<i64>),
    Float(f32),
    Bool(bool),
}

impl ClientOptions {
    /// No options.
    pub fn new() -> Self {
        ClientOptions::default()
    }

    fn with(mut self, name: &str, setting: Setting) -> Self {
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.to_string(), setting));
        self
    }

    /// A text.
    pub fn text(self, name: &str, value: impl Into<String>) -> Self {
        self.with(name, Setting::Text(value.into()))
    }

    /// A whole number, such as `cpu_device_count` of the CPU's plugin.
    pub fn int(self, name: &str, value: i64) -> Self {
        self.with(name, Setting::Int(value))
    }

    /// Whole numbers.
    pub fn ints(self, name: &str, values: impl IntoIterator<Item = i64>) -> Self {
        self.with(name, Setting::Ints(values.into_iter().collect()))
    }

    /// A number, such as `memory_fraction` of plugins for GPUs.
    pub fn float(self, name: &str, value: f32) -> Self {
        self.with(name, Setting::Float(value))
    }

    /// A boolean, such as `preallocate` of plugins for GPUs.
    pub fn bool(self, name: &str, value: bool) -> Self {
        self.with(name, Setting::Bool(value))
    }

    /// The options as the plugin takes them; they point into `self`.
    fn named(&self) -> Vec<sys::PJRT_NamedValue> {
        let all = self.0.iter().map(|(name, setting)| {
            let mut value = sys::PJRT_NamedValue::sized();
            (value.name, value.name_size) = (name.as_ptr().cast(), name.len());
            value.value_size = 1;
            match setting {
                Setting::Text(text) => {
                    value.type_ = sys::PJRT_NamedValue_kString;
                    value.value.string_value = text.as_ptr().cast::<c_char>();
                    value.value_size = text.len();
                }
                Setting::Int(number) => {
                    value.type_ = sys::PJRT_NamedValue_kInt64;
                    value.value.int64_value = *number;
                }
                Setting::Ints(numbers) => {
                    value.type_ = sys::PJRT_NamedValue_kInt64List;
                    value.value.int64_array_value = numbers.as_ptr();
                    value.value_size = numbers.len();
                }
                Setting::Float(number) => {
                    value.type_ = sys::PJRT_NamedValue_kFloat;
                    value.value.float_value = *number;
                }
                Setting::Bool(truth) => {
                    value.type_ = sys::PJRT_NamedValue_kBool;
                    value.value.bool_value = *truth;
                }
            }
            value
        });
        all.collect()
    }
}

impl Client {
    /// Makes a client.
    ///
    /// # Errors
    /// Returns the plugin's error: an option that it does not take, no device, a driver that is too old.
    pub fn new(plugin: Plugin, options: &ClientOptions) -> Result<Self> {
        let named = options.named();
        let mut args = sys::PJRT_Client_Create_Args::sized();
        args.create_options = named.as_ptr();
        args.num_options = named.len();
        // SAFETY: the options live until the call is over.
        unsafe { call!(plugin, PJRT_Client_Create, args) }?;
        // From here on it is destroyed whatever fails.
        let mut inner = Inner {
            plugin,
            client: args.client,
            platform: String::new(),
            platform_version: String::new(),
            process_index: 0,
            devices: Vec::new(),
        };
        inner.describe()?;
        Ok(Client(Arc::new(inner)))
    }

    /// The plugin.
    pub fn plugin(&self) -> Plugin {
        self.0.plugin
    }

    /// Whether the other is the same client.
    pub(crate) fn is(&self, other: &Client) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// An error if a device is another client's.
    pub(crate) fn check(&self, device: &Device) -> Result<()> {
        let mut own = self.0.devices.iter();
        match own.any(|own| own.device == device.device) {
            true => Ok(()),
            false => Err(Error::msg(format_args!(
                "{device} is a device of another client: `client.devices()` has those of this one"
            ))),
        }
    }

    pub(crate) fn raw(&self) -> *mut sys::PJRT_Client {
        self.0.client
    }

    /// The kind of devices, such as `cpu` or `cuda`.
    pub fn platform(&self) -> &str {
        &self.0.platform
    }

    /// The version of what drives the devices, in the plugin's words.
    pub fn platform_version(&self) -> &str {
        &self.0.platform_version
    }

    /// The number of this process among those of the client.
    pub fn process_index(&self) -> i32 {
        self.0.process_index
    }

    /// The devices of this process.
    pub fn devices(&self) -> &[Device] {
        &self.0.devices
    }

    /// The memory of a device.
    ///
    /// # Errors
    /// Returns an error if the device is another client's, or the plugin does not count it.
    pub fn memory_stats(&self, device: &Device) -> Result<MemoryStats> {
        self.check(device)?;
        let mut args = sys::PJRT_Device_MemoryStats_Args::sized();
        args.device = device.device;
        // SAFETY: the device is the client's, which is alive.
        unsafe { call!(self.0.plugin, PJRT_Device_MemoryStats, args) }?;
        let counted = |is_set: bool, bytes: i64| is_set.then_some(bytes.max(0).cast_unsigned());
        Ok(MemoryStats {
            in_use: args.bytes_in_use.max(0).cast_unsigned(),
            peak: counted(args.peak_bytes_in_use_is_set, args.peak_bytes_in_use),
            limit: counted(args.bytes_limit_is_set, args.bytes_limit),
        })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let devices = self.0.devices.len();
        write!(f, "Client({}, {devices} devices)", self.0.platform)
    }
}

impl Inner {
    /// Asks the plugin what the client is.
    fn describe(&mut self) -> Result<()> {
        let plugin = self.plugin;
        let mut name = sys::PJRT_Client_PlatformName_Args::sized();
        name.client = self.client;
        // SAFETY: the client is alive, and so are texts that it gives.
        self.platform = unsafe {
            call!(plugin, PJRT_Client_PlatformName, name)?;
            text(name.platform_name, name.platform_name_size)
        };
        let mut version = sys::PJRT_Client_PlatformVersion_Args::sized();
        version.client = self.client;
        // SAFETY: as above.
        self.platform_version = unsafe {
            call!(plugin, PJRT_Client_PlatformVersion, version)?;
            text(version.platform_version, version.platform_version_size)
        };
        let mut index = sys::PJRT_Client_ProcessIndex_Args::sized();
        index.client = self.client;
        // SAFETY: the client is alive.
        unsafe { call!(plugin, PJRT_Client_ProcessIndex, index) }?;
        self.process_index = index.process_index;
        let mut devices = sys::PJRT_Client_AddressableDevices_Args::sized();
        devices.client = self.client;
        // SAFETY: the client is alive.
        unsafe { call!(plugin, PJRT_Client_AddressableDevices, devices) }?;
        // SAFETY: the plugin gives so many devices, which live as long as the client.
        let all = unsafe { slice(devices.addressable_devices, devices.num_addressable_devices) };
        let all = all.iter().map(|device| Device::of(plugin, *device));
        self.devices = all.collect::<Result<_>>()?;
        Ok(())
    }
}

impl Device {
    fn of(plugin: Plugin, device: *mut sys::PJRT_Device) -> Result<Self> {
        let mut args = sys::PJRT_Device_GetDescription_Args::sized();
        args.device = device;
        // SAFETY: the device is alive.
        unsafe { call!(plugin, PJRT_Device_GetDescription, args) }?;
        let about = args.device_description;
        let mut id = sys::PJRT_DeviceDescription_Id_Args::sized();
        id.device_description = about;
        // SAFETY: the description lives as long as the device.
        unsafe { call!(plugin, PJRT_DeviceDescription_Id, id) }?;
        let mut process = sys::PJRT_DeviceDescription_ProcessIndex_Args::sized();
        process.device_description = about;
        // SAFETY: as above.
        unsafe { call!(plugin, PJRT_DeviceDescription_ProcessIndex, process) }?;
        let mut kind = sys::PJRT_DeviceDescription_Kind_Args::sized();
        kind.device_description = about;
        // SAFETY: as above; the text lives as long.
        let kind = unsafe {
            call!(plugin, PJRT_DeviceDescription_Kind, kind)?;
            text(kind.device_kind, kind.device_kind_size)
        };
        let mut shown = sys::PJRT_DeviceDescription_ToString_Args::sized();
        shown.device_description = about;
        // SAFETY: as above.
        let shown = unsafe {
            call!(plugin, PJRT_DeviceDescription_ToString, shown)?;
            text(shown.to_string, shown.to_string_size)
        };
        Ok(Device {
            device,
            id: id.id.into(),
            kind,
            process_index: process.process_index,
            shown,
        })
    }
}
