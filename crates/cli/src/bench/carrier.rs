//! What carries messages of one size between two sides, and the loops that are timed.
//!
//! The loops are provided methods, so that each carrier gets its own, with its `send` and `receive` inside.

use std::time::Instant;

/// Carries messages of one size from each of two sides to the other.
pub(crate) trait Carrier {
    /// Gets ready for at most `messages` messages each way, before the clock starts; says for how many.
    fn prepare(&mut self, messages: u64) -> anyhow::Result<u64> {
        Ok(messages)
    }

    /// Sends one message: what was received last, if the sides play with one ball.
    fn send(&mut self) -> anyhow::Result<()>;

    /// Waits for one message.
    fn receive(&mut self) -> anyhow::Result<()>;

    /// Writes `mark` into what is sent next. A message of less than eight bytes has room for a part of it.
    fn mark(&mut self, mark: u64);

    /// The mark of what was received last.
    fn marked(&self) -> u64;

    fn serve(&mut self, rounds: u64) -> anyhow::Result<()> {
        for _ in 0..rounds {
            self.send()?;
            self.receive()?;
        }
        Ok(())
    }

    fn answer(&mut self, rounds: u64) -> anyhow::Result<()> {
        for _ in 0..rounds {
            self.receive()?;
            self.send()?;
        }
        Ok(())
    }

    /// As `serve`, with the one-way time of each round in nanoseconds. Reading the clock is part of it.
    fn serve_timed(&mut self, rounds: u64, times: &mut Vec<f64>) -> anyhow::Result<()> {
        let mut before = Instant::now();
        for _ in 0..rounds {
            self.send()?;
            self.receive()?;
            let now = Instant::now();
            times.push((now - before).as_nanos() as f64 / 2.0);
            before = now;
        }
        Ok(())
    }

    fn send_many(&mut self, messages: u64) -> anyhow::Result<()> {
        for _ in 0..messages {
            self.send()?;
        }
        Ok(())
    }

    fn receive_many(&mut self, messages: u64) -> anyhow::Result<()> {
        for _ in 0..messages {
            self.receive()?;
        }
        Ok(())
    }
}
