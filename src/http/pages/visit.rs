//! What somebody with a link is shown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;

use super::form::{self, Fields};
use super::html::{escaped, page};
use super::words::{Words, title};
use crate::http::api::Api;
use crate::intake::pages::{Choice, Choices, Means, Reach, Standing};
use crate::ports::links::Link;

/// Of what a form sends.
const MOST_BODY: usize = 64 * 1024;

/// Which of a link's two pages is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Link,
    Preferences,
}

/// What is shown to whom.
pub struct Visit<'a> {
    pub api: &'a Api,
    pub link: Link,
    words: Words,
    /// The link's own page and that of preferences, as seen from the page that is asked for: a proxy may have taken
    /// away what stands before their paths outside.
    own: String,
    preferences: String,
}

impl<'a> Visit<'a> {
    pub fn begin(api: &'a Api, token: &str, headers: &HeaderMap, place: Place) -> Result<Self, Box<Response>> {
        let accepted = headers.get_all(header::ACCEPT_LANGUAGE).iter().filter_map(|value| value.to_str().ok());
        let accepted = &accepted.collect::<Vec<_>>().join(",");
        let Some(link) = api.deps.intake.linker().open(token) else {
            let words = Words::of(None, accepted);
            let (title, body) = (words.say("unsubscribe"), paragraph(words.say("gone")));
            return Err(Box::new(page(StatusCode::NOT_FOUND, words, None, (title, &body))));
        };
        let words = Words::of(link.locale.as_deref(), accepted);
        let (own, preferences) = match place {
            Place::Link => (token.to_owned(), format!("{token}/preferences")),
            Place::Preferences => (format!("../{token}"), "preferences".to_owned()),
        };
        Ok(Self { api, link, words, own, preferences })
    }

    /// The fields of what was posted; else the answer.
    pub async fn posted(&self, headers: &HeaderMap, request: Request) -> Result<Fields, Response> {
        let read = self.api.any_body(request, MOST_BODY).await;
        let body = read.map_err(|problem| match problem.code.status() {
            StatusCode::PAYLOAD_TOO_LARGE | StatusCode::BAD_REQUEST => self.not_understood(),
            _ => self.failed(),
        })?;
        form::fields(headers, &body.bytes).ok_or_else(|| self.not_understood())
    }

    fn show(&self, status: StatusCode, title: &str, body: &str) -> Response {
        let links = (self.api.deps.policy)().links.clone();
        page(status, self.words, links.sender.as_deref(), (title, body))
    }

    pub fn is_over(&self) -> bool {
        self.api.deps.clock.now() >= self.link.until
    }

    pub fn gone(&self) -> Response {
        self.show(StatusCode::GONE, self.words.say("choose"), &paragraph(self.words.say("gone")))
    }

    pub fn failed(&self) -> Response {
        let words = self.words;
        self.show(StatusCode::SERVICE_UNAVAILABLE, words.say("unsubscribe"), &paragraph(words.say("failed")))
    }

    /// 400: nothing has changed.
    pub fn not_understood(&self) -> Response {
        let words = self.words;
        self.show(StatusCode::BAD_REQUEST, words.say("unsubscribe"), &paragraph(words.say("not_understood")))
    }

    /// With the link's own category and address.
    fn filled(&self, word: &str) -> String {
        let category = self.link.category.as_deref().map(|name| self.title(name)).unwrap_or_default();
        let mask = self.link.address.as_ref().map_or("", |address| &address.mask);
        self.words.say(word).replace("{category}", &category).replace("{address}", mask)
    }

    fn title(&self, class: &str) -> String {
        let policy = (self.api.deps.policy)();
        let titles = policy.links.pages.get(class).map(|page| page.titles.clone()).unwrap_or_default();
        title(&titles, class, self.link.locale.as_deref(), self.words)
    }

    /// `asks`: nothing was done yet.
    pub fn standing(&self, standing: Standing, asks: bool) -> Response {
        let button = |action: &str, class: &str, word: &str| {
            format!(
                "<form method=\"post\" action=\"{}\"><button{class} name=\"action\" value=\"{action}\">{}</button></form>",
                self.own,
                escaped(self.words.say(word))
            )
        };
        let mut body = match standing {
            Standing::On if asks => paragraph(&self.filled("question")) + &button("unsubscribe", "", "unsubscribe"),
            Standing::On => note(&self.filled("on")) + &button("unsubscribe", " class=\"second\"", "unsubscribe"),
            Standing::Always => note(self.words.say("always")),
            Standing::Off => note(&self.filled("off")) + &button("resubscribe", " class=\"second\"", "resubscribe"),
            Standing::Blocked(reach) => note(&self.blocked(reach)),
        };
        if !self.is_over() {
            let choose = escaped(self.words.say("choose"));
            // Writing to a String cannot fail.
            write!(body, "<p class=\"more\"><a href=\"{}\">{choose}</a></p>", self.preferences).unwrap_or_default();
        }
        self.show(StatusCode::OK, self.words.say("unsubscribe"), &body)
    }

    /// What does not come, and whom to ask.
    fn blocked(&self, reach: Reach) -> String {
        self.filled(match reach {
            Reach::Category => "blocked_category",
            Reach::Optional => "blocked_optional",
            Reach::Everything => "blocked",
        })
    }

    /// `saved`: what was chosen just now.
    pub async fn choices(&self, saved: Option<&[(String, Means, bool)]>) -> Response {
        if self.is_over() {
            return self.gone();
        }
        let asked = self.api.asked("preferences", self.api.deps.pages.choices(&self.link)).await;
        let Ok(choices) = asked else { return self.failed() };
        let stands = |chosen| if choices.stand_as(chosen) { "saved" } else { "not_all" };
        let mut body = saved.map(|chosen| note(self.words.say(stands(chosen)))).unwrap_or_default();
        let intro = if self.link.address.is_some() { "intro" } else { "intro_nobody" };
        body += &paragraph(&self.filled(intro));
        body += &choices.blocked.map(|reach| note(&self.blocked(reach))).unwrap_or_default();
        body += &self.form(&choices);
        self.show(StatusCode::OK, self.words.say("choose"), &body)
    }

    fn form(&self, choices: &Choices) -> String {
        let mut alike: BTreeMap<String, usize> = BTreeMap::new();
        for choice in &choices.list {
            *alike.entry(self.title(&choice.category)).or_default() += 1;
        }
        let row = |choice: &Choice| {
            let title = self.title(&choice.category);
            // Two rows of one name would be told apart by nothing.
            let named = if alike.get(&title).is_some_and(|times| *times > 1) {
                format!("{title} ({})", choice.category)
            } else {
                title
            };
            self.row(&named, choice)
        };
        let rows: String = choices.list.iter().map(row).collect();
        let is_free = |standing: &Standing| !matches!(standing, Standing::Blocked(_));
        if !choices.list.iter().any(|choice| !choice.required && choice.by.values().any(is_free)) {
            return rows;
        }
        let (path, save) = (&self.preferences, escaped(self.words.say("save")));
        format!("<form method=\"post\" action=\"{path}\">{rows}<button>{save}</button></form>")
    }

    fn row(&self, title: &str, choice: &Choice) -> String {
        let legend = escaped(title);
        let mut switches = String::new();
        if choice.required && choice.by.values().any(|standing| !matches!(standing, Standing::Blocked(_))) {
            switches += &quiet(self.words.say("always"));
        }
        for (means, standing) in &choice.by {
            switches += &match standing {
                Standing::Blocked(_) => self.held(*means, choice.required),
                Standing::On | Standing::Off | Standing::Always if choice.required => String::new(),
                Standing::On | Standing::Off | Standing::Always => {
                    self.switch(&choice.category, *means, *standing == Standing::On)
                }
            };
        }
        format!("<fieldset><legend>{legend}</legend><div class=\"switches\">{switches}</div></fieldset>")
    }

    fn held(&self, means: Means, required: bool) -> String {
        let told = format!("{} ({})", self.words.means(means), self.words.say("held"));
        if required {
            return quiet(&told);
        }
        format!("<label class=\"quiet\"><input type=\"checkbox\" disabled>{}</label>", escaped(&told))
    }

    fn switch(&self, category: &str, means: Means, on: bool) -> String {
        let (value, name) = (escaped(&format!("{category}/{}", means.name())), escaped(self.words.means(means)));
        let checked = if on { " checked" } else { "" };
        format!(
            "<input type=\"hidden\" name=\"shown\" value=\"{value}\">\
             <label><input type=\"checkbox\" name=\"on\" value=\"{value}\"{checked}>{name}</label>"
        )
    }
}

fn quiet(text: &str) -> String {
    format!("<span class=\"quiet\">{}</span>", escaped(text))
}

fn paragraph(text: &str) -> String {
    format!("<p>{}</p>", escaped(text))
}

fn note(text: &str) -> String {
    format!("<p class=\"note\" role=\"status\">{}</p>", escaped(text))
}
