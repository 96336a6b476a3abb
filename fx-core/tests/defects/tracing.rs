//! Defects once met in tracing, each by its number: what broke must stay whole.
