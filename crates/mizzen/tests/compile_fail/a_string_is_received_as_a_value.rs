fn main() -> mizzen::Result<()> {
    let inbox = mizzen::Deck::join()?.mailbox()?;
    println!("{}", inbox.receive::<String>()?);
    Ok(())
}
