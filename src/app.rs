//! The composition: the only place that names concrete stores and channels.
