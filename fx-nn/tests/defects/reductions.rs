//! Defects once met in reductions, each by its number: what broke must stay whole.
