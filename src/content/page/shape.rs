//! Whether a file of MJML has the shape of one, and what its reader's errors mean to an author. The reader says less of
//! it, and of some nothing.

use std::ops::Range;

use mrml::prelude::parser::Error;

use super::markup::{Piece, Start, VOID, pieces};
use super::tags::{Kind, Masked};

/// Elements within elements: MJML's reader goes a step deeper with each.
const DEEPEST: usize = 100;
/// Its elements, as mrml reads them; any other `mj-…` would go out as it is.
const ELEMENTS: &str = " mj-accordion mj-accordion-element mj-accordion-text mj-accordion-title mj-all mj-attributes \
    mj-body mj-breakpoint mj-button mj-carousel mj-carousel-image mj-class mj-column mj-divider mj-font mj-group \
    mj-head mj-hero mj-image mj-navbar mj-navbar-link mj-preview mj-raw mj-section mj-social mj-social-element \
    mj-spacer mj-style mj-table mj-text mj-title mj-wrapper ";
/// Of these, those that hold elements of MJML alone: what else stands there would land between the rows of a table.
const FRAMES: [&str; 6] = ["mj-body", "mj-column", "mj-group", "mj-hero", "mj-section", "mj-wrapper"];
const ONE_ELEMENT: &str = "a file of MJML is one <mjml> element";

/// What is out of shape, with its place in the masked text.
///
/// # Errors
/// The first that is.
pub fn shape(masked: &Masked) -> Result<(), (usize, String)> {
    let text = &masked.text;
    let mut open: Vec<(String, usize)> = Vec::new();
    let mut from = 0;
    if !text.trim_start().starts_with('<') {
        return Err((0, ONE_ELEMENT.to_owned()));
    }
    for piece in pieces(text) {
        let (Piece::Start(Start { range, .. }) | Piece::End { range, .. } | Piece::Inside { range, .. }) = &piece;
        let frame = open.last().map(|(name, _)| name.as_str()).filter(|name| FRAMES.contains(name));
        if let Some((at, frame)) = frame.and_then(|frame| Some((loose(masked, from..range.start)?, frame))) {
            let what = format!("this text stands right in <{frame}>, where no reader sees it; write it in <mj-text>");
            return Err((at, what));
        }
        from = range.end;
        match piece {
            Piece::Start(start) => {
                known(&start, frame, open.is_empty()).map_err(|what| (start.range.start, what))?;
                if !start.closed && !VOID.contains(&start.name.as_str()) {
                    open.push((start.name, start.range.start));
                }
                if open.len() > DEEPEST {
                    return Err((start.range.start, format!("elements lie more than {DEEPEST} deep")));
                }
            }
            Piece::End { range, name } => match open.pop() {
                Some((opened, _)) if opened == name => {}
                Some((opened, at)) => return Err((at, format!("<{opened}> is not closed; </{name}> comes first"))),
                None => return Err((range.start, format!("</{name}> closes nothing"))),
            },
            Piece::Inside { .. } => {}
        }
    }
    open.pop().map_or(Ok(()), |(name, at)| Err((at, format!("<{name}> is not closed"))))
}

/// Whether an element may stand here: in `frame`, or as the first of the file.
fn known(start: &Start, frame: Option<&str>, is_first: bool) -> Result<(), String> {
    let name = &start.name;
    if is_first && name != "mjml" {
        return Err(ONE_ELEMENT.to_owned());
    }
    if name.starts_with("mj-") {
        let is_known = ELEMENTS.contains(&format!(" {name} "));
        return if is_known { Ok(()) } else { Err(format!("there is no element <{name}> in MJML")) };
    }
    let told = |frame| format!("<{name}> stands right in <{frame}>; write HTML in <mj-text>, <mj-table> or <mj-raw>");
    frame.map_or(Ok(()), |frame| Err(told(frame)))
}

/// Where in `range` there is text that is neither a tag of the language nor a comment.
fn loose(masked: &Masked, range: Range<usize>) -> Option<usize> {
    let text = &masked.text[range.clone()];
    let words = masked.words(text).into_iter().map(|word| word.range);
    let comments = text.match_indices("<!--").map(|(at, _)| {
        let end = text[at..].find("-->").map_or(text.len(), |length| at + length + "-->".len());
        at..end
    });
    let passed: Vec<Range<usize>> = words.chain(comments).collect();
    let is_text =
        |(at, letter): &(usize, char)| !letter.is_whitespace() && !passed.iter().any(|passed| passed.contains(at));
    text.char_indices().find(is_text).map(|(at, _)| range.start + at)
}

/// The element and the attribute that stand at `at`, as they are written.
#[must_use]
pub fn attribute_at(text: &str, at: usize) -> Option<(String, String)> {
    pieces(text).into_iter().find_map(|piece| {
        let Piece::Start(start) = piece else { return None };
        let attribute = start.attributes.iter().find(|one| one.range.contains(&at))?;
        Some((start.name.clone(), attribute.name.clone()))
    })
}

/// Where in the text that was read, if it is known, and what is wrong.
#[must_use]
pub fn told(failed: &Error, text: &str, masked: &Masked) -> (Option<usize>, String) {
    let at = match failed {
        Error::UnexpectedElement { position, .. }
        | Error::UnexpectedToken { position, .. }
        | Error::MissingAttribute { position, .. }
        | Error::InvalidAttribute { position, .. }
        | Error::InvalidFormat { position, .. }
        | Error::IncludeLoaderError { position, .. } => Some(position.start),
        Error::ParserError { source, .. } => {
            if let Some((at, what)) = among_attributes(text, masked).into_iter().next() {
                return (Some(at), what);
            }
            let before = text.split_inclusive('\n').take(source.pos().row.saturating_sub(1) as usize);
            Some(before.map(str::len).sum())
        }
        Error::EndOfStream { .. } | Error::SizeLimit { .. } | Error::NoRootNode => None,
    };
    let what = match failed {
        Error::UnexpectedElement { .. } => "this element has no place here in MJML".to_owned(),
        Error::UnexpectedToken { .. } => "this has no place here in MJML; tags may stand between elements of \
            a body, a section, a column, a wrapper, a group or a hero, and text and tags in elements that hold text"
            .to_owned(),
        Error::MissingAttribute { name, .. } => format!("MJML's element lacks the attribute `{name}`"),
        Error::InvalidAttribute { .. } | Error::InvalidFormat { .. } => {
            match at.and_then(|at| attribute_at(text, at)) {
                Some((element, attribute)) => format!("MJML cannot read `{attribute}` of <{element}>"),
                None => "MJML cannot read this attribute".to_owned(),
            }
        }
        Error::ParserError { .. } => "MJML cannot read this line; a `<` of the text is written `&lt;`".to_owned(),
        Error::EndOfStream { .. } => "the file ends within an element".to_owned(),
        Error::SizeLimit { .. } => "the file is too large for MJML".to_owned(),
        Error::NoRootNode => ONE_ELEMENT.to_owned(),
        Error::IncludeLoaderError { .. } => "MJML cannot include this".to_owned(),
    };
    (at, what)
}

/// The tags of the language that stand where an attribute's name does.
#[must_use]
pub fn among_attributes(text: &str, masked: &Masked) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for piece in pieces(text) {
        let Piece::Start(start) = piece else { continue };
        for one in &start.attributes {
            let word = masked.words(&one.name).into_iter().next();
            let tag = match word.and_then(|word| masked.tags().get(word.tag)).map(|tag| &tag.kind) {
                Some(Kind::Statement(name)) => format!("{{% {name} … %}}"),
                Some(Kind::Value) => "{{ … }}".to_owned(),
                Some(Kind::Silent) | None => continue,
            };
            let what = format!(
                "`{tag}` stands among the attributes of <{}>; write it in an attribute's value, or the element once \
                 for each case",
                start.name
            );
            found.push((one.range.start, what));
        }
    }
    found
}
