//! Optimal transport in linear time.
