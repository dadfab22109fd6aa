//! Connections over a long way, where much is under way at a time.
//!
//! The system's own choice of memory for what is under way ends too early, and loss is no sign of a full cable. What waits and is not under way yet stays with
//! us, where it takes turns. Several connections over one cable each believe that they could have all of it, and fill its queue; who knows what the cable
//! carries gives each its share.
//!
//! This file has unsafe code because no safe interface sets the pace of a socket.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

use socket2::SockRef;

/// What is known of a long way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Far {
    /// Bytes a second that a connection sends at most; 0: as many as it finds room for.
    pub pace: u64,
}

impl Far {
    /// Sets up a connection for a long way, as far as the host allows.
    ///
    /// ```
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let socket = std::net::TcpStream::connect(listener.local_addr()?)?;
    /// mizzen_tcp::Far::default().set_up(&socket2::SockRef::from(&socket))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// What the system says, if the pace cannot be set.
    pub fn set_up(self, socket: &SockRef<'_>) -> io::Result<()> {
        // What the host does not allow is done without.
        if is_given_more() {
            let _ = socket.set_send_buffer_size(SEND_MEMORY);
        }
        let _ = socket.set_tcp_notsent_lowat(UNSENT);
        let _ = socket.set_tcp_congestion(b"bbr");
        match self.pace {
            0 => Ok(()),
            pace => set_pace(socket, pace),
        }
    }
}

/// Whether who asks for memory gets more than who lets the system choose. It gives at most `net.core.wmem_max`, doubled; by itself it goes up to the last number of
/// `net.ipv4.tcp_wmem`.
fn is_given_more() -> bool {
    static MORE: OnceLock<bool> = OnceLock::new();
    let last_of = |file: &str| {
        let text = std::fs::read_to_string(file).ok()?;
        text.split_whitespace().last()?.parse::<u64>().ok()
    };
    *MORE.get_or_init(|| {
        let asked = last_of("/proc/sys/net/core/wmem_max");
        let chosen = last_of("/proc/sys/net/ipv4/tcp_wmem");
        asked
            .zip(chosen)
            .is_some_and(|(asked, chosen)| 2 * asked > chosen)
    })
}

fn set_pace(socket: &SockRef<'_>, pace: u64) -> io::Result<()> {
    let length = size_of_val(&pace) as libc::socklen_t;
    // SAFETY: the descriptor is open, and the kernel reads `length` bytes of `pace`, which has that size.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MAX_PACING_RATE,
            (&raw const pace).cast(),
            length,
        )
    };
    match outcome {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What is under way at 10 Gbit/s and 50 ms.
const SEND_MEMORY: usize = 64 << 20;
/// What waits in the system, at most, while there is more.
const UNSENT: u32 = 256 << 10;
