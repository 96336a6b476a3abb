//! `Cache`: compiled programs in a folder of the user's.
//!
//! Invariant: a file is used only for the program, options, plugin, platform, interface and processor that it was made
//! of, and only if its bytes are those that were written.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use fx_nn::{Error, Result};
use sha2::{Digest, Sha256};

use crate::client::Client;

/// The first bytes of a file: what it is, and the version of its layout.
const MAGIC: &[u8; 8] = b"fxpjrt\x00\x01";

/// A folder with compiled programs: a program that was compiled before is read from there. It holds
/// machine code that plugins run: on Unix the folder is made readable by the user alone (0700), and
/// one that others may write is refused.
///
/// ```no_run
/// use fx_pjrt::{Cache, Pjrt};
/// let pjrt = Pjrt::cpu()?.cache(Cache::new("/home/me/.cache/fx-pjrt")?);
/// # Ok::<(), fx_nn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// A folder, which is made if there is none.
    ///
    /// # Errors
    /// Returns an error if it cannot be made, or others than the user may write into it.
    pub fn new(folder: impl AsRef<Path>) -> Result<Self> {
        let folder = folder.as_ref().to_path_buf();
        let failed = |error: std::io::Error| {
            Error::msg(format_args!(
                "{} cannot be a cache of compiled programs: {error}",
                folder.display()
            ))
        };
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&folder).map_err(failed)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt, PermissionsExt};
            let about = fs::metadata(&folder).map_err(failed)?;
            let mode = about.permissions().mode();
            // Whose files this process makes.
            let own = folder.join(format!("owner.{}", std::process::id()));
            let user = fs::File::create(&own).and_then(|file| file.metadata());
            let _ = fs::remove_file(&own);
            let user = user.map_err(failed)?.uid();
            if mode & 0o077 != 0 || about.uid() != user {
                return Err(Error::msg(format_args!(
                    "{} cannot be a cache of compiled programs: others than this user may write it (mode {:o}). Make it your own and `chmod 700`, or name another folder",
                    folder.display(),
                    mode & 0o777
                )));
            }
        }
        Ok(Cache { folder })
    }

    /// The file of a program.
    pub(crate) fn file(&self, client: &Client, text: &str, options: &[u8]) -> PathBuf {
        let plugin = client.plugin();
        let (major, minor) = plugin.api_version();
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        part(text.as_bytes());
        part(options);
        part(plugin.path().as_os_str().as_encoded_bytes());
        part(plugin.stamp().as_bytes());
        part(format!("{major}.{minor}").as_bytes());
        part(client.platform().as_bytes());
        part(client.platform_version().as_bytes());
        for device in client.devices() {
            part(format!("{} {}", device.id(), device.kind()).as_bytes());
        }
        part(processor().as_bytes());
        // What compilers read beside the program.
        for name in ["XLA_FLAGS", "LIBTPU_INIT_ARGS"] {
            part(
                std::env::var_os(name)
                    .unwrap_or_default()
                    .as_encoded_bytes(),
            );
        }
        self.folder.join(format!("{}.pjrt", hex(&hash.finalize())))
    }

    /// The bytes of a file, if they are what was written.
    pub(crate) fn read(file: &Path) -> Option<Vec<u8>> {
        let all = fs::read(file).ok()?;
        let (head, bytes) = all.split_at_checked(MAGIC.len() + 32)?;
        let (magic, sum) = head.split_at(MAGIC.len());
        (magic == MAGIC && sum == Sha256::digest(bytes).as_slice()).then(|| bytes.to_vec())
    }

    /// Writes a file: as a whole, or not at all.
    pub(crate) fn write(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (process, next) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let own = format!("{process}.{next}.part");
        let part = file.with_extension(own);
        let mut out = fs::File::create(&part)?;
        let written = out
            .write_all(MAGIC)
            .and_then(|()| out.write_all(&Sha256::digest(bytes)))
            .and_then(|()| out.write_all(bytes))
            .and_then(|()| fs::rename(&part, file));
        if written.is_err() {
            let _ = fs::remove_file(&part);
        }
        written
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What the processor can do: machine code of one is not run by another.
fn processor() -> String {
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = about
        .lines()
        .find(|line| line.starts_with("flags") || line.starts_with("Features"));
    format!("{} {}", std::env::consts::ARCH, flags.unwrap_or_default())
}
