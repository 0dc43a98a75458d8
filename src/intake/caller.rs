//! Who asks. Everything comes from the caller's key alone; nothing in a request can widen it.

use crate::ports::admin::ApiKey;
use crate::ports::deliveries::Owner;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub tenant: String,
    pub environment: String,
    /// Idempotency keys are scoped by it.
    pub namespace: String,
    /// The key's public name, for timelines.
    pub key: String,
}

impl Caller {
    #[must_use]
    pub fn of(key: &ApiKey) -> Self {
        Self {
            tenant: key.tenant.clone(),
            environment: key.environment.clone(),
            namespace: key.namespace.clone(),
            key: key.id.clone(),
        }
    }

    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner { tenant: self.tenant.clone(), environment: self.environment.clone() }
    }
}
