//! What is written out for Belfry's own filters: a wrong word is found when the file is read, and not by the first
//! customer whose message takes that branch.

use std::collections::BTreeMap;

use minijinja::machinery::Span;
use minijinja::machinery::ast::{CallArg, Expr};
use minijinja::value::Value;

use super::Fault;
use super::kinds::constant as literal;
use crate::content::regional::{self, Wanted};
use crate::ports::near::near_match;

/// Where a filter stands, and what it is put to, if that is written out.
#[derive(Clone, Copy)]
pub(super) struct Called<'a> {
    pub filter: &'a str,
    pub subject: Option<&'a Value>,
    pub span: Span,
}

/// What is wrong with the arguments that are written out, and with their number.
pub(super) fn wrong(called: Called<'_>, args: &[CallArg<'_>]) -> Option<Fault> {
    let Called { filter, subject, span } = called;
    let told = |what: String| Some(Fault::at(span, what));
    let wanted = Wanted::of(filter)?;
    if let Some(what) = subject.and_then(|subject| wanted.unfit(subject)) {
        return told(what.to_owned());
    }
    let by_place: Vec<&Expr<'_>> =
        args.iter().filter_map(|one| if let CallArg::Pos(it) = one { Some(it) } else { None }).collect();
    for one in args {
        let CallArg::Kwarg(name, value) = one else { continue };
        match (wanted, *name) {
            (Wanted::Moment, "zone") => {
                if let Some(what) = literal(value).and_then(wrong_zone) {
                    return told(what);
                }
            }
            _ => return told(no_such(filter, wanted, name)),
        }
    }
    let first = by_place.first().and_then(|one| literal(one));
    match wanted {
        Wanted::Moment if by_place.len() > 1 => {
            told(format!("`{filter}` takes one style; a zone is named: `zone=\"Europe/Stockholm\"`"))
        }
        Wanted::Moment => first.and_then(wrong_style).and_then(told),
        Wanted::Number if by_place.len() > 1 => told(format!("`{filter}` takes one number of digits")),
        Wanted::Number => {
            first.filter(|places| !regional::fits_places(places)).and_then(|_| told(regional::PLACES.into()))
        }
        Wanted::Nothing if !by_place.is_empty() => told(format!("`{filter}` takes nothing")),
        Wanted::Nothing => None,
    }
}

fn no_such(filter: &str, wanted: Wanted, name: &str) -> String {
    let right = match wanted {
        Wanted::Moment if near_match(name, ["zone"]).is_some() => "did you mean `zone=`?".to_owned(),
        Wanted::Moment => format!("say `{filter}(\"long\")`"),
        Wanted::Number => format!("say `{filter}(2)`"),
        Wanted::Nothing => "it takes nothing".to_owned(),
    };
    format!("`{filter}` takes no `{name}=`; {right}")
}

fn wrong_style(style: &Value) -> Option<String> {
    let all = regional::STYLES;
    // `date(none)` is none said.
    let Some(word) = style.as_str() else { return (!style.is_none()).then(|| regional::NO_STYLE.to_owned()) };
    if all.contains(&word) {
        return None;
    }
    Some(match near_match(word, all) {
        Some(near) => format!("\"{word}\" is no style; did you mean \"{near}\"?"),
        None => format!("\"{word}\" is no style; {}", regional::NO_STYLE),
    })
}

fn wrong_zone(zone: &Value) -> Option<String> {
    let Some(name) = zone.as_str() else { return (!zone.is_none()).then(|| "a zone is a text".to_owned()) };
    if regional::is_zone(name) {
        return None;
    }
    let known: BTreeMap<String, String> = regional::zones().map(|zone| (zone.to_lowercase(), zone)).collect();
    let near = near_match(name, known.keys().map(String::as_str)).and_then(|near| known.get(near));
    let right = match near {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => "a zone is named as Europe/Stockholm is".to_owned(),
    };
    Some(format!("there is no time zone \"{name}\"; {right}"))
}
