//! The provider that keeps messages for the developer to look at, and misbehaves on request.
