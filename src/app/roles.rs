//! What a node does of the whole: several nodes on one Redis may share it out.

use std::fmt;
use std::str::FromStr;

use super::StartOptions;
use crate::config::{Config, StoreKind};

/// One part of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Answers the API and the pages.
    Api,
    /// Claims what is due and calls the providers.
    Worker,
    /// Takes over what dead workers left, closes receipt windows, purges, measures.
    Scheduler,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Api, Self::Worker, Self::Scheduler];

    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Worker => "worker",
            Self::Scheduler => "scheduler",
        }
    }
}

/// The roles of one node: never none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Roles([bool; 3]);

impl Roles {
    pub const ALL: Self = Self([true; 3]);

    #[must_use]
    pub const fn has(self, role: Role) -> bool {
        self.0[role as usize]
    }

    /// The one node of a store that only one node can have has to have them all.
    #[must_use]
    pub fn are_all(self) -> bool {
        self == Self::ALL
    }

    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        Role::ALL.into_iter().filter(|role| self.has(*role)).map(Role::name).collect()
    }
}

impl Default for Roles {
    fn default() -> Self {
        Self::ALL
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.names().join(","))
    }
}

impl fmt::Debug for Roles {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Roles({self})")
    }
}

/// The text names no role, or one that there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no role; there are api, worker and scheduler, as in --roles api,worker")]
pub struct NoRole(String);

impl FromStr for Roles {
    type Err = NoRole;

    fn from_str(text: &str) -> Result<Self, NoRole> {
        let mut roles = Self([false; 3]);
        for word in text.split(',').map(str::trim) {
            let role = Role::ALL.into_iter().find(|role| role.name() == word);
            roles.0[role.ok_or_else(|| NoRole(word.to_owned()))? as usize] = true;
        }
        Ok(roles)
    }
}

/// A store that only one node can have needs a node that does everything.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "--roles: with SQLite, and with --ephemeral, one node has the store to itself and has to do everything: leave \
     --roles out, or share the work out over a Redis (store.kind = \"redis\")"
)]
pub struct AllRoles;

/// What a start may do.
///
/// # Errors
/// [`AllRoles`], where it would leave something undone for good.
pub(super) fn allowed(config: &Config, options: StartOptions) -> Result<Roles, AllRoles> {
    let alone = options.ephemeral || config.store.kind == StoreKind::Sqlite;
    if options.roles.are_all() || !alone { Ok(options.roles) } else { Err(AllRoles) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_read_in_any_order_and_never_none() {
        let read = |text: &str| text.parse::<Roles>().map(|roles| roles.to_string());
        assert_eq!(read("worker, api"), Ok("api,worker".to_owned()));
        assert_eq!(read("api,worker,scheduler,api"), Ok(Roles::ALL.to_string()));
        for bad in ["", "api,", "all", "workers", "API"] {
            let problem = read(bad).unwrap_err().to_string();
            assert!(problem.contains("there are api, worker and scheduler"), "{problem}");
        }
    }
}
