//! stub for now
