//! Which of two would get the next message?

use mizzen::Mailbox;

async fn retrieve(inbox: &mut Mailbox) -> mizzen::Result<()> {
    let first = inbox.retrieve_async();
    let second = inbox.retrieve_async();
    second.await?;
    first.await?;
    Ok(())
}

fn main() {
    let _ = retrieve;
}
