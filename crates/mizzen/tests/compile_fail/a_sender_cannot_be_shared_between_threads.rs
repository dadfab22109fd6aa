use core::marker::PhantomData;

use mizzen::Sender;

struct Shared<T>(PhantomData<T>);

/// Asked for in this way, the compiler's answer does not name private fields.
impl<T: Sync> Shared<T> {
    const ALLOWED: bool = true;
}

trait Otherwise {
    const ALLOWED: bool = false;
}

impl<T> Otherwise for Shared<T> {}

const _: () = assert!(
    Shared::<Sender>::ALLOWED,
    "a second thread would need `Sender: Sync`"
);

fn main() {}
