//! Ten thousand things that come due in one millisecond, on several nodes, while more are added and others taken back.

mod field;
mod storm;
