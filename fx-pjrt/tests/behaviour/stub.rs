//! The plugin of the tests, built once, and a copy of it for each test.

use std::ffi::{CStr, CString, c_char};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use fx_nn::prelude::*;
use fx_pjrt::{Client, ClientOptions, LoadedProgram, Plugin};
use fx_stablehlo::{Export, Program};

/// A folder that no other test has. Those of processes that have ended are removed.
pub fn folder() -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pjrt");
    let next = NEXT.fetch_add(1, Ordering::SeqCst);
    if next == 0 {
        for old in all.read_dir().into_iter().flatten().flatten() {
            let process = Path::new("/proc").join(old.file_name());
            if !process.exists() {
                let _ = std::fs::remove_dir_all(old.path());
            }
        }
    }
    let folder = all
        .join(std::process::id().to_string())
        .join(next.to_string());
    std::fs::create_dir_all(&folder).expect("the folder of the tests can be written");
    folder
}

/// The library, built by rustc; `has_entry` says whether it has `GetPjrtApi`.
pub fn library(has_entry: bool) -> &'static Path {
    static BUILT: [OnceLock<PathBuf>; 2] = [OnceLock::new(), OnceLock::new()];
    BUILT[usize::from(has_entry)].get_or_init(|| {
        let out = folder().join("stub.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stub/stub.rs");
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
        rustc.args([
            "--edition",
            "2024",
            "--crate-type",
            "cdylib",
            "-C",
            "strip=symbols",
        ]);
        if !has_entry {
            rustc.args(["--cfg", "no_entry", "-A", "dead_code"]);
        }
        if std::env::var_os("FX_STUB_ASAN").is_some() {
            rustc.args(["-Z", "sanitizer=address"]);
        }
        let done = rustc.arg("-o").arg(&out).arg(source).status();
        assert!(
            done.expect("rustc runs").success(),
            "the plugin of the tests is built"
        );
        out
    })
}

/// A copy of the plugin, which counts what is alive.
pub struct Stub {
    library: libloading::Library,
    pub path: PathBuf,
}

impl Stub {
    /// A copy in which this goes wrong.
    pub fn new(mode: &str) -> Self {
        let path = folder().join("plugin.so");
        std::fs::copy(library(true), &path).expect("the plugin can be copied");
        // SAFETY: it is the plugin of the tests.
        let library = unsafe { libloading::Library::new(&path) }.expect("the plugin is a library");
        let stub = Stub { library, path };
        stub.mode(mode);
        stub
    }

    /// Has this go wrong from now on.
    pub fn mode(&self, mode: &str) {
        let mode = CString::new(mode).expect("modes have no zeros");
        // SAFETY: the function has this type.
        unsafe {
            let set = self
                .library
                .get::<unsafe extern "C" fn(*const c_char)>(b"stub_mode");
            set.expect("the plugin has it")(mode.as_ptr());
        }
    }

    /// How many objects are alive now.
    pub fn live_now(&self) -> i64 {
        // SAFETY: the function has this type.
        let live = unsafe { self.library.get::<extern "C" fn() -> i64>(b"stub_live") };
        live.expect("the plugin has it")()
    }

    /// How many objects are alive at the end. Those that other threads free are waited for.
    pub fn live(&self) -> i64 {
        for _ in 0..200 {
            if self.live_now() == 0 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        self.live_now()
    }

    pub fn plugin(&self) -> Result<Plugin> {
        Plugin::load(&self.path)
    }

    pub fn client(&self) -> Result<Client> {
        Client::new(
            self.plugin()?,
            &ClientOptions::new().int("devices", 1).text("name", "stub"),
        )
    }

    /// The entries that can fail.
    pub fn entries() -> Vec<String> {
        let stub = Stub::new("");
        // SAFETY: the function has this type, and the text stays.
        let names = unsafe {
            let names = stub
                .library
                .get::<extern "C" fn() -> *const c_char>(b"stub_entries");
            CStr::from_ptr(names.expect("the plugin has it")())
        };
        let names = names.to_str().expect("names are ASCII");
        names.lines().map(str::to_string).collect()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        // The system keeps what is loaded; the file is not needed any more.
        if let Some(folder) = self.path.parent() {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// What a library of another kind is: no plugin.
pub fn without_entry() -> PathBuf {
    library(false).to_path_buf()
}

/// A program of two inputs, one donated, and a weight: the plugin gives the first input as its result.
pub fn program() -> Result<Program> {
    let mut layer = nn::Linear::new(3, 3)?;
    nn::set_requires_grad(&mut layer, false)?;
    let layer = layer;
    let gm = symbolic_trace(traced!(
        |cache: &Tensor, x: &Tensor| layer.forward(&(cache + x)?)
    ))?;
    let x = Tensor::ones((2, 3))?;
    Program::of(&gm, &Export::example((&x, &x)).donate(["cache"]))
}

/// A run from nothing: the result of the program.
pub fn run(stub: &Stub) -> Result<Tensor> {
    let client = stub.client()?;
    let program = LoadedProgram::new(&client, &program()?)?;
    let x = Tensor::from_vec((0..6u8).map(f32::from).collect(), (2, 3))?;
    let inputs = program.place([&x, &x])?;
    let inputs: Vec<_> = inputs.iter().collect();
    let results = program.run(&inputs)?;
    results[0].to_tensor()
}
