//! What the compiler refuses: Madeleine's rules on when a buffer may be touched. What it must accept is in `compile_pass`: here,
//! nothing has to be built, only checked.
//!
//! Each file's name is a sentence that is true. `TRYBUILD=overwrite cargo test -p mizzen --test compile_fail` writes the
//! expected words of the compiler anew, after a change of compiler or of signatures; read the difference before committing.

#[test]
fn the_compiler_refuses_what_would_break_a_message() {
    let tests = trybuild::TestCases::new();
    tests.compile_fail("tests/compile_fail/*.rs");
}
