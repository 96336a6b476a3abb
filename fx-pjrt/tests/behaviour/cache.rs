//! The cache of compiled programs.

use std::fs;

use fx_nn::Result;
use fx_nn::prelude::*;
use fx_pjrt::{Cache, LoadedProgram};
use fx_stablehlo::{Export, Program};

use super::stub::{Stub, folder};

/// A program without weights, whose key is the same each time.
fn program(size: usize) -> Result<Program> {
    let gm = symbolic_trace(traced!(|x: &Tensor| x.relu()))?;
    Program::of(&gm, &Export::example(&Tensor::ones(size)?))
}

#[test]
fn a_program_is_kept_by_what_it_was_made_of() -> Result<()> {
    let (place, stub) = (folder().join("cache"), Stub::new(""));
    let cache = Cache::new(&place)?;
    {
        let client = stub.client()?;
        assert!(!LoadedProgram::cached(&client, &program(3)?, &cache)?.was_cached());
        assert!(!LoadedProgram::cached(&client, &program(4)?, &cache)?.was_cached());
        let kept = LoadedProgram::cached(&client, &program(3)?, &cache)?;
        assert!(kept.was_cached());
        let x = Tensor::from_vec(vec![0f32, 1.0, 2.0], 3)?;
        assert_eq!(kept.call([&x])?[0].to_vec()?, [0.0, 1.0, 2.0]);
        // Another plugin does not read it.
        let other = Stub::new("");
        assert!(!LoadedProgram::cached(&other.client()?, &program(3)?, &cache)?.was_cached());
    }
    assert_eq!(stub.live(), 0);
    Ok(())
}

#[test]
fn a_bad_file_is_compiled_again() -> Result<()> {
    let (place, stub) = (folder().join("cache"), Stub::new(""));
    let cache = Cache::new(&place)?;
    let client = stub.client()?;
    LoadedProgram::cached(&client, &program(3)?, &cache)?;
    let file = fs::read_dir(&place)
        .expect("it is there")
        .next()
        .expect("it has a file");
    let file = file.expect("it can be read").path();
    let whole = fs::read(&file).expect("it can be read");
    let mut flipped = whole.clone();
    *flipped.last_mut().expect("it is not empty") ^= 1;
    for bad in [
        &b""[..],
        &whole[..20],
        &whole[..whole.len() - 1],
        &flipped,
        b"something else",
    ] {
        fs::write(&file, bad).expect("it can be written");
        assert!(!LoadedProgram::cached(&client, &program(3)?, &cache)?.was_cached());
        assert_eq!(fs::read(&file).expect("it is there"), whole);
        assert!(LoadedProgram::cached(&client, &program(3)?, &cache)?.was_cached());
    }
    Ok(())
}

#[test]
fn a_plugin_without_serialization_compiles_each_time() -> Result<()> {
    let (place, stub) = (folder().join("cache"), Stub::new("no serialization"));
    let cache = Cache::new(&place)?;
    let client = stub.client()?;
    for _ in 0..2 {
        let loaded = LoadedProgram::cached(&client, &program(3)?, &cache)?;
        assert!(!loaded.was_cached());
        let why = loaded.cache_error().expect("it is not kept");
        assert!(why.contains("it is not written"), "{why}");
    }
    assert_eq!(fs::read_dir(&place).expect("it is there").count(), 0);
    Ok(())
}

#[cfg(unix)]
#[test]
fn a_folder_of_others_is_refused() -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let place = folder().join("cache");
    Cache::new(&place)?;
    let mode = |place| {
        fs::metadata(place)
            .expect("it is there")
            .permissions()
            .mode()
    };
    assert_eq!(mode(&place) & 0o777, 0o700);
    fs::set_permissions(&place, fs::Permissions::from_mode(0o770)).expect("it is ours");
    let error = Cache::new(&place)
        .expect_err("others may write it")
        .to_string();
    assert!(error.contains("chmod 700"), "{error}");
    Ok(())
}
