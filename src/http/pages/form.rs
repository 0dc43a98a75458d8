//! What is posted to a recipient's page, and what it asks for. Whatever is not understood changes nothing: to take it for
//! the wish to unsubscribe would turn "again" into its opposite.

use axum::http::{HeaderMap, header};

use crate::intake::json::{Value, parse};
use crate::intake::pages::Means;

/// Its fields, in their order.
pub type Fields = Vec<(String, String)>;

/// What somebody asks for with the link of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Unsubscribe,
    Resubscribe,
}

/// The fields of a body: of an HTML form of either kind, or of a JSON object. `None`: it is none of them.
///
/// A body without a type is a form as well: mail programs send one click (RFC 8058, section 3.2) as they like.
#[must_use]
pub fn fields(headers: &HeaderMap, body: &[u8]) -> Option<Fields> {
    let mut kinds = headers.get_all(header::CONTENT_TYPE).iter();
    let (kind, None) = (kinds.next(), kinds.next()) else { return None };
    if body.is_empty() {
        return Some(Fields::new());
    }
    let kind = kind.map(|kind| kind.to_str().unwrap_or("?")).unwrap_or_default();
    let (essence, parameters) = kind.split_once(';').unwrap_or((kind, ""));
    match essence.trim().to_ascii_lowercase().as_str() {
        "" | "application/x-www-form-urlencoded" | "text/plain" => {
            let body = body.strip_suffix(b"\n").unwrap_or(body);
            Some(form_urlencoded::parse(body.strip_suffix(b"\r").unwrap_or(body)).into_owned().collect())
        }
        "multipart/form-data" => parts(std::str::from_utf8(body).ok()?, parameter(parameters, "boundary")?),
        "application/json" => members(body),
        _ => None,
    }
}

/// `None`: nothing that a link's page knows. Nothing at all is one click; a mail program's one click (RFC 8058, section
/// 3.2) is one beside whatever else it sends.
#[must_use]
pub fn wish(fields: &Fields) -> Option<Wish> {
    let one_click = |(name, value): &(String, String)| {
        name.eq_ignore_ascii_case("List-Unsubscribe") && value.trim().eq_ignore_ascii_case("One-Click")
    };
    if fields.is_empty() || fields.iter().any(one_click) {
        return Some(Wish::Unsubscribe);
    }
    let mut asked = fields.iter().filter(|(name, _)| name == "action").map(|(_, value)| match value.as_str() {
        "unsubscribe" => Some(Wish::Unsubscribe),
        "resubscribe" => Some(Wish::Resubscribe),
        _ => None,
    });
    let first = asked.next()?;
    asked.all(|other| other == first).then_some(first)?
}

/// What was chosen, of what the form showed: category, means, and whether it is to come. `None`: it shows nothing, or
/// what no form of ours does.
#[must_use]
pub fn chosen(fields: &Fields) -> Option<Vec<(String, Means, bool)>> {
    let all = |field: &str| {
        fields.iter().filter(|(name, _)| name == field).map(|(_, value)| switch(value)).collect::<Option<Vec<_>>>()
    };
    let (shown, on) = (all("shown")?, all("on")?);
    if shown.is_empty() || on.iter().any(|one| !shown.contains(one)) {
        return None;
    }
    let said = |(category, means): (String, Means)| {
        let on = on.contains(&(category.clone(), means));
        (category, means, on)
    };
    Some(shown.into_iter().map(said).collect())
}

/// `marketing/email`.
fn switch(text: &str) -> Option<(String, Means)> {
    let (category, means) = text.rsplit_once('/')?;
    Some((category.to_owned(), *Means::ALL.iter().find(|one| one.name() == means)?))
}

/// A header's parameter, with or without quotes.
fn parameter<'a>(text: &'a str, wanted: &str) -> Option<&'a str> {
    let mut all = text.split(';').filter_map(|one| one.trim().split_once('='));
    let (_, value) = all.find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted))?;
    Some(value.trim().trim_matches('"')).filter(|value| !value.is_empty())
}

/// RFC 7578; with line ends of either kind, as not every mail program is a browser.
fn parts(body: &str, boundary: &str) -> Option<Fields> {
    let delimiter = format!("\n--{boundary}");
    let body = format!("\n{}", body.replace("\r\n", "\n"));
    let (inside, _) = body.split_once(&format!("{delimiter}--"))?;
    let part = |part: &str| {
        let (head, value) = part.trim_start_matches([' ', '\t']).strip_prefix('\n')?.split_once("\n\n")?;
        let mut lines = head.lines().filter_map(|line| line.split_once(':'));
        let (_, said) = lines.find(|(name, _)| name.trim().eq_ignore_ascii_case("Content-Disposition"))?;
        Some((parameter(said, "name")?.to_owned(), value.to_owned()))
    };
    inside.split(delimiter.as_str()).skip(1).map(part).collect()
}

/// Texts alone, by name.
fn members(body: &[u8]) -> Option<Fields> {
    let Value::Object(members) = parse(body).ok()?.value else { return None };
    let text = |value: Value<'_>| if let Value::Text(text) = value { Some(text.into_owned()) } else { None };
    let fields: Fields =
        members.into_iter().map(|(name, node)| Some((name.into_owned(), text(node.value)?))).collect::<Option<_>>()?;
    Some(fields).filter(|fields| !fields.is_empty())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn read(kind: Option<&'static str>, body: &str) -> Option<Fields> {
        let kind = kind.map(|kind| (header::CONTENT_TYPE, HeaderValue::from_static(kind)));
        fields(&kind.into_iter().collect(), body.as_bytes())
    }

    fn asked(kind: &'static str, body: &str) -> Option<Wish> {
        wish(&read(Some(kind), body)?)
    }

    const URL: &str = "application/x-www-form-urlencoded; charset=utf-8";
    const JSON: &str = "application/json";

    #[test]
    fn case_26_one_click_is_read_as_mail_programs_send_it() {
        let part = |name: &str, value: &str| {
            format!(
                "--a b\r\nContent-Type: text/plain\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
            )
        };
        let parts = format!("{}--a b--\r\n", part("List-Unsubscribe", "One-Click"));
        let several = "multipart/form-data; charset=utf-8; boundary=\"a b\"";
        assert_eq!(asked(several, &parts), Some(Wish::Unsubscribe));
        assert_eq!(asked(several, &parts.replace("\r\n", "\n")), Some(Wish::Unsubscribe));
        for text in
            ["List-Unsubscribe=One-Click", "list-unsubscribe=one-click\r\n", "utm=x&List-Unsubscribe=One-Click", ""]
        {
            assert_eq!(asked(URL, text), Some(Wish::Unsubscribe), "{text}");
            assert_eq!(wish(&read(None, text).unwrap()), Some(Wish::Unsubscribe), "{text}");
        }
        assert_eq!(asked(several, ""), Some(Wish::Unsubscribe));
        assert_eq!(asked(URL, "List-Unsubscribe=One-Click&action=resubscribe"), Some(Wish::Unsubscribe));
        let back = format!("{}{}--a b--", part("x", "y\r\nz"), part("action", "resubscribe"));
        assert_eq!(read(Some(several), &back).unwrap()[0], ("x".to_owned(), "y\nz".to_owned()));
        assert_eq!(asked(several, &back), Some(Wish::Resubscribe));
    }

    #[test]
    fn case_26_what_is_not_understood_is_nobodys_wish() {
        assert_eq!(asked(URL, "action=unsubscribe"), Some(Wish::Unsubscribe));
        assert_eq!(asked(URL, "action=resubscribe"), Some(Wish::Resubscribe));
        assert_eq!(asked(JSON, r#"{"action": "resubscribe"}"#), Some(Wish::Resubscribe));
        for text in [
            "action=resubscrib",
            "action=",
            "action=Resubscribe",
            "action=unsubscribe&action=resubscribe",
            "List-Unsubscribe=Two-Clicks",
            "utm=x",
            r#"{"action": "resubscribe"}"#,
        ] {
            assert_eq!(asked(URL, text), None, "{text}");
        }
        for text in [r#"{"action": 1}"#, "[]", "{", r#""action""#, "{}"] {
            assert_eq!(asked(JSON, text), None, "{text}");
        }
        for (kind, text) in [
            ("multipart/form-data", "List-Unsubscribe=One-Click"),
            (
                "multipart/form-data; boundary=x",
                "--x\r\nContent-Disposition: form-data; name=\"action\"\r\n\r\nresubscribe",
            ),
            ("multipart/form-data; boundary=x", "--x\r\n\r\nresubscribe\r\n--x--"),
            ("application/xml", "<action>resubscribe</action>"),
        ] {
            assert_eq!(asked(kind, text), None, "{kind}");
        }
    }

    #[test]
    fn a_choice_is_of_what_was_shown() {
        let of = |text: &str| chosen(&read(Some(URL), text).unwrap());
        let news = |on| ("marketing".to_owned(), Means::Email, on);
        assert_eq!(of("shown=marketing/email&on=marketing/email"), Some(vec![news(true)]));
        assert_eq!(of("shown=marketing/email"), Some(vec![news(false)]));
        for text in
            ["", "on=marketing/email", "shown=marketing/fax", "shown=marketing", "shown=a/sms&on=marketing/email"]
        {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
