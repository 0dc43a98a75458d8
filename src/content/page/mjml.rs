//! MJML made into HTML, once, with the language's tags in their places.
//!
//! MJML's own reader knows no template language: a tag is a word to it, and the word comes out
//! again wherever MJML puts the text or the attribute that held it. It may also drop it, repeat it or
//! carry it elsewhere, which for a `{% … %}` changes what the template says. So every word that comes
//! out is held against the source, and a file whose tags would be lost or moved is refused.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use mrml::prelude::parser::{ParserOptions, WarningKind};
use mrml::prelude::render::RenderOptions;

use super::Made;
use super::markup::{Piece, Start, pieces};
use super::shape::{among_attributes, attribute_at, shape, told};
use super::source::{Place, Source};
use super::tags::{Kind, Masked, tags};
use crate::content::files::SHARED;

/// What a rule's author wrote, as against MJML's own; stands at the head of each `<mj-style>`.
pub const AUTHORS: &str = "/*belfry:author*/";
/// Files within files.
const DEEPEST_INCLUDE: usize = 10;
/// Of a file with everything that it includes, in bytes.
const LARGEST: usize = 1024 * 1024;
/// What is wrong, and where.
pub type Fault = (Place, String);

/// `path` with everything that it includes.
///
/// # Errors
/// Where a file that is included is not there, includes itself, or comes to too much.
pub fn expanded(path: &str, files: &BTreeMap<String, String>) -> Result<Source, Fault> {
    let mut source = Source::default();
    expand(path, files, &mut vec![path.to_owned()], &mut source)?;
    Ok(source)
}

fn expand(
    path: &str,
    files: &BTreeMap<String, String>,
    open: &mut Vec<String>,
    into: &mut Source,
) -> Result<(), Fault> {
    let text = files.get(path).map_or("", String::as_str);
    let covered = super::tags::covered(text, &tags(text));
    let line = |at: usize| text[..at].matches('\n').count() + 1;
    let mut from = 0;
    for start in pieces(&covered).into_iter().filter_map(starts).filter(|start| start.name == "mj-include") {
        let fault = |what: String| (Place { file: path.to_owned(), line: line(start.range.start) }, what);
        let wanted = start.attribute("path").and_then(|one| one.value.clone()).map_or("", |range| &text[range]);
        if start.attribute("type").is_some() || !start.closed {
            return Err(fault("`<mj-include path=\"…\" />` takes a path alone and is closed at once".to_owned()));
        }
        if !wanted.starts_with(&format!("{SHARED}/")) || !is_mjml(wanted) {
            return Err(fault(format!("`{wanted}` cannot be included; a file of MJML is `{SHARED}/….mjml`")));
        }
        let Some(included) = files.get(wanted) else { return Err(fault(format!("there is no `{wanted}`"))) };
        if open.iter().any(|name| name == wanted) || open.len() >= DEEPEST_INCLUDE {
            return Err(fault(format!("`{wanted}` includes itself, or files lie more than {DEEPEST_INCLUDE} deep")));
        }
        if included.trim_start().starts_with("<mjml") {
            let what = format!("`{wanted}` is a whole document; what is included is elements such as <mj-section>");
            return Err(fault(what));
        }
        if into.text.len() + included.len() + text.len() > LARGEST {
            return Err(fault(format!("with what it includes the file has more than {LARGEST} bytes")));
        }
        into.push(&text[from..start.range.start], path, line(from));
        open.push(wanted.to_owned());
        expand(wanted, files, open, into)?;
        open.pop();
        from = start.range.end;
    }
    into.push(&text[from..], path, line(from));
    Ok(())
}

/// Whether a file is MJML, by its name.
#[must_use]
pub fn is_mjml(path: &str) -> bool {
    std::path::Path::new(path).extension().is_some_and(|ending| ending == "mjml")
}

fn starts(piece: Piece) -> Option<Start> {
    match piece {
        Piece::Start(start) => Some(start),
        Piece::End { .. } | Piece::Inside { .. } => None,
    }
}

/// The HTML of a file, in `language` unless the file itself says which it is in.
///
/// # Errors
/// Whatever MJML's reader does not take, and every tag that would not stay in its place.
pub fn made(source: &Source, language: &str) -> Result<Made, Vec<Fault>> {
    let masked = Masked::new(&source.text, tags(&source.text));
    let place = |at: usize| source.place(masked.in_source(at));
    shape(&masked).map_err(|(at, what)| vec![(place(at), what)])?;
    let (text, added) = styles_told_apart(&masked.text);
    // What was put in before a place moved it.
    let in_masked = |at: usize| at - added.iter().take_while(|put| **put < at).count() * AUTHORS.len();
    let mut read = mrml::parse_with_options(&text, &ParserOptions::default()).map_err(|failed| {
        let (at, what) = told(&failed, &text, &masked);
        vec![(at.map_or_else(|| source.place(0), |at| place(in_masked(at))), what)]
    })?;
    let strange: Vec<Fault> = read
        .warnings
        .iter()
        .filter(|warning| warning.kind == WarningKind::UnexpectedAttribute)
        .map(|warning| (warning.span.start, nothing_to(&text, warning.span.start)))
        .map(|(at, what)| (place(in_masked(at)), what))
        .collect();
    if !strange.is_empty() {
        return Err(strange);
    }
    read.element.attributes.lang.get_or_insert_with(|| language.to_owned());
    // No fonts of its own accord: whoever opens a mail would call on a stranger's server.
    let options = RenderOptions { fonts: HashMap::<String, Cow<'static, str>>::new(), ..RenderOptions::default() };
    let html =
        read.element.render(&options).map_err(|_| vec![(source.place(0), "MJML cannot make HTML of it".to_owned())])?;
    let moved = moved(&masked, &html, source);
    if !moved.is_empty() {
        return Err(moved);
    }
    let (text, lines) = masked.restored(&html, source);
    Ok(Made { text, lines })
}

fn nothing_to(text: &str, at: usize) -> String {
    match attribute_at(text, at) {
        Some((element, attribute)) => format!("`{attribute}` means nothing to MJML's <{element}>"),
        None => "this attribute means nothing to MJML's element".to_owned(),
    }
}

/// The text with the author's styles marked, and where marks were put in; `inline="inline"` goes,
/// as rules are written into the elements anyway. Nothing else changes its place.
fn styles_told_apart(text: &str) -> (String, Vec<usize>) {
    let mut out = String::with_capacity(text.len());
    let (mut from, mut added) = (0, Vec::new());
    for piece in pieces(text) {
        match piece {
            Piece::Start(start) if start.name == "mj-style" => {
                if let Some(one) = start.attribute("inline") {
                    out.push_str(&text[from..one.range.start]);
                    out.extend(std::iter::repeat_n(' ', one.range.len()));
                    from = one.range.end;
                }
            }
            Piece::Inside { range, of } if of == "mj-style" => {
                out.push_str(&text[from..range.start]);
                added.push(out.len());
                out.push_str(AUTHORS);
                from = range.start;
            }
            Piece::Start(_) | Piece::End { .. } | Piece::Inside { .. } => {}
        }
    }
    out.push_str(&text[from..]);
    (out, added)
}

/// The tags that did not come out as they went in. A statement comes out once, in its turn; a value
/// at least once, and every time between the same two statements as before.
fn moved(masked: &Masked, html: &str, source: &Source) -> Vec<Fault> {
    let mut before = Vec::new();
    let mut statements = 0;
    for tag in masked.tags() {
        before.push(statements);
        statements += usize::from(matches!(tag.kind, Kind::Statement(_)));
    }
    let mut times = vec![0_usize; before.len()];
    let mut wrong = vec![false; before.len()];
    let mut passed = 0;
    for word in masked.words(html) {
        times[word.tag] += 1;
        wrong[word.tag] |= before[word.tag] != passed;
        passed += usize::from(matches!(masked.tags()[word.tag].kind, Kind::Statement(_)));
    }
    let mut faults = Vec::new();
    for (at, tag) in masked.tags().iter().enumerate() {
        let once = matches!(tag.kind, Kind::Statement(_));
        let what = match times[at] {
            _ if tag.kind == Kind::Silent => continue,
            0 => {
                "MJML drops this tag; it may stand in text, in an attribute that is printed as it is, or between \
                elements of a body, a section or a column"
            }
            1 if !wrong[at] => continue,
            1 => "MJML moves this tag out of its place among the others",
            _ if once => "MJML repeats this tag; a `{% … %}` may stand where its text is printed once",
            _ if wrong[at] => "MJML also prints this outside of the `{% … %}` tags around it",
            _ => continue,
        };
        faults.push((source.place(tag.range.start), placed(masked, masked.starts(at), what)));
    }
    // One that is lost or repeated puts all after it out of step: the first is the one to mend.
    faults.truncate(1);
    faults
}

/// With the element and the attribute that the tag at `at` stands in.
fn placed(masked: &Masked, at: usize, what: &str) -> String {
    let as_a_name = among_attributes(&masked.text, masked).into_iter().find(|(found, _)| *found == at);
    match (as_a_name, attribute_at(&masked.text, at)) {
        (Some((_, what)), _) => what,
        (None, Some((element, attribute))) => format!("in `{attribute}` of <{element}>: {what}"),
        (None, None) => what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(body: &str) -> String {
        format!(
            "<mjml>\n<mj-body>\n<mj-section>\n<mj-column>\n{body}\n</mj-column>\n</mj-section>\n</mj-body>\n</mjml>\n"
        )
    }

    fn made_of(text: &str, shared: &[(&str, &str)]) -> Result<Made, Vec<(usize, String)>> {
        let mut files = BTreeMap::from([("html.mjml".to_owned(), text.to_owned())]);
        files.extend(shared.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())));
        let source = expanded("html.mjml", &files).map_err(|fault| vec![fault]);
        source.and_then(|source| made(&source, "sv")).map_err(|all| {
            all.into_iter().map(|(place, what)| (place.line, format!("{}: {what}", place.file))).collect()
        })
    }

    #[test]
    fn tags_come_out_where_they_went_in() {
        let made = made_of(
            &page(
                "{% if a < b %}<mj-text color=\"{{ c }}\">Hi {{ name }}{% if x %}<br>!{% endif %}</mj-text>{% endif %}\n\
                 <mj-raw>{% for x in list %}</mj-raw><mj-button href=\"{{ x|link }}\">Go</mj-button>{# no #}{% endfor %}\n\
                 <mj-table>{% for x in list %}<tr><td>{{ x }}</td></tr>{% endfor %}</mj-table>",
            ),
            &[],
        )
        .unwrap();
        let at = |needle: &str| made.text.find(needle).unwrap_or_else(|| panic!("{needle}: {}", made.text));
        assert!(
            at("{% if a < b %}") < at("color:{{ c }}")
                && at("color:{{ c }}") < at("Hi {{ name }}{% if x %}<br />!{% endif %}")
        );
        assert!(at("href=\"{{ x|link }}\"") > at("for x in list"), "{}", made.text);
        assert!(!made.text.contains("belfry"), "{}", made.text);
        assert!(!made.text.contains("fonts.googleapis") && made.text.contains("<html lang=\"sv\""));
        let of = |needle: &str| made.lines[&(made.text[..at(needle)].matches('\n').count() + 1)].line;
        assert_eq!((of("if a < b"), of("{{ name }}"), of("x|link"), of("{{ x }}")), (5, 5, 6, 7));
    }

    #[test]
    fn what_would_be_lost_or_moved_is_refused_with_its_line() {
        for (body, line, what) in [
            ("\n<mj-image width=\"{{ w }}\" src=\"a\" />", 6, "in `width` of <mj-image>: MJML drops"),
            ("<mj-text>\n<mj-colum>x</mj-colum></mj-text>", 6, "no element <mj-colum>"),
            ("<mj-text>a", 5, "<mj-text> is not closed"),
            ("\n<mj-text>a < b</mj-text>", 6, "&lt;"),
            (
                "<mj-text {% if a %}color=\"red\"{% endif %}>a</mj-text>",
                5,
                "`{% if … %}` stands among the attributes of <mj-text>",
            ),
            ("\n<mj-text\n{{ all }} >a</mj-text>", 7, "`{{ … }}` stands among the attributes of <mj-text>"),
            (
                "<mj-text>a</mj-text>\nplain {{ a }}",
                6,
                "this text stands right in <mj-column>, where no reader sees it",
            ),
            ("{% if a %}\n<!-- no -->\n&nbsp;{% endif %}", 7, "this text stands right in <mj-column>"),
            ("<mj-text>a</mj-text></mj-column>\n\nx<mj-column>", 7, "this text stands right in <mj-section>"),
            ("\n<p>a</p>", 6, "<p> stands right in <mj-column>"),
            ("<mj-social>{% if a %}</mj-social>", 5, "MJML"),
            ("\n\n<mj-include path=\"x.html\" />", 7, "cannot be included"),
            ("\n<mj-include path=\"_shared/none.mjml\" />", 6, "there is no"),
        ] {
            let faults = made_of(&page(body), &[]).map(|made| made.text).unwrap_err();
            assert_eq!(faults[0].0, line, "{body}: {faults:?}");
            assert!(faults[0].1.contains(what), "{body}: {faults:?}");
        }
        let breakpoint = "<mjml><mj-head>\n<mj-breakpoint wide=\"1px\" /></mj-head><mj-body></mj-body></mjml>";
        assert_eq!(
            made_of(breakpoint, &[]).unwrap_err()[0],
            (2, "html.mjml: `wide` means nothing to MJML's <mj-breakpoint>".to_owned())
        );
        let title = "<mjml><mj-head><mj-title>{% if a %}x{% endif %}</mj-title></mj-head><mj-body></mj-body></mjml>";
        assert!(made_of(title, &[]).unwrap_err()[0].1.contains("repeats"));
        let escaped = "<mjml><mj-head><mj-attributes><mj-text color=\"{{ c }}\" /></mj-attributes></mj-head><mj-body>\
            {% for c in list %}<mj-section><mj-column><mj-text>a</mj-text></mj-column></mj-section>{% endfor %}</mj-body></mjml>";
        assert!(made_of(escaped, &[]).is_err());
    }

    #[test]
    fn partials_are_included_and_named_in_errors() {
        let body = page("<mj-include path=\"_shared/a.mjml\" />\n<mj-text>{{ after }}</mj-text>");
        let made = made_of(&body, &[("_shared/a.mjml", "\n<mj-text>{{ within }}</mj-text>")]).unwrap();
        let line = |needle: &str| made.text[..made.text.find(needle).unwrap()].matches('\n').count() + 1;
        let place = |needle: &str| made.lines[&line(needle)].clone();
        assert_eq!(place("{{ within"), Place { file: "_shared/a.mjml".to_owned(), line: 2 });
        assert_eq!(place(" after"), Place { file: "html.mjml".to_owned(), line: 6 });
        let cycle = made_of(&body, &[("_shared/a.mjml", "<mj-include path=\"_shared/a.mjml\" />")]);
        assert!(cycle.unwrap_err()[0].1.contains("_shared/a.mjml: `_shared/a.mjml` includes itself"));
        let wrong = made_of(&body, &[("_shared/a.mjml", "\n\n<mj-nothing />")]).unwrap_err();
        assert_eq!(wrong[0].0, 3);
        assert!(wrong[0].1.starts_with("_shared/a.mjml: "));
    }

    #[test]
    fn the_same_file_makes_the_same_bytes() {
        let body = page(
            "<mj-navbar hamburger=\"hamburger\"><mj-navbar-link href=\"/\">a</mj-navbar-link></mj-navbar><mj-carousel><mj-carousel-image src=\"a\" /></mj-carousel>",
        );
        let first = made_of(&body, &[]).unwrap().text;
        assert!((0..5).all(|_| made_of(&body, &[]).unwrap().text == first));
    }
}
