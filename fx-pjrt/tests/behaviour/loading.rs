//! Files that are no plugins, or plugins that do not fit.

use fx_pjrt::Plugin;

use super::stub::{Stub, folder, without_entry};

fn refusal(path: impl AsRef<std::path::Path>) -> String {
    Plugin::load(path).expect_err("it is no plugin").to_string()
}

#[test]
fn what_is_no_plugin_is_refused() {
    let missing = refusal(folder().join("nothing.so"));
    assert!(
        missing.contains("nothing.so") && missing.contains("devices.md"),
        "{missing}"
    );
    let directory = refusal(folder());
    assert!(directory.contains("it is no file"), "{directory}");
    let text = folder().join("text.so");
    std::fs::write(&text, "no library").expect("it can be written");
    assert!(
        refusal(&text).contains("text.so cannot be loaded as a PJRT plugin"),
        "{}",
        refusal(&text)
    );
    let other = refusal(without_entry());
    assert!(other.contains("no entry `GetPjrtApi`"), "{other}");
}

#[test]
fn tables_that_do_not_fit_are_refused() {
    for (mode, expected) in [
        ("nothing", "`GetPjrtApi` gives nothing"),
        ("empty", "its table has 8 bytes, and no entry"),
        ("short", "lacks entries that fx calls: get a newer plugin"),
        ("major", "it has version 1."),
    ] {
        let stub = Stub::new(mode);
        let error = refusal(&stub.path);
        assert!(error.contains(expected), "{mode}: {error}");
        assert_eq!(stub.live(), 0, "{mode}");
    }
}

#[test]
fn a_file_is_loaded_once() -> fx_nn::Result<()> {
    let stub = Stub::new("");
    let (a, b) = (stub.plugin()?, stub.plugin()?);
    assert_eq!(a.path().as_os_str().len(), b.path().as_os_str().len());
    assert_eq!(a.to_string(), b.to_string());
    assert!(a.attributes()?.is_empty());
    assert_eq!(a.api_version().0, 0);
    Ok(())
}
