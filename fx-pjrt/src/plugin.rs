//! `Plugin`: a shared library with the entry `GetPjrtApi`, and calls of its table of entries.
//!
//! Invariant: an entry that lies past the table's own size, or is null, is never called.

use std::collections::HashMap;
use std::ffi::c_int;
use std::fmt;
use std::mem::{MaybeUninit, offset_of};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use fx_nn::{Error, Result};

use crate::error::{Code, PjrtError};
use crate::sys::{self, Structure};

/// A plugin: a shared library that runs programs on a kind of device. It stays loaded until the
/// process ends, as the libraries behind it ask for.
///
/// Loading a plugin runs its code: load only files that you trust.
#[derive(Clone, Copy)]
pub struct Plugin(&'static Loaded);

/// A library that is loaded.
struct Loaded {
    path: PathBuf,
    /// The plugin's table, as far as it goes: what lies past its end is null.
    table: sys::PJRT_Api,
    version: (c_int, c_int),
    /// The size and the time of the file when it was loaded.
    stamp: String,
}

// SAFETY: the table is a copy that is only read; the functions may be called by any thread.
unsafe impl Send for Loaded {}
// SAFETY: as above.
unsafe impl Sync for Loaded {}

/// The plugins of this process: a file is loaded once.
static LOADED: Mutex<Option<HashMap<PathBuf, Plugin>>> = Mutex::new(None);

/// An entry of a plugin's table; an error if the plugin does not have it.
macro_rules! entry {
    ($plugin:expr, $name:ident) => {
        $plugin
            .table()
            .$name
            .ok_or_else(|| $plugin.lacks(stringify!($name)))
    };
}
pub(crate) use entry;

/// Calls an entry with its arguments; the plugin's error, if it has one. To be used in an `unsafe` block, which says why
/// the arguments are what the entry asks for.
macro_rules! call {
    ($plugin:expr, $name:ident, $args:expr) => {{
        let plugin = $plugin;
        match $crate::plugin::entry!(plugin, $name) {
            Ok(function) => plugin.checked(stringify!($name), function(&raw mut $args)),
            Err(error) => Err(error),
        }
    }};
}
pub(crate) use call;

impl Plugin {
    /// Loads a plugin from a file.
    ///
    /// ```no_run
    /// let plugin = fx_pjrt::Plugin::load("/opt/plugins/pjrt_c_api_cpu_plugin.so")?;
    /// println!("{plugin}");
    /// # Ok::<(), fx_nn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if there is no such file, it is no library, has no entry `GetPjrtApi`, is of
    /// another major version, or its table ends before the entries that fx calls.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let failed = |what: &dyn fmt::Display| {
            Error::msg(format_args!(
                "{} cannot be loaded as a PJRT plugin: {what}",
                path.display()
            ))
        };
        let path = path.canonicalize().map_err(|error| {
            failed(&format_args!(
                "{error}. The guide `devices.md` says where plugins come from"
            ))
        })?;
        if !path.is_file() {
            return Err(failed(&"it is no file"));
        }
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = loaded.get_or_insert_default();
        if let Some(known) = loaded.get(&path) {
            return Ok(*known);
        }
        // SAFETY: the library's initialisers run. The user named the file, and the documentation says so.
        let library = unsafe { libloading::Library::new(&path) };
        let library = library.map_err(|error| {
            // The reason is in the source: what the system's loader says.
            let reason = std::error::Error::source(&error).map(ToString::to_string);
            failed(&reason.unwrap_or_else(|| error.to_string()))
        })?;
        let table = {
            // SAFETY: the type is that of the C interface.
            let entry = unsafe {
                library.get::<unsafe extern "C" fn() -> *const sys::PJRT_Api>(b"GetPjrtApi")
            };
            let entry = entry.map_err(|_| {
                failed(&"it has no entry `GetPjrtApi`, so that it is another kind of library")
            })?;
            let entry = *entry;
            // A plugin starts threads, and what they run must not be unmapped, whatever its table is.
            std::mem::forget(library);
            // SAFETY: the entry takes nothing and gives a table that stays.
            unsafe { entry() }
        };
        let made = Loaded::of(table, path.clone()).map_err(|error| failed(&error))?;
        let plugin = Plugin(Box::leak(Box::new(made)));
        plugin.initialize().map_err(|error| failed(&error))?;
        loaded.insert(path, plugin);
        Ok(plugin)
    }

    /// The file.
    pub fn path(&self) -> &'static Path {
        &self.0.path
    }

    /// The size and the time of the file when it was loaded.
    pub(crate) fn stamp(&self) -> &'static str {
        &self.0.stamp
    }

    /// The version of the interface that the plugin has: major and minor.
    pub fn api_version(&self) -> (i32, i32) {
        self.0.version
    }

    fn initialize(self) -> Result<()> {
        let mut args = sys::PJRT_Plugin_Initialize_Args::sized();
        // SAFETY: the entry takes only the size.
        unsafe { call!(self, PJRT_Plugin_Initialize, args) }
    }

    /// What the plugin says of itself, such as `xla_version` and the versions of StableHLO that it reads.
    ///
    /// # Errors
    /// Returns the plugin's error.
    pub fn attributes(&self) -> Result<Vec<(String, String)>> {
        let mut args = sys::PJRT_Plugin_Attributes_Args::sized();
        // SAFETY: the entry takes only the size, and fills the rest.
        unsafe { call!(self, PJRT_Plugin_Attributes, args) }?;
        // SAFETY: the plugin gives so many values, which stay as long as it is loaded.
        let values = unsafe { slice(args.attributes, args.num_attributes) };
        let all = values.iter().map(|value| {
            // SAFETY: the name and the value are as the value's type says.
            unsafe {
                let name = text(value.name, value.name_size);
                let shown = match value.type_ {
                    sys::PJRT_NamedValue_kString => {
                        text(value.value.string_value, value.value_size)
                    }
                    sys::PJRT_NamedValue_kInt64 => value.value.int64_value.to_string(),
                    sys::PJRT_NamedValue_kInt64List => {
                        let all = slice(value.value.int64_array_value, value.value_size);
                        let all: Vec<String> = all.iter().map(i64::to_string).collect();
                        all.join(".")
                    }
                    sys::PJRT_NamedValue_kFloat => value.value.float_value.to_string(),
                    sys::PJRT_NamedValue_kBool => value.value.bool_value.to_string(),
                    _ => String::from("?"),
                };
                (name, shown)
            }
        });
        Ok(all.collect())
    }

    /// The plugin's table; entries that it does not have are null.
    pub(crate) fn table(self) -> &'static sys::PJRT_Api {
        &self.0.table
    }

    #[cold]
    pub(crate) fn lacks(self, name: &'static str) -> Error {
        let (major, minor) = self.0.version;
        PjrtError::new(
            name,
            Code::Unimplemented,
            format_args!(
                "the plugin {} has version {major}.{minor} of the interface, which lacks this entry",
                self.0.path.display()
            ),
        )
        .into()
    }

    /// The result of a call: the plugin's error, which is taken over and freed.
    #[inline]
    pub(crate) fn checked(self, name: &'static str, error: *mut sys::PJRT_Error) -> Result<()> {
        match error.is_null() {
            true => Ok(()),
            false => Err(self.error(name, error).into()),
        }
    }

    /// What an error says; it is freed.
    #[cold]
    pub(crate) fn error(self, name: &'static str, error: *mut sys::PJRT_Error) -> PjrtError {
        let mut message = sys::PJRT_Error_Message_Args::sized();
        message.error = error;
        let said = match entry!(self, PJRT_Error_Message) {
            // SAFETY: the error is alive, and the text stays as long as it is.
            Ok(function) => unsafe {
                function(&raw mut message);
                text(message.message, message.message_size)
            },
            Err(_) => String::from("the plugin gives no message"),
        };
        let mut code = sys::PJRT_Error_GetCode_Args::sized();
        code.error = error;
        code.code = sys::PJRT_Error_Code_UNKNOWN;
        if let Ok(function) = entry!(self, PJRT_Error_GetCode) {
            // SAFETY: the error is alive. An error of this call has no reader.
            let nested = unsafe { function(&raw mut code) };
            if !nested.is_null() {
                self.destroy_error(nested);
            }
        }
        self.destroy_error(error);
        PjrtError::new(name, Code::of(code.code), shortened(&said))
    }

    fn destroy_error(self, error: *mut sys::PJRT_Error) {
        let mut args = sys::PJRT_Error_Destroy_Args::sized();
        args.error = error;
        if let Ok(function) = entry!(self, PJRT_Error_Destroy) {
            // SAFETY: the error is the caller's, and is not used after this.
            unsafe { function(&raw mut args) }
        }
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plugin({self})")
    }
}

impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = self.0.version;
        write!(f, "{} (API {major}.{minor})", self.0.path.display())
    }
}

impl Loaded {
    /// A table, once its size and its version are known to fit.
    fn of(table: *const sys::PJRT_Api, path: PathBuf) -> std::result::Result<Self, String> {
        if table.is_null() {
            return Err("its entry `GetPjrtApi` gives nothing".into());
        }
        // SAFETY: every version of the table begins with its size.
        let size = unsafe { (*table).struct_size };
        let first = offset_of!(sys::PJRT_Api, PJRT_Error_Destroy);
        if size < first {
            return Err(format!("its table has {size} bytes, and no entry"));
        }
        // SAFETY: the version lies within the table.
        let version = unsafe { (*table).pjrt_api_version };
        let (major, minor) = (version.major_version, version.minor_version);
        if major != sys::API_VERSION.0 {
            return Err(format!(
                "it has version {major}.{minor} of the interface, and fx knows {}.x: get another plugin, or another fx",
                sys::API_VERSION.0
            ));
        }
        // What every run needs; the newest entry that fx cannot do without comes last.
        let needed =
            offset_of!(sys::PJRT_Api, PJRT_Executable_OutputDimensions) + size_of::<usize>();
        if size < needed {
            return Err(format!(
                "it has version {major}.{minor} of the interface, whose table of {size} bytes lacks entries that fx calls: get a newer plugin"
            ));
        }
        let mut own = MaybeUninit::<sys::PJRT_Api>::zeroed();
        let known = size.min(size_of::<sys::PJRT_Api>());
        // SAFETY: so many bytes are there and fit; zero is a null entry.
        let table = unsafe {
            std::ptr::copy_nonoverlapping(table.cast::<u8>(), own.as_mut_ptr().cast(), known);
            own.assume_init()
        };
        let about = std::fs::metadata(&path);
        let about = about.map_err(|error| error.to_string())?;
        Ok(Loaded {
            stamp: format!("{} {:?}", about.len(), about.modified().ok()),
            path,
            table,
            version: (major, minor),
        })
    }
}

/// What a plugin says, without the operations that a compiler shows with an error: a program may have megabytes of them.
fn shortened(said: &str) -> String {
    const MOST: usize = 2000;
    let is_shown = |line: &&str| !line.contains("see current operation");
    let mut short = String::new();
    for line in said.lines().take_while(is_shown) {
        let room = MOST.saturating_sub(short.len());
        short.extend(line.chars().take(room));
        short.push('\n');
        if line.len() > room {
            short.push_str("[..]\n");
            break;
        }
    }
    short.truncate(short.trim_end().len());
    short
}

/// Text of a plugin, which may lack an end.
///
/// # Safety
/// There are so many bytes at the pointer, if it is not null.
pub(crate) unsafe fn text(at: *const std::ffi::c_char, size: usize) -> String {
    // SAFETY: as the caller says.
    let bytes = unsafe { slice(at.cast::<u8>(), size) };
    String::from_utf8_lossy(bytes).into_owned()
}

/// Values of a plugin; none at a null pointer.
///
/// # Safety
/// There are so many values at the pointer, if it is not null, and they stay as long as the slice.
pub(crate) unsafe fn slice<'s, T>(at: *const T, len: usize) -> &'s [T] {
    match at.is_null() || len == 0 {
        true => &[],
        // SAFETY: as the caller says.
        false => unsafe { std::slice::from_raw_parts(at, len) },
    }
}
