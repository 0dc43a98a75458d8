//! What readers of each language really get.

use belfry_domain::ChannelKind;

use super::super::files::{HTML, MJML, PARTS, TEXT};
use super::{Findings, Level};

impl Findings<'_> {
    pub(super) fn translations(&mut self) {
        let locales: Vec<String> = self.template.locales().into_iter().skip(1).map(str::to_owned).collect();
        let is_mail = self.template.meta.channels.contains(&ChannelKind::Email);
        let is_body = |part: &str| is_mail && [TEXT, HTML, MJML].contains(&part);
        for locale in locales {
            for part in PARTS.into_iter().filter(|part| !is_body(part)) {
                self.translated(&locale, part);
            }
            if is_mail {
                self.body(&locale);
            }
        }
    }

    fn has(&self, part: &str) -> bool {
        self.template.files.files.contains_key(part)
    }

    /// A part that falls back by itself.
    fn translated(&mut self, locale: &str, part: &str) {
        // `de-AT` may leave to `de` what is the same.
        // `de/html.html` is a translation of `html.mjml`.
        let either: &[&str] = if [HTML, MJML].contains(&part) { &[HTML, MJML] } else { &[part] };
        let found = |part: &&str| self.template.find(locale, part).is_some_and(|found| found.contains('/'));
        if self.has(part) && !either.iter().any(found) {
            self.untranslated(locale, part, "this part");
        }
    }

    fn untranslated(&mut self, locale: &str, part: &str, what: &str) {
        let message = format!("not translated: readers of `{locale}` get {what} in `{}`", self.template.meta.locale);
        self.add(Level::Warning, "missing_translation", (&format!("{locale}/{part}"), 0), message);
    }

    /// A mail's text and HTML are of one folder, whatever there is in others.
    fn body(&mut self, locale: &str) {
        let (text, html) = self.template.find_body(locale);
        let folder = |path: &String| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
        let Some(place) = text.as_ref().or(html.as_ref()).and_then(folder) else {
            for part in [TEXT, HTML, MJML].into_iter().filter(|part| self.has(part)).collect::<Vec<_>>() {
                self.untranslated(locale, part, "this part");
            }
            return;
        };
        let read_in_chat = self.template.meta.channels.contains(&ChannelKind::Chat) && self.has(TEXT);
        if read_in_chat && self.template.find(locale, TEXT).is_some_and(|found| !found.contains('/')) {
            self.untranslated(locale, TEXT, "this part in chat");
        }
        // Of a folder that another language falls back to, its own language tells.
        if place != locale {
            return;
        }
        if html.is_none() && (self.has(HTML) || self.has(MJML)) {
            let message = format!(
                "mail to readers of `{locale}` has no HTML: text and HTML are taken from one folder, and `{place}/` has \
                 the text alone"
            );
            self.add(Level::Warning, "missing_html", (&format!("{place}/{HTML}"), 0), message);
        }
        if text.is_none() && self.has(TEXT) {
            let made_from = html.unwrap_or_default();
            let message = format!(
                "mail to readers of `{locale}` has a text made from {made_from}; one that was written reads better"
            );
            self.add(Level::Warning, "missing_text", (&format!("{place}/{TEXT}"), 0), message);
        }
    }
}
