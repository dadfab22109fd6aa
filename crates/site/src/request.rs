//! What is asked inside: a head of HTTP, so that every client that knows proxies can ask for a connection.
//!
//! | head | meaning |
//! | --- | --- |
//! | `CONNECT THING`, with `Mizzen-Meeting: JOB@SITE` | connect me with what is offered as THING there |
//! | `OFFER THING`, with `Mizzen-Meeting: JOB@SITE` and `Mizzen-Port: PORT` | while this connection is up, offer that port of mine |
//! | `GET /site` | which site is this |
//! | `GET /status` | how are things |

use mizzen_tcp::Through;

use crate::meeting::{Meeting, is_thing};
use crate::refusal::Refusal;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[doc(hidden)]
pub enum Request {
    Connect {
        meeting: Meeting,
        thing: String,
    },
    Offer {
        meeting: Meeting,
        thing: String,
        port: u16,
    },
    Site,
    Status,
}

impl Request {
    /// Reads a head that ends with an empty line.
    ///
    /// # Errors
    ///
    /// What is told to whoever asked.
    pub fn read(head: &[u8]) -> Result<Self, Refusal> {
        let bad = |what: &str| {
            Refusal::new(
                Refusal::BAD,
                format!("this gateway does not understand {what}"),
            )
        };
        let head = std::str::from_utf8(head).map_err(|_| bad("what is not text"))?;
        let mut lines = head.split("\r\n");
        let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [method, target, "HTTP/1.1" | "HTTP/1.0"] = first[..] else {
            return Err(bad("a request that is not one of HTTP/1.1"));
        };
        let (mut meeting, mut port) = (None, None);
        for line in lines.filter(|line| !line.is_empty()) {
            let (name, value) = line
                .split_once(':')
                .ok_or_else(|| bad("a header without a colon"))?;
            let value = value.trim();
            if name.eq_ignore_ascii_case(MEETING) {
                let read = value.parse::<Meeting>();
                meeting =
                    Some(read.map_err(|error| Refusal::new(Refusal::BAD, error.to_string()))?);
            } else if name.eq_ignore_ascii_case(PORT) {
                let read = value.parse::<u16>().ok().filter(|port| *port > 0);
                port = Some(read.ok_or_else(|| bad("this port"))?);
            }
        }
        let thing = || match is_thing(target) {
            true => Ok(target.to_owned()),
            false => Err(bad("what is asked for")),
        };
        let met = |meeting: Option<Meeting>| {
            meeting.ok_or_else(|| bad("a request without Mizzen-Meeting: JOB@SITE"))
        };
        match (method, target) {
            ("CONNECT", _) => Ok(Self::Connect {
                meeting: met(meeting)?,
                thing: thing()?,
            }),
            ("OFFER", _) => {
                let port = port.ok_or_else(|| bad("an offer without Mizzen-Port"))?;
                Ok(Self::Offer {
                    meeting: met(meeting)?,
                    thing: thing()?,
                    port,
                })
            }
            ("GET", "/site") => Ok(Self::Site),
            ("GET", "/status") => Ok(Self::Status),
            _ => Err(bad(
                "this request; it knows CONNECT, OFFER, GET /site and GET /status",
            )),
        }
    }
}

/// Which job is to be met with which site.
pub(crate) const MEETING: &str = Through::MEETING;
/// Which port is offered.
pub(crate) const PORT: &str = "Mizzen-Port";
/// The longest head.
pub(crate) const MAX_HEAD: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read() {
        let meeting: Meeting = "render@b".parse().unwrap();
        let read = |head: &str| Request::read(head.as_bytes());
        let thing = "10.2.0.5:40001".to_owned();
        assert_eq!(
            read("CONNECT 10.2.0.5:40001 HTTP/1.1\r\nHost: x\r\nmizzen-meeting:render@b\r\n\r\n"),
            Ok(Request::Connect {
                meeting: meeting.clone(),
                thing
            })
        );
        assert_eq!(
            read("OFFER lead HTTP/1.1\r\nMizzen-Port: 7\r\nMizzen-Meeting: render@b\r\n\r\n"),
            Ok(Request::Offer {
                meeting,
                thing: "lead".into(),
                port: 7
            })
        );
        assert_eq!(read("GET /site HTTP/1.1\r\n\r\n"), Ok(Request::Site));
        assert_eq!(read("GET /status HTTP/1.0\r\n\r\n"), Ok(Request::Status));
    }

    #[test]
    fn what_is_no_request_is_refused_with_a_sentence() {
        for wrong in [
            &b""[..],
            b"\r\n\r\n",
            b"\xff\r\n\r\n",
            b"CONNECT x HTTP/2\r\n\r\n",
            b"CONNECT x HTTP/1.1\r\n\r\n",
            b"CONNECT a/b HTTP/1.1\r\nMizzen-Meeting: render@b\r\n\r\n",
            b"CONNECT x HTTP/1.1\r\nMizzen-Meeting: render\r\n\r\n",
            b"CONNECT x HTTP/1.1\r\nMizzen-Meeting\r\n\r\n",
            b"OFFER x HTTP/1.1\r\nMizzen-Meeting: render@b\r\n\r\n",
            b"OFFER x HTTP/1.1\r\nMizzen-Meeting: render@b\r\nMizzen-Port: 0\r\n\r\n",
            b"OFFER x HTTP/1.1\r\nMizzen-Meeting: render@b\r\nMizzen-Port: 70000\r\n\r\n",
            b"GET / HTTP/1.1\r\n\r\n",
            b"POST /site HTTP/1.1\r\n\r\n",
        ] {
            let refused = Request::read(wrong).expect_err("no request");
            assert!(
                refused.code == 400 && !refused.sentence.is_empty(),
                "{wrong:?}"
            );
        }
    }
}
