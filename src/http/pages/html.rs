//! How the recipients' pages look: one plain document each, without a script, for any phone.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

use super::words::Words;

const STYLE: &str = "
:root{color-scheme:light dark;--line:#8884;--ink:#1a1a1a;--quiet:#555;--paper:#fff;--ground:#f3f3f1;--accent:#1f5fbf}
@media(prefers-color-scheme:dark){:root{--ink:#eee;--quiet:#aaa;--paper:#1d1f21;--ground:#131415;--accent:#8ab4f8}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:17px/1.5 system-ui,sans-serif}
main{max-width:34rem;margin:8vh auto;padding:2rem;background:var(--paper);border:1px solid var(--line);border-radius:12px}
@media(max-width:36rem){main{margin:0;min-height:100vh;border:0;border-radius:0;padding:1.5rem}}
.sender{margin:0 0 1.5rem;color:var(--quiet)}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 .75rem}
p{margin:0 0 1.25rem;overflow-wrap:anywhere}
.note{border-left:4px solid var(--accent);padding:.25rem .9rem}
button{font:inherit;font-weight:600;padding:.7rem 1.4rem;border:0;border-radius:8px;background:var(--accent);color:var(--paper);cursor:pointer}
button.second{background:none;color:var(--accent);border:1px solid var(--line)}
button:focus-visible,a:focus-visible,input:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
a{color:var(--accent)}
.more{margin:1.75rem 0 0;padding-top:1.25rem;border-top:1px solid var(--line)}
fieldset{border:0;border-top:1px solid var(--line);margin:0;padding:.9rem 0}
legend{float:left;width:100%;font-weight:600;padding:0;margin-bottom:.3rem}
.switches{clear:both;display:flex;flex-wrap:wrap;gap:.4rem 1.5rem}
label{display:inline-flex;align-items:center;gap:.5rem;min-height:2.75rem}
input{width:1.25rem;height:1.25rem;accent-color:var(--accent)}
.quiet{color:var(--quiet)}
";

/// Text within the document.
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

/// A page; `body` is HTML, all else plain text.
pub fn page(status: StatusCode, words: Words, sender: Option<&str>, (title, body): (&str, &str)) -> Response {
    let sender = sender.map(|sender| format!("<p class=\"sender\">{}</p>", escaped(sender))).unwrap_or_default();
    let (language, title) = (words.language, escaped(title));
    let html = format!(
        "<!doctype html><html lang=\"{language}\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"robots\" content=\"noindex\">\
         <title>{title}</title><style>{STYLE}</style></head><body><main>{sender}<h1>{title}</h1>{body}</main></body></html>"
    );
    let mut response = (status, Html(html)).into_response();
    // The address of the page is the recipient's key: it is told to nobody, kept nowhere, and the page loads nothing.
    let policy =
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("x-robots-tag"), "noindex, nofollow"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    response.headers_mut().extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_22_nothing_in_a_text_is_markup() {
        assert_eq!(escaped("Tom & \"O'Neil\" <b>"), "Tom &amp; &quot;O&#39;Neil&quot; &lt;b&gt;");
    }
}
