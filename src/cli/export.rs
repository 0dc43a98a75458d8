//! A list of who may have got something, as a file: a row for each delivery that a call was made for. It has what the
//! API shows, so no address whole. The file gets its name once it is complete.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::csv;
use super::exit::{Exit, Failure};
use super::view::{DeliveryView, NotificationView};

const COLUMNS: [&str; 12] = [
    "notification",
    "accepted_at",
    "class",
    "template",
    "recipient",
    "reference",
    "delivery",
    "channel",
    "address",
    "state",
    "ended_at",
    "reason",
];

#[derive(Clone, Copy)]
enum Form {
    Csv,
    Ndjson,
}

pub struct Export {
    path: PathBuf,
    /// Until it is complete.
    part: PathBuf,
    form: Form,
    out: BufWriter<File>,
    rows: u64,
}

impl Export {
    /// # Errors
    /// By its ending it is to be of no form that there is, it is there already, or it cannot be written.
    pub fn to(path: &Path) -> Result<Self, Failure> {
        let refused = |why: String| Failure::new(Exit::Usage, format!("--export {}: {why}", path.display()));
        let form = match path.extension().and_then(|ending| ending.to_str()) {
            Some("csv") => Form::Csv,
            Some("ndjson") => Form::Ndjson,
            _ => return Err(refused("a name must end in .csv or .ndjson".into())),
        };
        if path.symlink_metadata().is_ok() {
            return Err(refused("is there already, and stays as it is".into()));
        }
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        // What an earlier one left half done.
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part);
        let out = BufWriter::new(file.map_err(|error| refused(error.to_string()))?);
        let mut made = Self { path: path.to_owned(), part, form, out, rows: 0 };
        if matches!(form, Form::Csv) {
            made.write(&csv::written(&COLUMNS.map(str::to_owned)))?;
        }
        Ok(made)
    }

    /// Of a notification what may have reached somebody, or is on its way.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&mut self, it: &NotificationView) -> Result<(), Failure> {
        for one in it.deliveries.iter().filter(|one| one.may_have_arrived || one.state == "sending") {
            let row = row(it, one);
            let text = match self.form {
                Form::Csv => csv::written(&row.map(Option::unwrap_or_default)),
                Form::Ndjson => {
                    let said = COLUMNS.iter().zip(row).filter_map(|(name, it)| Some(((*name).into(), it?.into())));
                    Value::from(said.collect::<Map<String, Value>>()).to_string() + "\n"
                }
            };
            self.write(&text)?;
            self.rows += 1;
        }
        Ok(())
    }

    /// Gives the file its name. Returns how many rows it has.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn complete(mut self) -> Result<u64, Failure> {
        let done = self.out.flush().and_then(|()| self.out.get_ref().sync_all());
        let named = done.and_then(|()| fs::rename(&self.part, &self.path));
        named.map_err(|error| failed(&self.path, &error))?;
        Ok(self.rows)
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        self.out.write_all(text.as_bytes()).map_err(|error| failed(&self.part, &error))
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("{}: {error}", path.display()))
}

/// What is said of a delivery, in the order of [`COLUMNS`].
fn row(it: &NotificationView, one: &DeliveryView) -> [Option<String>; COLUMNS.len()] {
    [
        Some(it.id.clone()),
        Some(it.created_at.to_string()),
        Some(it.class.clone()),
        it.template.as_ref().map(|template| template.name.clone()),
        it.recipient.clone(),
        it.reference.clone(),
        Some(one.id.clone()),
        Some(one.channel.clone()),
        Some(one.address.clone()),
        Some(one.state.clone()),
        one.ended_at.map(|at| at.to_string()),
        Some(one.reason.clone()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notification() -> NotificationView {
        let one = |id: u8, state: &str, may_have_arrived: bool| {
            format!(
                r#"{{"id":"dlv_{id}","channel":"email","address":"{id}…@example.com","state":"{state}","reason":"R, s.",
                    "may_have_arrived":{may_have_arrived}}}"#
            )
        };
        let all =
            [one(1, "accepted", true), one(2, "cancelled", false), one(3, "cancelled", true), one(4, "sending", false)];
        let json = format!(
            r#"{{"id":"ntf_1","class":"receipt","state":"sending","created_at":"2026-11-29T12:00:00Z",
                "reference":"=crm","deliveries":[{}]}}"#,
            all.join(",")
        );
        serde_json::from_str(&json).unwrap()
    }

    #[test]
    fn it_has_those_who_may_have_it_and_gets_its_name_once_complete() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("who.csv");
        let mut export = Export::to(&path).unwrap();
        export.add(&notification()).unwrap();
        assert!(!path.exists());
        assert_eq!(export.complete().unwrap(), 3);
        let text = fs::read_to_string(&path).unwrap();
        let rows: Vec<_> = csv::cells(&text).into_iter().map(|(_, row)| row.unwrap()).collect();
        assert_eq!(rows[0], COLUMNS);
        assert_eq!(
            rows[1..].iter().map(|row| row[8].as_str()).collect::<Vec<_>>(),
            ["1…@example.com", "3…@example.com", "4…@example.com"]
        );
        assert_eq!((rows[1][5].as_str(), rows[1][11].as_str()), ("'=crm", "R, s."));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_row_of_ndjson_has_what_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("who.ndjson");
        let mut export = Export::to(&path).unwrap();
        export.add(&notification()).unwrap();
        export.complete().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows.len(), 3);
        assert_eq!((&rows[0]["delivery"], &rows[0]["reference"]), (&"dlv_1".into(), &"=crm".into()));
        assert!(rows[0].get("recipient").is_none() && rows[0].get("ended_at").is_none(), "{}", rows[0]);
    }

    #[test]
    fn nothing_that_is_there_is_written_over_and_no_form_guessed() {
        let dir = tempfile::tempdir().unwrap();
        for (name, words) in [("who.csv", "is there already"), ("who.xlsx", "must end in"), ("who", "must end in")] {
            fs::write(dir.path().join("who.csv"), "mine").unwrap();
            let refused = Export::to(&dir.path().join(name)).err().unwrap();
            assert!(refused.exit == Exit::Usage && refused.text.contains(words), "{}", refused.text);
        }
        assert_eq!(fs::read_to_string(dir.path().join("who.csv")).unwrap(), "mine");
        assert!(Export::to(&dir.path().join("absent").join("who.csv")).is_err());
    }
}
