//! One program of tests: graphs, traces, runs, passes and pictures. Each file here is a module of it.

mod control;
mod defects;
mod dims;
mod draw;
mod edit;
mod graph;
mod modes;
mod parse;
mod partition;
mod patterns;
mod pipeline;
mod run;
mod split;
mod support;
mod trace;
