//! What the compiler must not refuse: Madeleine's rules on when a buffer may be touched, and no stricter ones.
//!
//! Beside `compile_fail.rs`. Each file's name is a sentence that is true; each is compiled, and run.

mod a_cheaper_source_may_change_after_the_post;
mod a_cheaper_target_may_be_declared_after_its_message;
mod a_mailbox_and_a_sender_may_move_to_another_thread;
mod an_early_return_after_unpack_cheaper_is_allowed;

#[test]
fn a_cheaper_source_may_change_after_the_post() {
    a_cheaper_source_may_change_after_the_post::main();
}

#[test]
fn a_cheaper_target_may_be_declared_after_its_message() {
    a_cheaper_target_may_be_declared_after_its_message::main();
}

#[test]
fn a_mailbox_and_a_sender_may_move_to_another_thread() {
    a_mailbox_and_a_sender_may_move_to_another_thread::main();
}

#[test]
fn an_early_return_after_unpack_cheaper_is_allowed() {
    an_early_return_after_unpack_cheaper_is_allowed::main();
}
