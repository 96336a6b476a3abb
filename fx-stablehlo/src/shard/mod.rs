//! Sharding: which dims of a graph's values are split over which axes of a mesh of devices.
