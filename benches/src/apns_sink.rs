//! What pushes are sent to: HTTP/2 over TLS as Apple speaks it. Reads each request to its end, counts it,
//! answers 200 at once, and keeps nothing, on one thread. Logins are not looked at.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use tempfile::NamedTempFile;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::child::Server;

const MOST_CONNECTIONS: usize = 64;
const STREAMS: u32 = 1_000;

/// The sink as a child of its own, on one thread.
pub(crate) struct Sink {
    server: Server,
    /// Whom to trust.
    ca: NamedTempFile,
}

impl Sink {
    pub(crate) async fn start() -> Result<Self> {
        let ca = NamedTempFile::new()?;
        let mut command = tokio::process::Command::new(std::env::current_exe()?);
        let server = Server::start("apns-sink", command.arg("apns-sink").arg(ca.path())).await?;
        Ok(Self { server, ca })
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.server.address)
    }

    pub(crate) fn ca(&self) -> Result<String> {
        Ok(std::fs::read_to_string(self.ca.path())?)
    }

    pub(crate) async fn stop(self) -> Result<()> {
        self.server.stop().await
    }
}

/// The child's own main: writes its certificate to the file that it is given.
pub(crate) fn serve(ca: Option<String>) -> Result<()> {
    let tls = certified(Path::new(&ca.context("where the certificate goes")?))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        listen(listener, TlsAcceptor::from(tls)).await
    })
}

fn certified(ca: &Path) -> Result<Arc<rustls::ServerConfig>> {
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.self_signed(&key)?;
    std::fs::write(ca, certificate.pem())?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).map_err(|why| anyhow!("its key: {why}"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

/// Takes what comes, for ever.
async fn listen(listener: TcpListener, tls: TlsAcceptor) -> Result<()> {
    let count = Arc::new(AtomicUsize::new(0));
    let places = Arc::new(tokio::sync::Semaphore::new(MOST_CONNECTIONS));
    loop {
        let place = places.clone().acquire_owned().await?;
        let (stream, _) = listener.accept().await?;
        let (count, tls) = (count.clone(), tls.clone());
        tokio::spawn(async move {
            // A sender that hangs up in the middle shows as one whose pushes did not come.
            converse(stream, &tls, &count).await.ok();
            drop(place);
        });
    }
}

async fn converse(stream: TcpStream, tls: &TlsAcceptor, count: &Arc<AtomicUsize>) -> Result<()> {
    stream.set_nodelay(true)?;
    let stream = tls.accept(stream).await?;
    let mut session = h2::server::Builder::new().max_concurrent_streams(STREAMS).handshake::<_, Bytes>(stream).await?;
    while let Some(asked) = session.accept().await {
        let (request, mut respond) = asked?;
        let count = count.clone();
        tokio::spawn(async move {
            let mut body = request.into_body();
            while let Some(Ok(part)) = body.data().await {
                body.flow_control().release_capacity(part.len()).ok();
            }
            let number = count.fetch_add(1, Ordering::Relaxed);
            let answer = http::Response::builder().header("apns-id", format!("{number:032x}")).body(());
            answer.ok().and_then(|answer| respond.send_response(answer, true).ok())
        });
    }
    Ok(())
}
