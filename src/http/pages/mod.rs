//! The recipients' own pages, behind the links in their mail: unsubscribe (RFC 8058) and preferences. The link is the
//! only key. Mail gateways fetch every link that they see: GET and HEAD change nothing.

mod html;
mod words;

use std::fmt::Write as _;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;

use super::api::{Api, Shared};
use crate::intake::pages::{Choice, Means, Standing};
use crate::ports::links::Link;
use html::{escaped, page};
use words::{Words, title};

/// Of what a form sends.
const MOST_BODY: usize = 64 * 1024;

/// The token in the path, which no log and no error may show.
pub type Token = Path<String>;

/// What is shown to whom.
struct Visit<'a> {
    api: &'a Api,
    link: Link,
    words: Words,
    /// Of the page that the link itself leads to.
    path: String,
}

/// GET: the question, or how it stands.
pub async fn look(State(api): State<Shared>, Path(token): Token, headers: HeaderMap) -> Response {
    let visit = match Visit::begin(&api, &token, &headers) {
        Ok(visit) => visit,
        Err(gone) => return *gone,
    };
    if visit.link.category.is_none() {
        return visit.choices(false).await;
    }
    match api.asked("suppressions", api.deps.pages.standing(&visit.link)).await {
        Ok(standing) => visit.standing(standing, standing == Standing::On),
        Err(_) => visit.failed(),
    }
}

/// POST: unsubscribes, or with `action=resubscribe` takes it back. One click of a mail program sends
/// `List-Unsubscribe=One-Click`; whatever else comes here comes from somebody who wants no more mail.
pub async fn act(State(api): State<Shared>, Path(token): Token, headers: HeaderMap, request: Request) -> Response {
    let visit = match Visit::begin(&api, &token, &headers) {
        Ok(visit) => visit,
        Err(gone) => return *gone,
    };
    let Ok(form) = api.form(request, MOST_BODY).await else { return visit.failed() };
    if visit.link.category.is_none() {
        return visit.choices(false).await;
    }
    let back = form.iter().any(|(name, value)| name == "action" && value == "resubscribe");
    let desk = &api.deps.pages;
    let done = if back {
        api.asked("suppress", desk.resubscribe(&visit.link)).await
    } else {
        api.asked("suppress", desk.unsubscribe(&visit.link)).await
    };
    let standing = async {
        done?;
        api.asked("suppressions", desk.standing(&visit.link)).await
    };
    match standing.await {
        Ok(standing) => visit.standing(standing, false),
        Err(_) => visit.failed(),
    }
}

/// GET: what can be chosen.
pub async fn choose(State(api): State<Shared>, Path(token): Token, headers: HeaderMap) -> Response {
    match Visit::begin(&api, &token, &headers) {
        Ok(visit) => visit.choices(false).await,
        Err(gone) => *gone,
    }
}

/// POST: keeps what was chosen, of what the form showed.
pub async fn chosen(State(api): State<Shared>, Path(token): Token, headers: HeaderMap, request: Request) -> Response {
    let visit = match Visit::begin(&api, &token, &headers) {
        Ok(visit) => visit,
        Err(gone) => return *gone,
    };
    if visit.is_over() {
        return visit.gone();
    }
    let Ok(form) = api.form(request, MOST_BODY).await else { return visit.failed() };
    let all = |field: &str| {
        let named = form.iter().filter(|(name, _)| name == field);
        named.filter_map(|(_, value)| read_switch(value)).collect::<Vec<_>>()
    };
    let (shown, on) = (all("shown"), all("on"));
    let chosen: Vec<(String, Means, bool)> = shown
        .into_iter()
        .map(|(category, means)| {
            let on = on.contains(&(category.clone(), means));
            (category, means, on)
        })
        .collect();
    match api.asked("preferences", api.deps.pages.choose(&visit.link, &chosen)).await {
        Ok(()) => visit.choices(true).await,
        Err(_) => visit.failed(),
    }
}

/// `marketing/email`.
fn read_switch(text: &str) -> Option<(String, Means)> {
    let (category, means) = text.rsplit_once('/')?;
    Some((category.to_owned(), *Means::ALL.iter().find(|one| one.name() == means)?))
}

impl<'a> Visit<'a> {
    fn begin(api: &'a Api, token: &str, headers: &HeaderMap) -> Result<Self, Box<Response>> {
        let accepted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        let Some(link) = api.deps.intake.linker().open(token) else {
            let words = Words::of(None, accepted);
            let (title, body) = (words.say("unsubscribe"), paragraph(words.say("gone")));
            return Err(Box::new(page(StatusCode::NOT_FOUND, words, None, (title, &body))));
        };
        let words = Words::of(link.locale.as_deref(), accepted);
        Ok(Self { api, link, words, path: format!("/u/{token}") })
    }

    fn show(&self, status: StatusCode, title: &str, body: &str) -> Response {
        let links = (self.api.deps.policy)().links.clone();
        page(status, self.words, links.sender.as_deref(), (title, body))
    }

    fn is_over(&self) -> bool {
        self.api.deps.clock.now() >= self.link.until
    }

    fn gone(&self) -> Response {
        self.show(StatusCode::GONE, self.words.say("choose"), &paragraph(self.words.say("gone")))
    }

    fn failed(&self) -> Response {
        let words = self.words;
        self.show(StatusCode::SERVICE_UNAVAILABLE, words.say("unsubscribe"), &paragraph(words.say("failed")))
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
    fn standing(&self, standing: Standing, asks: bool) -> Response {
        let button = |action: &str, class: &str, word: &str| {
            format!(
                "<form method=\"post\" action=\"{}\"><button{class} name=\"action\" value=\"{action}\">{}</button></form>",
                self.path,
                escaped(self.words.say(word))
            )
        };
        let mut body = match standing {
            Standing::On if asks => paragraph(&self.filled("question")) + &button("unsubscribe", "", "unsubscribe"),
            Standing::On => note(&self.filled("on")) + &button("unsubscribe", " class=\"second\"", "unsubscribe"),
            Standing::Off => note(&self.filled("off")) + &button("resubscribe", " class=\"second\"", "resubscribe"),
            Standing::Blocked => note(&self.filled("blocked")),
        };
        if !self.is_over() {
            let choose = escaped(self.words.say("choose"));
            // Writing to a String cannot fail.
            write!(body, "<p class=\"more\"><a href=\"{}/preferences\">{choose}</a></p>", self.path)
                .unwrap_or_default();
        }
        self.show(StatusCode::OK, self.words.say("unsubscribe"), &body)
    }

    async fn choices(&self, saved: bool) -> Response {
        if self.is_over() {
            return self.gone();
        }
        let asked = self.api.asked("preferences", self.api.deps.pages.choices(&self.link)).await;
        let Ok(choices) = asked else { return self.failed() };
        let mut body = if saved { note(self.words.say("saved")) } else { String::new() };
        let intro = if self.link.address.is_some() { "intro" } else { "intro_nobody" };
        body += &paragraph(&self.filled(intro));
        let switches: String = choices.iter().map(|choice| self.choice(choice)).collect();
        let (path, save) = (&self.path, escaped(self.words.say("save")));
        // Writing to a String cannot fail.
        write!(body, "<form method=\"post\" action=\"{path}/preferences\">{switches}<button>{save}</button></form>")
            .unwrap_or_default();
        self.show(StatusCode::OK, self.words.say("choose"), &body)
    }

    fn choice(&self, choice: &Choice) -> String {
        let legend = escaped(&self.title(&choice.category));
        let switches: String = if choice.required {
            format!("<span class=\"quiet\">{}</span>", escaped(self.words.say("always")))
        } else {
            let one = |(means, standing): (&Means, &Standing)| self.switch(&choice.category, *means, *standing);
            choice.by.iter().map(one).collect()
        };
        format!("<fieldset><legend>{legend}</legend><div class=\"switches\">{switches}</div></fieldset>")
    }

    fn switch(&self, category: &str, means: Means, standing: Standing) -> String {
        let (value, name) = (escaped(&format!("{category}/{}", means.name())), escaped(self.words.means(means)));
        if standing == Standing::Blocked {
            return format!("<label class=\"quiet\"><input type=\"checkbox\" disabled>{name}</label>");
        }
        let checked = if standing == Standing::On { " checked" } else { "" };
        format!(
            "<input type=\"hidden\" name=\"shown\" value=\"{value}\">\
             <label><input type=\"checkbox\" name=\"on\" value=\"{value}\"{checked}>{name}</label>"
        )
    }
}

fn paragraph(text: &str) -> String {
    format!("<p>{}</p>", escaped(text))
}

fn note(text: &str) -> String {
    format!("<p class=\"note\" role=\"status\">{}</p>", escaped(text))
}
