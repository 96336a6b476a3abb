//! GGUF files that differ from a recorded one in some keys.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use candle_core::quantized::gguf_file::{Content, Value, write};

/// A recorded file.
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

/// A file in a folder of its own, which goes away with it.
pub struct Temporary(pub PathBuf);

impl Temporary {
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = format!("fx_lm_{}_{number}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).expect("a temporary folder can be made");
        Temporary(folder.join(name))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(folder) = self.0.parent() {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// A copy of a recorded file with other values; `None` leaves a key out.
pub fn changed(name: &str, values: &[(&str, Option<Value>)]) -> Temporary {
    let mut file = fs::File::open(data(name)).expect("the file is recorded");
    let mut content = Content::read(&mut file).expect("the file is a GGUF file");
    for (key, value) in values {
        match value {
            Some(value) => content.metadata.insert(key.to_string(), value.clone()),
            None => content.metadata.remove(*key),
        };
    }
    let temporary = Temporary::new(name);
    let mut out = fs::File::create(&temporary.0).expect("a file can be made");
    let metadata = content.metadata.iter();
    let metadata: Vec<_> = metadata.map(|(key, value)| (key.as_str(), value)).collect();
    write(&mut out, &metadata, &[]).expect("the file can be written");
    temporary
}

/// The list under a key of a recorded file.
pub fn list(name: &str, key: &str) -> Vec<Value> {
    let mut file = fs::File::open(data(name)).expect("the file is recorded");
    let content = Content::read(&mut file).expect("the file is a GGUF file");
    content.metadata[key].to_vec().expect("a list").clone()
}
