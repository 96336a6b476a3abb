//! Steps of optimizers in place: a parameter and its state, changed by a gradient.
//!
//! Invariant: each element is changed by its own numbers alone, so that any number of threads gives the same bits.

use rayon::prelude::*;

use crate::error::{SizeError, check};

/// How many elements a thread takes at a time: four streams of them fit into a cache.
const CHUNK: usize = 16 * 1024;

/// A step of Adam or AdamW.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adam {
    /// What multiplies the gradient.
    pub scale: f32,
    /// How much of the parameter is added to the gradient.
    pub decay: f32,
    /// What multiplies the parameter.
    pub shrink: f32,
    /// How much of the average of gradients is kept.
    pub beta1: f32,
    /// How much of the average of their squares is kept.
    pub beta2: f32,
    /// What multiplies the change: the learning rate over what the average lacks at first.
    pub rate: f32,
    /// The root of what the average of squares lacks at first.
    pub root: f32,
    /// The number added to the divisor.
    pub eps: f32,
}

impl Adam {
    /// Changes a parameter and both averages.
    ///
    /// # Errors
    /// Where the slices differ in length.
    ///
    /// ```
    /// use fx_kernels::update::Adam;
    /// let how = Adam { scale: 1.0, decay: 0.0, shrink: 1.0, beta1: 0.5, beta2: 0.5, rate: 0.2, root: 1.0, eps: 0.0 };
    /// let (mut w, mut m, mut v) = ([1.0], [0.0], [0.0]);
    /// how.run(&[2.0], &mut w, &mut m, &mut v)?;
    /// assert_eq!((m, v), ([1.0], [2.0]));
    /// assert!((w[0] - (1.0 - 0.2 / 2f32.sqrt())).abs() < 1e-6);
    /// # Ok::<(), fx_kernels::SizeError>(())
    /// ```
    pub fn run(
        &self,
        gradient: &[f32],
        parameter: &mut [f32],
        average: &mut [f32],
        square: &mut [f32],
    ) -> Result<(), SizeError> {
        let len = parameter.len();
        for other in [gradient.len(), average.len(), square.len()] {
            check("a state of Adam", len, other)?;
        }
        let how = *self;
        let (kept1, kept2) = (1.0 - how.beta1, 1.0 - how.beta2);
        let each = move |((gradient, parameter), (average, square)): Parts<'_>| {
            for (((g, w), m), v) in gradient.iter().zip(parameter).zip(average).zip(square) {
                let g = g * how.scale + *w * how.decay;
                *m = *m * how.beta1 + g * kept1;
                *v = *v * how.beta2 + g * g * kept2;
                *w = *w * how.shrink - how.rate * *m / (v.sqrt() / how.root + how.eps);
            }
        };
        let chunks = gradient
            .par_chunks(CHUNK)
            .zip(parameter.par_chunks_mut(CHUNK));
        let states = average
            .par_chunks_mut(CHUNK)
            .zip(square.par_chunks_mut(CHUNK));
        chunks.zip(states).for_each(each);
        Ok(())
    }
}

/// A chunk of the gradient, the parameter, the average and the squares.
type Parts<'a> = ((&'a [f32], &'a mut [f32]), (&'a mut [f32], &'a mut [f32]));

/// A step of stochastic gradient descent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sgd {
    /// What multiplies the gradient.
    pub scale: f32,
    /// How much of the parameter is added to the gradient.
    pub decay: f32,
    /// The learning rate.
    pub rate: f32,
    /// How much of the buffer is kept.
    pub momentum: f32,
    /// How much of the gradient goes into the buffer.
    pub share: f32,
    /// Whether the momentum is applied ahead.
    pub nesterov: bool,
}

impl Sgd {
    /// Changes a parameter, and the buffer of its momentum if there is one.
    ///
    /// # Errors
    /// Where the slices differ in length.
    pub fn run(
        &self,
        gradient: &[f32],
        parameter: &mut [f32],
        buffer: Option<&mut [f32]>,
    ) -> Result<(), SizeError> {
        check("a gradient", parameter.len(), gradient.len())?;
        let how = *self;
        let chunks = gradient
            .par_chunks(CHUNK)
            .zip(parameter.par_chunks_mut(CHUNK));
        match buffer {
            None => chunks.for_each(|(gradient, parameter)| {
                for (g, w) in gradient.iter().zip(parameter) {
                    *w -= (g * how.scale + *w * how.decay) * how.rate;
                }
            }),
            Some(buffer) => {
                check("a buffer of SGD", gradient.len(), buffer.len())?;
                chunks.zip(buffer.par_chunks_mut(CHUNK)).for_each(
                    |((gradient, parameter), buffer)| {
                        for ((g, w), b) in gradient.iter().zip(parameter).zip(buffer) {
                            let g = g * how.scale + *w * how.decay;
                            *b = *b * how.momentum + g * how.share;
                            let change = if how.nesterov {
                                g + *b * how.momentum
                            } else {
                                *b
                            };
                            *w -= change * how.rate;
                        }
                    },
                );
            }
        }
        Ok(())
    }
}
