//! The table of a message's pieces as it is written: that of a message of few pieces needs no memory of its own.

use super::pieces::{Entry, write_varint};

/// Bytes of three entries of any length, and of their number.
const FEW: usize = 31;

/// The bytes before a message's pieces: how many there are, and the entry of each. Empty for a message of one piece.
pub(crate) struct Table {
    few: [u8; FEW],
    len: usize,
    /// All of them, when there are more.
    many: Vec<u8>,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self {
            few: [0; FEW],
            len: 0,
            many: Vec::new(),
        }
    }

    /// Begins the table of so many pieces.
    pub(crate) fn push_count(&mut self, pieces: usize) {
        write_varint(pieces as u64, |byte| self.push(byte));
    }

    pub(crate) fn push_entry(&mut self, entry: Entry) {
        write_varint(entry.encode(), |byte| self.push(byte));
    }

    fn push(&mut self, byte: u8) {
        match self.few.get_mut(self.len) {
            Some(place) => *place = byte,
            None => {
                if self.many.is_empty() {
                    self.many.extend_from_slice(&self.few);
                }
                self.many.push(byte);
            }
        }
        self.len += 1;
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self.few.get(..self.len) {
            Some(few) => few,
            None => &self.many,
        }
    }

    /// The same in memory of its own.
    pub(crate) fn into_vec(self) -> Vec<u8> {
        match self.few.get(..self.len) {
            Some(few) => few.to_vec(),
            None => self.many,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pieces::{Kind, read_varint};
    use super::*;

    #[test]
    fn a_table_of_any_length_is_read_as_it_was_written() {
        for count in [0usize, 1, 3, 4, 9, 200] {
            let entries = (0..count).map(|number| Entry {
                len: 1 << (number * 7 % 50),
                kind: [Kind::Plain, Kind::Lent, Kind::Value][number % 3],
            });
            let mut table = Table::new();
            table.push_count(count);
            entries.clone().for_each(|entry| table.push_entry(entry));
            let (read, mut at) = read_varint(table.bytes()).unwrap();
            assert_eq!(read, count as u64);
            for entry in entries {
                let (found, used) = Entry::read(&table.bytes()[at..]).unwrap();
                assert_eq!(found, entry);
                at += used;
            }
            assert_eq!(at, table.bytes().len());
            assert_eq!(table.bytes().to_vec(), table.into_vec());
        }
    }
}
