//! Point clouds from files.
