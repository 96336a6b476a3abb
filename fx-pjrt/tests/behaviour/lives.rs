//! Clients, programs and tensors may be dropped in any order, on any thread.

use std::thread;

use fx_nn::Result;
use fx_nn::prelude::*;
use fx_pjrt::{DeviceTensor, LoadedProgram};

use super::stub::{Stub, program};

/// All orders of so many things.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let shorter = orders(count - 1).into_iter();
    let all = shorter.flat_map(|order| {
        (0..count).map(move |at| {
            let mut longer = order.clone();
            longer.insert(at, count - 1);
            longer
        })
    });
    all.collect()
}

#[test]
fn everything_may_be_dropped_in_every_order() -> Result<()> {
    let stub = Stub::new("");
    let x = Tensor::ones((2, 3))?;
    for on_threads in [false, true] {
        for order in orders(4) {
            let client = stub.client()?;
            let loaded = LoadedProgram::new(&client, &program()?)?;
            let inputs = loaded.place([&x, &x])?;
            let results = loaded.run(&inputs.iter().collect::<Vec<_>>())?;
            let mut things: Vec<Option<Box<dyn Send>>> = vec![
                Some(Box::new(client)),
                Some(Box::new(loaded)),
                Some(Box::new(inputs)),
                Some(Box::new(results)),
            ];
            assert!(stub.live_now() > 0);
            for at in order {
                let thing = things[at].take();
                match on_threads {
                    true => thread::spawn(move || drop(thing))
                        .join()
                        .expect("it is dropped"),
                    false => drop(thing),
                }
            }
            assert_eq!(stub.live(), 0);
        }
    }
    Ok(())
}

#[test]
fn threads_share_a_client() -> Result<()> {
    let stub = Stub::new("late");
    {
        let client = stub.client()?;
        let loaded = &LoadedProgram::new(&client, &program()?)?;
        thread::scope(|scope| {
            let run = move |seed: usize| -> Result<()> {
                for at in 0..10 {
                    let x = Tensor::full((2, 3), (seed * 100 + at) as f64, DType::F32)?;
                    let y = loaded.call([&x, &x])?;
                    assert_eq!(y[0].to_vec()?, x.to_vec()?);
                }
                Ok(())
            };
            let threads: Vec<_> = (0..8).map(|seed| scope.spawn(move || run(seed))).collect();
            let results = threads
                .into_iter()
                .map(|thread| thread.join().expect("it runs"));
            results.collect::<Result<()>>()
        })?;
    }
    assert_eq!(stub.live(), 0);
    Ok(())
}

#[test]
fn bytes_that_are_given_up_live_as_long_as_they_are_needed() -> Result<()> {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    struct Owner(Vec<u8>, Arc<AtomicBool>);
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    impl Drop for Owner {
        fn drop(&mut self) {
            self.1.store(true, Ordering::SeqCst);
        }
    }
    let (stub, is_gone) = (Stub::new("late"), Arc::new(AtomicBool::new(false)));
    let client = stub.client()?;
    let owner = Owner(2f32.to_le_bytes().repeat(3), is_gone.clone());
    let there = DeviceTensor::from_bytes(&client, &client.devices()[0], DType::F32, &[3], owner)?;
    // The plugin of the tests says later that it is done.
    assert!(!is_gone.load(Ordering::SeqCst));
    assert_eq!(there.to_tensor()?.to_vec()?, [2.0, 2.0, 2.0]);
    drop((there, client));
    assert_eq!(stub.live(), 0);
    for _ in 0..200 {
        if is_gone.load(Ordering::SeqCst) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(is_gone.load(Ordering::SeqCst));
    let client = stub.client()?;
    let wrong = DeviceTensor::from_bytes(
        &client,
        &client.devices()[0],
        DType::F32,
        &[3],
        vec![0u8; 11],
    );
    assert!(wrong.is_err());
    Ok(())
}

#[test]
fn bytes_are_lent_until_the_tensor_is_dropped() -> Result<()> {
    let stub = Stub::new("lent");
    {
        let client = stub.client()?;
        let device = &client.devices()[0];
        for bytes in [vec![1u8; 12], vec![2u8; 12]] {
            let there = DeviceTensor::from_bytes(&client, device, DType::F32, &[3], bytes)?;
            assert_eq!(there.shape(), [3]);
        }
        // An owner that holds its bytes itself.
        let there = DeviceTensor::from_bytes(&client, device, DType::F32, &[1], [3u8; 4])?;
        assert_eq!(there.dtype(), DType::F32);
    }
    assert_eq!(stub.live(), 0);
    Ok(())
}

#[test]
fn devices_and_tensors_of_another_client_are_refused() -> Result<()> {
    let (stub, other) = (Stub::new(""), Stub::new(""));
    {
        let (client, another) = (stub.client()?, stub.client()?);
        let elsewhere = other.client()?;
        let x = Tensor::ones((2, 3))?;
        let program = LoadedProgram::new(&client, &program()?)?;
        for foreign in [&another, &elsewhere] {
            let there = DeviceTensor::new(foreign, &x)?;
            let error = program
                .run(&[&there, &there])
                .expect_err("it is elsewhere")
                .to_string();
            assert!(
                error.contains("place it with `LoadedProgram::place`"),
                "{error}"
            );
        }
        let device = elsewhere.devices()[0].clone();
        drop(elsewhere);
        for error in [
            client.memory_stats(&device).map(drop),
            DeviceTensor::on(&client, &device, &x).map(drop),
            DeviceTensor::from_bytes(&client, &device, DType::F32, &[1], [0u8; 4]).map(drop),
        ] {
            let error = error.expect_err("it is another's").to_string();
            assert!(error.contains("is a device of another client"), "{error}");
        }
        let sizes = [1usize << 32, 1 << 32];
        let own = &client.devices()[0];
        let error = DeviceTensor::from_bytes(&client, own, DType::F32, &sizes, Vec::new());
        assert!(
            error
                .expect_err("it is too large")
                .to_string()
                .contains("more than there can be")
        );
    }
    assert_eq!((stub.live(), other.live()), (0, 0));
    Ok(())
}
