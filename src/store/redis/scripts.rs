//! All scripts, put together from their files.

use super::script::Script;

const COMMON: &str = include_str!("lua/common.lua");
const INDEX: &str = include_str!("lua/index.lua");
const ATTACH: &str = include_str!("lua/attach.lua");
const RECORD: &str = include_str!("lua/record.lua");
const PUT: &str = include_str!("lua/put.lua");

macro_rules! scripts {
    ($($name:ident $kind:ident $(again $again:literal)?: $($part:ident)*;)+) => {
        /// One per verb; `finishing` are those that also write where memory is full, and `again` names the
        /// argument that says that its first answer was lost.
        pub struct Scripts { $(pub $name: Script),+ }

        impl Scripts {
            #[must_use]
            pub fn new() -> Self {
                Self {
                    $($name: Script::$kind(
                        stringify!($name),
                        &[$($part,)* include_str!(concat!("lua/", stringify!($name), ".lua"))],
                    )$(.told_again($again))?),+
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
    accept new again 6: COMMON INDEX RECORD ATTACH;
    claim finishing again 6: COMMON INDEX;
    renew finishing: COMMON INDEX;
    spend finishing: COMMON INDEX;
    settle finishing: COMMON INDEX RECORD PUT;
    apply finishing: COMMON INDEX RECORD PUT;
    reclaim finishing: COMMON INDEX RECORD PUT;
    held new: COMMON ;
    load new: COMMON ;
    read new: COMMON RECORD;
    attached new: COMMON;
    remembered new: COMMON RECORD;
    receipts new: COMMON ;
    find new: COMMON RECORD;
    purge finishing: COMMON INDEX RECORD ATTACH;
    depths new: COMMON ;
    probe new: COMMON ;
    mend finishing: COMMON INDEX RECORD PUT;
    mended finishing: COMMON;
    look new: COMMON;
    raise new: COMMON INDEX;
    newest new: COMMON ;
    hold finishing: COMMON INDEX;
    standing new: COMMON;
    held_back new: COMMON;
    admin new: ;
    present new: ;
    share finishing: ;
    take finishing: ;
    taken finishing: ;
    outbox new again 2: ;
    recipient new: ;
    token new again 2: ;
    dead new: ;
    suppression new: ;
    preferences new: ;
    schedule new: ;
    broadcast new: ;
    kept new: ;
    gather new: ;
}
