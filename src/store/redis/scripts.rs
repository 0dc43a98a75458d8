//! All scripts, put together from their files.

use super::script::Script;

const COMMON: &str = include_str!("lua/common.lua");
const INDEX: &str = include_str!("lua/index.lua");
const RECORD: &str = include_str!("lua/record.lua");
const PUT: &str = include_str!("lua/put.lua");

macro_rules! scripts {
    ($($name:ident: $($part:ident)*;)+) => {
        /// One per verb.
        pub struct Scripts { $(pub $name: Script),+ }

        impl Scripts {
            #[must_use]
            pub fn new() -> Self {
                Self {
                    $($name: Script::new(
                        stringify!($name),
                        &[$($part,)* include_str!(concat!("lua/", stringify!($name), ".lua"))],
                    )),+
                }
            }
        }

        impl Default for Scripts {
            fn default() -> Self {
                Self::new()
            }
        }
    };
}

scripts! {
    accept: COMMON INDEX RECORD;
    claim: COMMON INDEX;
    renew: COMMON INDEX;
    spend: COMMON INDEX;
    settle: COMMON INDEX RECORD PUT;
    apply: COMMON INDEX RECORD PUT;
    reclaim: COMMON INDEX RECORD PUT;
    held: COMMON ;
    load: COMMON ;
    read: COMMON RECORD;
    remembered: COMMON RECORD;
    receipts: COMMON ;
    find: COMMON RECORD;
    purge: COMMON INDEX RECORD;
    depths: COMMON ;
    probe: COMMON ;
    mend: COMMON INDEX RECORD PUT;
    mended: COMMON;
    look: COMMON;
    raise: COMMON INDEX;
    newest: COMMON ;
    hold: COMMON INDEX;
    standing: COMMON;
    held_back: COMMON;
    admin: ;
    present: ;
    outbox: ;
}
