//! The other end of a connection, which a test plays.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Instant;

use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};

use super::PATIENCE;

/// One end of a connection, with TLS of its own.
pub(crate) struct Other {
    pub(crate) stream: TcpStream,
    pub(crate) tls: Connection,
    /// Whether bytes are as they are from now on.
    pub(crate) is_clear: bool,
    /// What the driver said, behind the handshake.
    pub(crate) heard: Vec<u8>,
    /// What the driver said, as it came.
    pub(crate) raw: Vec<u8>,
    /// Why we do not believe the driver.
    pub(crate) failure: Option<rustls::Error>,
    pub(crate) is_closed: bool,
    incoming: Vec<u8>,
}

impl Other {
    pub(crate) fn client(stream: TcpStream, config: Arc<ClientConfig>) -> Self {
        let tls = ClientConnection::new(config, mizzen_identity::server_name()).unwrap();
        Self::new(stream, tls.into())
    }

    pub(crate) fn server(stream: TcpStream, config: Arc<ServerConfig>) -> Self {
        Self::new(stream, ServerConnection::new(config).unwrap().into())
    }

    fn new(stream: TcpStream, mut tls: Connection) -> Self {
        tls.set_buffer_limit(None);
        stream.set_nodelay(true).unwrap();
        stream.set_nonblocking(true).unwrap();
        Self {
            stream,
            tls,
            is_clear: false,
            heard: Vec::new(),
            raw: Vec::new(),
            failure: None,
            is_closed: false,
            incoming: Vec::new(),
        }
    }

    /// Says something, under the seal if there is one.
    pub(crate) fn say(&mut self, bytes: &[u8]) {
        if self.is_clear {
            return self.write(bytes);
        }
        let sealed = self.seal(bytes);
        self.write(&sealed);
    }

    /// What would be written to say this.
    pub(crate) fn seal(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.tls.writer().write_all(bytes).unwrap();
        self.take_sealed()
    }

    /// What TLS has to say.
    pub(crate) fn take_sealed(&mut self) -> Vec<u8> {
        let mut sealed = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut sealed).unwrap();
        }
        sealed
    }

    /// Writes these bytes as they are.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) {
        let deadline = Instant::now() + PATIENCE;
        while !bytes.is_empty() && !self.is_closed {
            match self.stream.write(bytes) {
                Ok(len) => bytes = &bytes[len..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => self.is_closed = true,
            }
            assert!(Instant::now() < deadline, "the driver reads nothing");
        }
    }

    /// Says what TLS has to say, and hears what there is: on a connection that becomes clear, not a byte too much.
    pub(crate) fn step(&mut self) {
        let sealed = self.take_sealed();
        self.write(&sealed);
        self.hear_only();
    }

    pub(crate) fn hear_only(&mut self) {
        while self.read() {}
    }

    /// Whether there may be more.
    fn read(&mut self) -> bool {
        let record = |bytes: &[u8]| 5 + usize::from(u16::from_be_bytes([bytes[3], bytes[4]]));
        let missing = match self.incoming.len() {
            _ if self.is_clear => 4096,
            len @ 0..5 => 5 - len,
            len => record(&self.incoming) - len,
        };
        let mut bytes = vec![0; missing];
        match self.stream.read(&mut bytes) {
            Ok(0) => self.is_closed = true,
            Ok(len) => {
                self.raw.extend(&bytes[..len]);
                let to = if self.is_clear {
                    &mut self.heard
                } else {
                    &mut self.incoming
                };
                to.extend(&bytes[..len]);
                let is_whole = |bytes: &[u8]| bytes.len() >= 5 && bytes.len() == record(bytes);
                if is_whole(&self.incoming) {
                    self.take_record();
                }
                return true;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.is_closed = true,
        }
        false
    }

    fn take_record(&mut self) {
        let record = std::mem::take(&mut self.incoming);
        let mut rest = &record[..];
        while !rest.is_empty() && self.failure.is_none() {
            // Nothing is taken any more from an end that said goodbye.
            if self.tls.read_tls(&mut rest).unwrap() == 0 {
                return;
            }
            match self.tls.process_new_packets() {
                Ok(state) => {
                    let mut bytes = vec![0; state.plaintext_bytes_to_read()];
                    self.tls.reader().read_exact(&mut bytes).unwrap();
                    self.heard.extend(bytes);
                }
                Err(error) => self.failure = Some(error),
            }
        }
    }
}
