//! The thread's device: where tensors are made that inherit none.
//!
//! Invariant: the scope of [`on`] is left when its body ends, also on unwinding.

use std::cell::RefCell;

use candle_core::Device;

thread_local! {
    static CURRENT: RefCell<Device> = const { RefCell::new(Device::Cpu) };
}

/// Runs `body`, in which new tensors are made on a device.
pub fn on<R>(device: &Device, body: impl FnOnce() -> R) -> R {
    struct Back(Device);
    impl Drop for Back {
        fn drop(&mut self) {
            CURRENT.with_borrow_mut(|current| std::mem::swap(current, &mut self.0));
        }
    }
    let _back = Back(CURRENT.replace(device.clone()));
    body()
}

/// The thread's device for tensors that inherit none.
pub fn current() -> Device {
    CURRENT.with_borrow(Device::clone)
}
