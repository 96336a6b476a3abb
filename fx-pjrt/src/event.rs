//! `Event`: something that a device will have done.
//!
//! Invariant: a plugin's event is freed once.

use fx_nn::Result;

use crate::plugin::{Plugin, call};
use crate::sys::{self, Structure};

/// Something that a device will have done: a copy, a run.
#[derive(Debug)]
pub(crate) struct Event {
    plugin: Plugin,
    event: *mut sys::PJRT_Event,
}

// SAFETY: a plugin's events may be used by any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// Takes over an event that a plugin gave; null is one that has happened.
    pub fn of(plugin: Plugin, event: *mut sys::PJRT_Event) -> Self {
        Event { plugin, event }
    }

    /// Waits until it has happened.
    ///
    /// # Errors
    /// Returns the error of what was to be done.
    pub fn wait(&self) -> Result<()> {
        if self.event.is_null() {
            return Ok(());
        }
        let mut args = sys::PJRT_Event_Await_Args::sized();
        args.event = self.event;
        // SAFETY: the event is alive.
        unsafe { call!(self.plugin, PJRT_Event_Await, args) }
    }

    /// Keeps a value until the event has happened, without waiting for it.
    pub fn keep<T: Send + 'static>(self, value: T) {
        if self.event.is_null() {
            return;
        }
        unsafe extern "C" fn happened<T>(error: *mut sys::PJRT_Error, kept: *mut std::ffi::c_void) {
            // SAFETY: it is the box that was given, and the function is called once.
            let (plugin, value) = *unsafe { Box::from_raw(kept.cast::<(Plugin, T)>()) };
            // What was to be done says itself that it failed.
            if !error.is_null() {
                drop(plugin.error("PJRT_Event_OnReady", error));
            }
            drop(value);
        }
        let kept = Box::into_raw(Box::new((self.plugin, value)));
        let mut args = sys::PJRT_Event_OnReady_Args::sized();
        args.event = self.event;
        args.callback = Some(happened::<T>);
        args.user_arg = kept.cast();
        // SAFETY: the event is alive, and the function takes the box that it is given.
        // If the plugin cannot say when it has happened, the value is given up: it may be in use for good.
        let _ = unsafe { call!(self.plugin, PJRT_Event_OnReady, args) };
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.event.is_null() {
            return;
        }
        let mut args = sys::PJRT_Event_Destroy_Args::sized();
        args.event = self.event;
        // SAFETY: the event is ours, and is not used after this.
        let _ = unsafe { call!(self.plugin, PJRT_Event_Destroy, args) };
    }
}
