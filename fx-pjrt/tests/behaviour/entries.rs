//! Every entry of a plugin failing, or missing, in turn.

use fx_nn::Result;
use fx_nn::prelude::*;
use fx_pjrt::{Cache, LoadedProgram};

use super::stub::{Stub, folder, program, run};

/// Whether a run does without an entry: what frees objects, and what only a cache or a report asks for.
fn is_optional(entry: &str) -> bool {
    entry.ends_with("_Destroy")
        || [
            "PJRT_Plugin_Attributes",
            "PJRT_Event_OnReady",
            "PJRT_Device_MemoryStats",
            "PJRT_Buffer_ReadyEvent",
            "PJRT_Buffer_UnsafePointer",
            "PJRT_Executable_Serialize",
            "PJRT_Executable_DeserializeAndLoad",
        ]
        .contains(&entry)
}

#[test]
fn every_entry_may_fail() -> Result<()> {
    let entries = Stub::entries();
    assert!(entries.len() > 30, "{entries:?}");
    for entry in &entries {
        for kind in ["fail", "null"] {
            let stub = Stub::new(&format!("{kind}:{entry}"));
            match run(&stub) {
                Ok(result) => {
                    assert!(is_optional(entry), "{kind} {entry}: a run did without it");
                    assert_eq!(result.to_vec()?, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "{entry}");
                }
                Err(error) => {
                    assert!(!is_optional(entry), "{kind} {entry}: {error}");
                    let error = error.to_string();
                    assert!(error.contains(entry.as_str()), "{kind} {entry}: {error}");
                }
            }
            // What cannot be freed stays; everything else is gone.
            if !entry.ends_with("_Destroy") {
                assert_eq!(stub.live(), 0, "{kind} {entry}");
            }
        }
    }
    Ok(())
}

#[test]
fn reports_fail_by_themselves() -> Result<()> {
    for (entry, ask) in [
        ("PJRT_Device_MemoryStats", 0),
        ("PJRT_Plugin_Attributes", 1),
        ("PJRT_Buffer_UnsafePointer", 2),
        ("PJRT_Buffer_ReadyEvent", 3),
    ] {
        let stub = Stub::new(&format!("fail:{entry}"));
        {
            let client = stub.client()?;
            let there = fx_pjrt::DeviceTensor::new(&client, &Tensor::ones(2)?)?;
            let error = match ask {
                0 => client.memory_stats(&client.devices()[0]).map(drop),
                1 => client.plugin().attributes().map(drop),
                2 => there.address().map(drop),
                _ => there.wait(),
            };
            let error = error.expect_err("it fails").to_string();
            assert!(error.contains(entry), "{error}");
        }
        assert_eq!(stub.live(), 0, "{entry}");
    }
    Ok(())
}

#[test]
fn a_plugin_that_cannot_read_a_cached_program_compiles_it() -> Result<()> {
    let (cache, stub) = (Cache::new(folder().join("cache"))?, Stub::new(""));
    {
        let client = stub.client()?;
        assert!(!LoadedProgram::cached(&client, &program()?, &cache)?.was_cached());
        assert!(LoadedProgram::cached(&client, &program()?, &cache)?.was_cached());
        stub.mode("fail:PJRT_Executable_DeserializeAndLoad");
        assert!(!LoadedProgram::cached(&client, &program()?, &cache)?.was_cached());
    }
    assert_eq!(stub.live(), 0);
    Ok(())
}
