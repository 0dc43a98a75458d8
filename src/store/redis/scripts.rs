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
                        &[COMMON, $($part,)* include_str!(concat!("lua/", stringify!($name), ".lua"))],
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
    accept: INDEX RECORD;
    claim: INDEX;
    renew: INDEX;
    spend: INDEX;
    settle: INDEX RECORD PUT;
    apply: INDEX RECORD PUT;
    reclaim: INDEX RECORD PUT;
    held: ;
    load: ;
    read: RECORD;
    remembered: RECORD;
    receipts: ;
    find: RECORD;
    purge: INDEX RECORD;
    depths: ;
    probe: ;
    raise: INDEX;
    newest: ;
}
