//! Text made from HTML, for those who read no HTML.
//!
//! Whoever sends the HTML may nest it without end, and a browser's parser then takes time and memory
//! by the square of its size. So it is first read in one pass into a small, balanced and shallow
//! document that says the same to a reader, and only that is laid out.

mod aside;
mod links;

use aside::{Aside, unmarked};
use html2text::config;
use links::Plain;

use super::text::one_final_newline;

/// Width of the text, as mail text is commonly wrapped.
const WIDTH: usize = 76;
/// In bytes. Mail programs cut at 102 KiB; whoever sends more has to send a text as well.
pub const LARGEST: usize = 256 * 1024;
/// Tags within tags; deeper ones are left out, their words stay.
const DEEPEST: usize = 32;

/// The text of an HTML mail; `None` where that is more than [`LARGEST`], or no layout is found.
#[must_use]
pub fn from_html(html: &str) -> Option<String> {
    if html.len() > LARGEST {
        return None;
    }
    let layout = config::with_decorator(Plain::default()).no_table_borders().no_link_wrapping().allow_width_overflow();
    let (shallow, aside) = Shallow::default().read(&unmarked(html));
    let made = aside.back(&layout.string_from_read(shallow.as_bytes(), WIDTH).ok()?);
    let mut text = String::with_capacity(made.len());
    let mut blank = 0;
    for line in made.lines().map(str::trim_end) {
        blank = if line.is_empty() { blank + 1 } else { 0 };
        if blank < 2 && !(text.is_empty() && line.is_empty()) {
            text.push_str(line);
            text.push('\n');
        }
    }
    Some(one_final_newline(text))
}

/// The tags that shape a text, by what stands for them.
fn shaping(name: &str) -> Option<&'static str> {
    Some(match name {
        "p" => "p",
        "div" | "section" | "article" | "main" | "header" | "footer" | "center" | "address" | "figure" => "div",
        "h1" => "h1",
        "h2" => "h2",
        "h3" => "h3",
        "h4" | "h5" | "h6" | "caption" => "h4",
        "ul" => "ul",
        "ol" => "ol",
        "li" => "li",
        "blockquote" => "blockquote",
        "pre" => "pre",
        "table" => "table",
        "tr" => "tr",
        "td" | "th" => "td",
        "a" => "a",
        "br" => "br",
        "hr" => "hr",
        "img" => "img",
        _ => return None,
    })
}

/// Elements whose inside is no text for a reader.
const SILENT: [&str; 5] = ["style", "script", "title", "template", "textarea"];

#[derive(Default)]
struct Shallow {
    out: String,
    aside: Aside,
    open: Vec<&'static str>,
    /// Of each table that is open, whether it only lays out: its cells are no columns to a reader, and
    /// in columns a link is broken.
    tables: Vec<bool>,
    /// Name of a hidden element, and how many of that name are open within it.
    hidden: Option<(String, usize)>,
}

struct Tag<'a> {
    name: String,
    closes: bool,
    attributes: &'a str,
}

impl Shallow {
    fn read(mut self, html: &str) -> (String, Aside) {
        let mut rest = html;
        while let Some(at) = rest.find('<') {
            self.text(&rest[..at]);
            rest = self.markup(&rest[at..]);
        }
        self.text(rest);
        self.close_to(0);
        (self.out, self.aside)
    }

    fn text(&mut self, text: &str) {
        if self.hidden.is_none() {
            self.out.push_str(&self.aside.put(text));
        }
    }

    /// Reads what begins with `<`, and returns what comes after.
    fn markup<'a>(&mut self, rest: &'a str) -> &'a str {
        if let Some(comment) = rest.strip_prefix("<!--") {
            return comment.split_once("-->").map_or("", |(_, after)| after);
        }
        match rest.as_bytes().get(1) {
            Some(b'!' | b'?') => rest.split_once('>').map_or("", |(_, after)| after),
            Some(b'/' | b'a'..=b'z' | b'A'..=b'Z') => {
                let Some((tag, after)) = tag(rest) else { return "" };
                let silent = !tag.closes && SILENT.contains(&tag.name.as_str());
                let after = if silent { past_end(after, &tag.name) } else { after };
                self.tag(&tag);
                after
            }
            _ => {
                self.text("&lt;");
                &rest[1..]
            }
        }
    }

    fn tag(&mut self, tag: &Tag<'_>) {
        if let Some((name, within)) = &mut self.hidden {
            if *name == tag.name {
                *within = if tag.closes { *within - 1 } else { *within + 1 };
            }
            if *within == 0 {
                self.hidden = None;
            }
            return;
        }
        let Some(name) = shaping(&tag.name) else { return };
        let name = self.seen(name, tag);
        match name {
            "br" | "hr" => self.out.push_str(if name == "br" { "<br>" } else { "<hr>" }),
            // Its words, where it has any.
            "img" => self.out.push_str(&attribute(tag.attributes, "alt").unwrap_or_default().replace('<', "&lt;")),
            _ if tag.closes => {
                if let Some(at) = self.open.iter().rposition(|open| *open == name) {
                    self.close_to(at);
                }
            }
            _ if is_hidden(tag.attributes) => self.hidden = Some((tag.name.clone(), 1)),
            _ => self.open(name, tag.attributes),
        }
    }

    /// What the tag is to a reader: of a table that lays out, blocks.
    fn seen(&mut self, name: &'static str, tag: &Tag<'_>) -> &'static str {
        let lays_out = match name {
            "table" if tag.closes => self.tables.pop().unwrap_or(false),
            "table" => {
                let role = attribute(tag.attributes, "role").unwrap_or_default();
                let lays_out = role.eq_ignore_ascii_case("presentation");
                self.tables.push(lays_out);
                lays_out
            }
            "tr" | "td" => self.tables.last().copied().unwrap_or(false),
            _ => false,
        };
        if lays_out { "div" } else { name }
    }

    fn open(&mut self, name: &'static str, attributes: &str) {
        // What HTML ends by itself: a paragraph before any block, a link before a link, an item,
        // a cell or a row before the next.
        let ended = match name {
            "a" => self.open.iter().rposition(|open| *open == "a"),
            "li" | "td" | "tr" => self.open.last().filter(|open| **open == name).map(|_| self.open.len() - 1),
            _ => self.open.iter().position(|open| *open == "p"),
        };
        if let Some(at) = ended {
            self.close_to(at);
        }
        if self.open.len() >= DEEPEST {
            return;
        }
        self.open.push(name);
        match attribute(attributes, "href").filter(|_| name == "a") {
            Some(href) => {
                let href = if href.starts_with('#') { href.to_owned() } else { self.aside.put(href) };
                self.out.push_str(&format!("<a href=\"{}\">", href.replace('"', "&quot;").replace('<', "&lt;")))
            }
            None => self.out.push_str(&format!("<{name}>")),
        }
    }

    fn close_to(&mut self, at: usize) {
        while self.open.len() > at {
            let name = self.open.pop().unwrap_or_default();
            self.out.push_str(&format!("</{name}>"));
        }
    }
}

/// The tag that `rest` begins with and what comes after; nothing where it has no end.
fn tag(rest: &str) -> Option<(Tag<'_>, &str)> {
    let closes = rest[1..].starts_with('/');
    let inside = &rest[1 + usize::from(closes)..];
    let mut quote = None;
    let end = inside.bytes().position(|byte| match (quote, byte) {
        (None, b'>') => true,
        (None, b'"' | b'\'') => {
            quote = Some(byte);
            false
        }
        (Some(open), byte) => {
            if open == byte {
                quote = None;
            }
            false
        }
        (None, _) => false,
    })?;
    let (inside, after) = (&inside[..end], &inside[end + 1..]);
    let name_end = inside.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(inside.len());
    let (name, attributes) = inside.split_at(name_end);
    Some((Tag { name: name.to_ascii_lowercase(), closes, attributes }, after))
}

/// What comes after the end tag of a silent element.
fn past_end<'a>(rest: &'a str, name: &str) -> &'a str {
    let end = rest.match_indices("</").find(|(at, _)| {
        rest.as_bytes()
            .get(at + 2..at + 2 + name.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(name.as_bytes()))
    });
    end.and_then(|(at, _)| rest[at..].split_once('>')).map_or("", |(_, after)| after)
}

/// The value of an attribute, as it is written.
fn attribute<'a>(attributes: &'a str, wanted: &str) -> Option<&'a str> {
    let mut rest = attributes;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/' || c == '=');
        let end = rest.find(|c: char| c.is_ascii_whitespace() || c == '=' || c == '/').unwrap_or(rest.len());
        if end == 0 {
            return None;
        }
        let name = &rest[..end];
        rest = rest[end..].trim_start();
        let mut value = "";
        if let Some(given) = rest.strip_prefix('=') {
            let given = given.trim_start();
            let quote = given.chars().next().filter(|c| matches!(c, '"' | '\''));
            let from = usize::from(quote.is_some());
            let stops = |c: char| quote.map_or(c.is_ascii_whitespace(), |quote| c == quote);
            let stop = given[from..].find(stops).map_or(given.len(), |at| from + at);
            value = &given[from..stop];
            rest = given.get(stop + from..).unwrap_or_default();
        }
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
    }
}

fn is_hidden(attributes: &str) -> bool {
    attribute(attributes, "style").is_some_and(|style| {
        style.split(';').any(|rule| {
            rule.split_once(':').is_some_and(|(name, value)| {
                name.trim().eq_ignore_ascii_case("display") && value.trim().to_ascii_lowercase().starts_with("none")
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_reader_sees() {
        for (html, text) in [
            ("<p>One</p><p>Two", "One\n\nTwo\n"),
            ("a<br>b<BR/>c", "a\nb\nc\n"),
            ("<P>x &lt; y &amp; 1 < 2</P>", "x < y & 1 < 2\n"),
            ("<style>p{}</style><script>if (a</b>) </script ><title>t</title>x", "x\n"),
            ("<!-- <p>no</p> --><!DOCTYPE html><?php no ?>yes", "yes\n"),
            ("<div style='color:red; DISPLAY : none'><div>no</div>no</div>yes", "yes\n"),
            ("<a href='https://x.example/?a=1&amp;b=\"q\"'>go</a>.", "go <https://x.example/?a=1&b=\"q\">.\n"),
            ("<a href=https://x.example/ title=\"a>b\">go</a> <a name=x>there</a>", "go <https://x.example/> there\n"),
            ("<img src=x alt='A <mug>'> <img src=y>", "A <mug>\n"),
            ("<ul><li>one<li>two</ul><ol><li>first</ol>", "- one\n- two\n1. first\n"),
            ("<b>bold</b> <em>and</em> <span>plain</span>", "bold and plain\n"),
            ("<blockquote>said</blockquote>", "> said\n"),
            (
                "<table role=presentation><tr><td>a<td><a href='https://x.example/a/long/way/to/go'>b</a></table>c",
                "a\nb <https://x.example/a/long/way/to/go>\nc\n",
            ),
            ("<a href=\"never closed", "\n"),
            ("", "\n"),
        ] {
            assert_eq!(from_html(html).as_deref(), Some(text), "{html}");
        }
        assert_eq!(from_html(&"x".repeat(LARGEST + 1)), None);
    }

    /// Belfry's own links have some two hundred characters, and a link in two lines leads nowhere.
    #[test]
    fn no_link_is_broken_however_long_it_is() {
        let token = "0123456789abcdef".repeat(20);
        let link = format!("https://shop.example/u/{token}?a=1&b=2");
        let escaped = link.replace('&', "&amp;");
        let html = format!(
            "<p>Some words before it, so that the line is full soon: <a href=\"{escaped}\">here</a> and \
             {escaped}.</p><blockquote>{escaped}</blockquote><ul><li>{escaped}</ul><p>\u{10fffc}0\u{10fffc}</p>"
        );
        let text = from_html(&html).unwrap();
        assert_eq!(text.matches(&link).count(), 4, "{text}");
        assert!(text.contains(&format!("<{link}>")) && text.contains(&format!("> {link}\n")), "{text}");
        assert!(text.contains(&format!("- {link}\n")) && text.ends_with("\u{fffd}0\u{fffd}\n"), "{text}");
        // All others are as wide as ever.
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH || line.contains(&token)), "{text}");
    }

    #[test]
    fn nesting_without_end_ends() {
        for unit in [
            "<div>",
            "<b id=1>",
            "<ul><li>",
            "<blockquote>",
            "<font><p>x",
            "<a href=x><p>",
            "<table><tr><td>",
            "<div><a></div>",
            "<!--",
            "<p/",
            "</",
        ] {
            let (shallow, _) = Shallow::default().read(&(unit.repeat(LARGEST / unit.len()) + ">"));
            let (mut deep, mut deepest) = (0_i64, 0);
            for (at, _) in shallow.match_indices('<').filter(|(at, _)| !shallow[at + 1..].starts_with("br")) {
                deep += if shallow[at + 1..].starts_with('/') { -1 } else { 1 };
                deepest = deepest.max(deep);
            }
            assert_eq!(deep, 0, "{unit}");
            assert!(deepest <= 32, "{unit}: {deepest}");
        }
        let deep = "<div>".repeat(LARGEST / 10) + "end";
        assert_eq!(from_html(&deep).as_deref(), Some("end\n"));
    }

    proptest! {
        #[test]
        fn any_markup_is_read(html in "(<|</|>|\"|'|=| |a|p|div|li|td|table|href|style|&amp;|<!--|-->|é|[a-z]{1,3}){0,60}") {
            prop_assert!(from_html(&html).is_some_and(|text| text.ends_with('\n')));
        }
    }
}
