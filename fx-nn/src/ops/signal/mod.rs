//! `torch.signal`: window functions. [`stft`](crate::ops::stft()) and [`istft`](crate::ops::istft()) take windows.

pub mod windows;
