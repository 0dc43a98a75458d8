//! A platform's own part over what was made for it.

use super::super::json::Json;

/// `over` into `base`: objects member by member, everything else in place of what stood there; `null`
/// takes a member away (RFC 7396).
pub fn merge(base: Json, over: &Json) -> Json {
    let (Json::Object(mut members), Json::Object(overs)) = (base, over) else { return over.clone() };
    for (name, value) in overs {
        let at = members.iter().position(|(known, _)| known == name);
        match (at, value) {
            (Some(at), Json::Null) => {
                members.remove(at);
            }
            (None, Json::Null) => {}
            (Some(at), value) => {
                let known = std::mem::replace(&mut members[at].1, Json::Null);
                members[at].1 = merge(known, value);
            }
            (None, value) => members.push((name.clone(), merge(Json::Object(Vec::new()), value))),
        }
    }
    Json::Object(members)
}
