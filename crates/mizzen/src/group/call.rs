//! What a member does, in words and as a number: members that do different things have different numbers.

use core::fmt;
use core::panic::Location;

use mizzen_proto::group::plan::Operation;

/// One call of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// What the program called.
    pub(super) name: &'static str,
    pub(super) operation: Operation,
    /// How many elements, where all members must have as many.
    pub(super) count: Option<usize>,
    pub(super) element: &'static str,
    /// How data are combined.
    pub(super) op: Option<&'static str>,
    pub(super) at: &'static Location<'static>,
}

impl Call {
    pub(super) fn new(
        name: &'static str,
        operation: Operation,
        at: &'static Location<'static>,
    ) -> Self {
        Self {
            name,
            operation,
            count: None,
            element: "",
            op: None,
            at,
        }
    }

    /// Of elements of a type, and as many of them if all members have as many.
    pub(super) fn of<T>(mut self, count: Option<usize>) -> Self {
        self.element = core::any::type_name::<T>();
        self.count = count;
        self
    }

    /// Combined like this.
    pub(super) fn with<O>(mut self, _: &O) -> Self {
        self.op = Some(core::any::type_name::<O>());
        self
    }

    /// FNV-1a (draft-eastlake-fnv) of all but the place in the program: members may call the same from several places.
    pub(super) fn print(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |bytes: &[u8]| {
            for byte in bytes.iter().chain(&[0xff]) {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        };
        add(self.name.as_bytes());
        add(&self.root().map_or(0, |root| root + 1).to_le_bytes());
        add(&self
            .count
            .map_or(u64::MAX, |count| count as u64)
            .to_le_bytes());
        add(self.element.as_bytes());
        add(self.op.unwrap_or("").as_bytes());
        hash
    }

    pub(super) fn root(&self) -> Option<u32> {
        match self.operation {
            Operation::Broadcast(root)
            | Operation::Reduce(root)
            | Operation::Gather(root)
            | Operation::Scatter(root) => Some(root.0),
            _ => None,
        }
    }
}

/// Prints that were computed before: of the last calls, by their places in the program.
#[derive(Debug, Default)]
pub(super) struct Prints([Option<(Key, u64)>; Prints::KEPT]);

/// What a print is made of: texts by where they lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key {
    name: usize,
    element: usize,
    op: usize,
    count: Option<usize>,
    root: Option<u32>,
}

impl Prints {
    const KEPT: usize = 8;

    /// The print of a call.
    #[inline]
    pub(super) fn of(&mut self, call: &Call) -> u64 {
        let key = Key {
            name: call.name.as_ptr().addr(),
            element: call.element.as_ptr().addr(),
            op: call.op.map_or(0, |op| op.as_ptr().addr()),
            count: call.count,
            root: call.root(),
        };
        let place = core::ptr::from_ref(call.at).addr() / align_of::<Location<'_>>() % Self::KEPT;
        match &self.0[place] {
            Some((known, print)) if *known == key => *print,
            _ => {
                let print = call.print();
                self.0[place] = Some((key, print));
                print
            }
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        match (self.count, self.element) {
            (_, "") => (),
            (Some(count), element) => write!(f, " of {count} {element}")?,
            (None, element) => write!(f, " of {element}")?,
        }
        if let Some(op) = self.op {
            write!(f, " by {}", op.rsplit("::").next().unwrap_or(op))?;
        }
        if let Some(root) = self.root() {
            write!(f, ", root {root}")?;
        }
        write!(f, " at {}:{}", self.at.file(), self.at.line())
    }
}
