//! An event loop by `poll(2)`: rank 0 shows what the others send, and what is typed.
//!
//! `mizzen run -n 3 -- target/release/examples/event_loop`

use mizzen::{Deck, Error, Result};
use rustix::event::{PollFd, PollFlags, poll};

const MESSAGES: u32 = 5;

fn main() -> Result<()> {
    let deck = Deck::join()?;
    if deck.rank() != 0 {
        let inbox = deck.fetch("inbox")?;
        let send = |number| inbox.send_value(&format!("{number} from rank {}", deck.rank()));
        return (0..MESSAGES).try_for_each(send);
    }
    let inbox = deck.mailbox()?;
    deck.bind("inbox", &inbox)?;
    let descriptor = inbox.descriptor()?;
    let stdin = std::io::stdin();
    let (mut is_open, mut left) = (true, (deck.size() - 1) * MESSAGES);
    while left > 0 {
        let mut descriptors = vec![PollFd::new(&descriptor, PollFlags::IN)];
        if is_open {
            descriptors.push(PollFd::new(&stdin, PollFlags::IN));
        }
        poll(&mut descriptors, None).map_err(|error| Error::Program(error.into()))?;
        let [message, typed] = [0, 1].map(|at| {
            let events = descriptors.get(at).map(PollFd::revents);
            events.is_some_and(|events| !events.is_empty())
        });
        if message {
            // All there are: after the last one the descriptor is not readable any more.
            while let Some(mut incoming) = inbox.try_retrieve()? {
                println!("{}", incoming.unpack_value::<String>()?);
                left -= 1;
            }
        }
        if typed {
            let typed = rustix::io::read(&stdin, &mut [0; 1024]).unwrap_or(0);
            is_open = typed > 0;
            println!("{typed} bytes were typed");
        }
    }
    Ok(())
}
