//! The crate by its public interface, on a plugin of the tests: `stub/stub.rs`.

mod behaviour {
    mod backend;
    mod cache;
    mod entries;
    mod find;
    mod lives;
    mod loading;
    mod runs;
    mod stub;
}
