//! A connection to one server: its socket, TLS and login.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::socket2::{SockRef, TcpKeepalive};
use redis::{AsyncConnectionConfig, RedisConnectionInfo, Value};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use secrecy::ExposeSecret as _;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use super::errors::Trouble;
use super::settings::{Address, Login, Target};

/// Calls that may wait to be written; the rest wait in their callers.
const WAITING: usize = 512;
/// An idle connection that the network forgot is noticed after this and three probes.
const KEEPALIVE: Duration = Duration::from_secs(10);
/// Bytes that nobody acknowledges end the connection.
const UNACKNOWLEDGED: Duration = Duration::from_secs(5);

trait Duplex: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Duplex for T {}

type Stream = Box<dyn Duplex>;

/// How to connect to any of the servers.
pub struct Dialer {
    tls: Option<Arc<rustls::ClientConfig>>,
    database: i64,
    login: Login,
}

/// An open connection; closes when the last reference goes.
pub struct Connection {
    calls: MultiplexedConnection,
    /// Reads and writes; aborted when dropped.
    _driver: JoinSet<()>,
    driven: AbortHandle,
}

impl Dialer {
    /// # Errors
    /// The file of roots cannot be used: why.
    pub fn new(target: &Target, ca_file: Option<&Path>) -> Result<Self, String> {
        let tls = if target.tls { Some(Arc::new(client_tls(ca_file)?)) } else { None };
        Ok(Self { tls, database: target.database, login: target.login.clone() })
    }

    /// # Errors
    /// Refused, late, or the login was.
    pub async fn connect(&self, to: &Address, until: Instant) -> Result<Connection, Trouble> {
        self.connect_as(to, self.info(true), until).await
    }

    /// Without a login and a database: sentinels have none, or their own default.
    ///
    /// # Errors
    /// Refused or late.
    pub async fn connect_sentinel(&self, to: &Address, login: bool, until: Instant) -> Result<Connection, Trouble> {
        self.connect_as(to, self.info(login).set_db(0), until).await
    }

    async fn connect_as(&self, to: &Address, info: RedisConnectionInfo, until: Instant) -> Result<Connection, Trouble> {
        let connecting = async {
            let stream = self.stream(to).await.map_err(|_| Trouble::Cut)?;
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(None)
                .set_response_timeout(None)
                .set_pipeline_buffer_size(WAITING);
            let (calls, driver) = MultiplexedConnection::new_with_config(&info, stream, config).await?;
            let mut tasks = JoinSet::new();
            let driven = tasks.spawn(driver);
            Ok(Connection { calls, _driver: tasks, driven })
        };
        timeout_at(until, connecting).await.map_err(|_| Trouble::Late)?
    }

    /// # Errors
    /// Refused, late, or the login was.
    pub async fn subscribe(&self, to: &Address, until: Instant) -> Result<redis::aio::PubSub, Trouble> {
        let info = self.info(true);
        let connecting = async {
            let stream = self.stream(to).await.map_err(|_| Trouble::Cut)?;
            Ok(redis::aio::PubSub::new(&info, stream).await?)
        };
        timeout_at(until, connecting).await.map_err(|_| Trouble::Late)?
    }

    fn info(&self, login: bool) -> RedisConnectionInfo {
        let mut info = RedisConnectionInfo::default().set_skip_set_lib_name().set_db(self.database);
        if let (true, Some(password)) = (login, &self.login.password) {
            info = info.set_password(password.expose_secret());
            if let Some(user) = &self.login.user {
                info = info.set_username(user);
            }
        }
        info
    }

    async fn stream(&self, to: &Address) -> io::Result<Stream> {
        let stream = TcpStream::connect((to.host.as_str(), to.port)).await?;
        stream.set_nodelay(true)?;
        let socket = SockRef::from(&stream);
        socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE).with_retries(3))?;
        socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED))?;
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(to.host.clone())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(Box::new(TlsConnector::from(tls.clone()).connect(name, stream).await?))
    }
}

impl Connection {
    /// Whether the server has closed it, which can be known without asking.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.driven.is_finished()
    }

    /// All of them in one write, on this very connection and in this order. The answers in order,
    /// errors among them.
    ///
    /// # Errors
    /// [`Trouble::Cut`], [`Trouble::Late`]: they may have run.
    pub async fn ask_all(&self, commands: Vec<redis::Cmd>, until: Instant) -> Result<Vec<Value>, Trouble> {
        let count = commands.len();
        let mut pipeline = redis::Pipeline::with_capacity(count);
        for command in commands {
            pipeline.add_command(command);
        }
        let mut calls = self.calls.clone();
        let answers = timeout_at(until, calls.send_packed_commands(&pipeline, 0, count)).await;
        Ok(answers.map_err(|_| Trouble::Late)??)
    }

    /// # Errors
    /// The server's, or as [`Self::ask_all`].
    pub async fn ask(&self, command: &redis::Cmd, until: Instant) -> Result<Value, Trouble> {
        let mut calls = self.calls.clone();
        let answer = timeout_at(until, calls.send_packed_command(command)).await.map_err(|_| Trouble::Late)??;
        checked(answer)
    }
}

/// # Errors
/// The server's, where that is what was answered.
pub fn checked(answer: Value) -> Result<Value, Trouble> {
    match answer {
        Value::ServerError(error) => Err(Trouble::from(&error)),
        value => Ok(value),
    }
}

fn client_tls(ca_file: Option<&Path>) -> Result<rustls::ClientConfig, String> {
    let mut roots = rustls::RootCertStore::empty();
    match ca_file {
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Some(file) => {
            let shown = file.display();
            let certificates = CertificateDer::pem_file_iter(file).map_err(|error| format!("{shown}: {error}"))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|error| format!("{shown}: {error}"))?;
                roots.add(certificate).map_err(|error| format!("{shown}: {error}"))?;
            }
        }
    }
    if roots.is_empty() {
        return Err(ca_file.map_or_else(
            || "there are no trusted roots to check a server's certificate by".into(),
            |file| format!("{} holds no certificate", file.display()),
        ));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
