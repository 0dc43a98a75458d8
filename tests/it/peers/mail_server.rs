//! A real mail server: Postfix hands to Dovecot over LMTP, and the mailbox is read over IMAP. Both
//! with private folders on free loopback ports, stopped by their own process ids.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::smtp_stub::PATIENCE;
use super::until::until;

/// Every mailbox opens with it.
pub const PASSWORD: &str = "secret";

/// Postfix accepts for these; everybody else is unknown (550 5.1.1). The last stands in a domain
/// whose mail goes to a Maildir, because Dovecot's LMTP takes no SMTPUTF8.
const KNOWN: [&str; 2] = ["ann@example.com", "li@example.com"];

pub struct MailServer {
    folder: tempfile::TempDir,
    dovecot: Child,
    smtp: u16,
    imap: u16,
}

impl MailServer {
    /// Starts both and waits until they answer.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [smtp, lmtp, imap] = free_ports();
        let root = folder.path();
        open_to_all(root);
        for name in ["postfix", "queue", "lib", "dovecot", "mail", "maildir"] {
            fs::create_dir(root.join(name)).unwrap();
            open_to_all(&root.join(name));
        }
        run("chown", &["postfix", &shown(&root.join("lib"))]);
        run("chown", &["mail:mail", &shown(&root.join("mail"))]);
        run("chown", &["mail:mail", &shown(&root.join("maildir"))]);
        fs::write(root.join("postfix/main.cf"), main_cf(root, lmtp)).unwrap();
        fs::write(root.join("postfix/master.cf"), master_cf(smtp)).unwrap();
        fs::write(root.join("dovecot/dovecot.conf"), dovecot_conf(root, lmtp, imap)).unwrap();
        let dovecot = Command::new("dovecot")
            .args(["-F", "-c", &shown(&root.join("dovecot/dovecot.conf"))])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(root.join("dovecot/stderr")).unwrap())
            .spawn()
            .expect("dovecot (Debian: dovecot-core, dovecot-lmtpd, dovecot-imapd)");
        // From here on dropped, and so stopped, whatever fails.
        let server = Self { folder, dovecot, smtp, imap };
        run("postfix", &["-c", &shown(&server.folder.path().join("postfix")), "start"]);
        Self::wait_for(smtp, "220 ");
        Self::wait_for(lmtp, "220 ");
        Self::wait_for(imap, "* OK");
        server
    }

    /// For a provider's `url`.
    pub fn url(&self) -> String {
        format!("smtp://127.0.0.1:{}", self.smtp)
    }

    /// `127.0.0.1:port` of IMAP.
    pub fn imap(&self) -> String {
        format!("127.0.0.1:{}", self.imap)
    }

    /// The mails delivered to the Maildir of `utf8.test`, waited for.
    pub fn maildir(&self, wanted: usize) -> Vec<Vec<u8>> {
        let folder = self.folder.path().join("maildir/new");
        let files = || -> Vec<_> { fs::read_dir(&folder).into_iter().flatten().map(|it| it.unwrap().path()).collect() };
        until("mails in the Maildir", PATIENCE, || (files().len() >= wanted).then_some(()));
        files().iter().map(|path| fs::read(path).unwrap()).collect()
    }

    fn wait_for(port: u16, greeting: &str) {
        use std::io::Read as _;
        until("the mail server answers", PATIENCE, || {
            let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
            stream.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
            let mut start = vec![0; greeting.len()];
            stream.read_exact(&mut start).ok()?;
            (start == greeting.as_bytes()).then_some(())
        });
    }

    /// What both said, for a failing test.
    pub fn logs(&self) -> String {
        let root = self.folder.path();
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
        format!("postfix: {}\ndovecot: {}{}", read("log"), read("dovecot/log"), read("dovecot/stderr"))
    }

    fn stop(&mut self) -> std::io::Result<()> {
        let pid_file = self.folder.path().join("queue/pid/master.pid");
        if let Ok(pid) = fs::read_to_string(pid_file) {
            Command::new("kill").arg(pid.trim()).status()?;
        }
        Command::new("kill").arg(self.dovecot.id().to_string()).status()?;
        self.dovecot.wait()?;
        Ok(())
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("the mail server could not be stopped: {error}");
        }
    }
}

fn shown(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn open_to_all(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn run(program: &str, arguments: &[&str]) {
    let done = Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{program} {arguments:?}: {said} (the tests run as root)");
}

/// Held all at once, so that they differ; given back before they are used.
fn free_ports<const N: usize>() -> [u16; N] {
    let held: [TcpListener; N] = std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    held.map(|one| one.local_addr().unwrap().port())
}

fn main_cf(root: &Path, lmtp: u16) -> String {
    let root = root.display();
    let known = KNOWN.map(|one| format!("{one}=x")).join(", ");
    format!(
        "compatibility_level = 3.6
queue_directory = {root}/queue
data_directory = {root}/lib
mail_owner = postfix
setgid_group = postdrop
daemon_directory = /usr/lib/postfix/sbin
command_directory = /usr/sbin
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
myhostname = mx.test
mydestination =
alias_maps =
alias_database =
local_recipient_maps =
virtual_mailbox_domains = example.com, utf8.test
virtual_mailbox_maps = inline:{{{known}, josé@utf8.test=maildir/}}
virtual_mailbox_base = {root}
virtual_mailbox_limit = 0
virtual_minimum_uid = 1
virtual_uid_maps = static:8
virtual_gid_maps = static:8
virtual_transport = lmtp:inet:127.0.0.1:{lmtp}
transport_maps = inline:{{utf8.test=virtual:}}
mynetworks = 127.0.0.0/8
smtpd_recipient_restrictions = permit_mynetworks, reject
smtpd_client_connection_rate_limit = 0
smtputf8_enable = yes
message_size_limit = 30000000
maillog_file = {root}/log
maillog_file_prefixes = {root}
"
    )
}

fn master_cf(smtp: u16) -> String {
    let mut out = format!("127.0.0.1:{smtp} inet n - n - - smtpd\n");
    for (name, kind, private, wakeup, most, program) in [
        ("cleanup", "unix", "n", "-", "0", "cleanup"),
        ("qmgr", "unix", "n", "300", "1", "qmgr"),
        ("rewrite", "unix", "-", "-", "-", "trivial-rewrite"),
        ("bounce", "unix", "-", "-", "0", "bounce"),
        ("defer", "unix", "-", "-", "0", "bounce"),
        ("trace", "unix", "-", "-", "0", "bounce"),
        ("verify", "unix", "-", "-", "1", "verify"),
        ("proxymap", "unix", "-", "-", "-", "proxymap"),
        ("error", "unix", "-", "-", "-", "error"),
        ("retry", "unix", "-", "-", "-", "error"),
        ("discard", "unix", "-", "-", "-", "discard"),
        ("lmtp", "unix", "-", "-", "-", "lmtp"),
        ("anvil", "unix", "-", "-", "1", "anvil"),
        ("scache", "unix", "-", "-", "1", "scache"),
        ("postlog", "unix-dgram", "n", "-", "1", "postlogd"),
    ] {
        out.push_str(&format!("{name} {kind} {private} - n {wakeup} {most} {program}\n"));
    }
    // Delivers as the mailbox's owner.
    out.push_str("virtual unix - n n - - virtual\n");
    out
}

fn dovecot_conf(root: &Path, lmtp: u16, imap: u16) -> String {
    let root = root.display();
    format!(
        "base_dir = {root}/dovecot/run
state_dir = {root}/dovecot/state
log_path = {root}/dovecot/log
protocols = lmtp imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
first_valid_uid = 1
mail_location = maildir:{root}/mail/%u
passdb {{
  driver = static
  args = password={PASSWORD}
}}
userdb {{
  driver = static
  args = uid=mail gid=mail home={root}/mail/%u allow_all_users=yes
}}
service lmtp {{
  inet_listener lmtp {{
    address = 127.0.0.1
    port = {lmtp}
  }}
}}
service imap-login {{
  inet_listener imap {{
    port = {imap}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
"
    )
}
