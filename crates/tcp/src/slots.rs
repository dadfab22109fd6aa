//! Connections by number, so that a late event for a closed one is recognised.

/// The number of a connection. Not used again until 2³² others had its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key(u64);

impl Key {
    pub(crate) fn from_u64(number: u64) -> Self {
        Self(number)
    }

    pub(crate) fn as_u64(self) -> u64 {
        self.0
    }

    fn new(index: usize, generation: u32) -> Self {
        Self(u64::from(generation) << 32 | index as u64)
    }

    fn index(self) -> usize {
        (self.0 & 0xffff_ffff) as usize
    }
}

/// Values by key.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slots<T> {
    pub(crate) fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }

    pub(crate) fn insert(&mut self, value: T) -> Key {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot {
                generation: 0,
                value: None,
            });
            self.slots.len() - 1
        });
        self.slots[index].value = Some(value);
        Key::new(index, self.slots[index].generation)
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let slot = self.slots.get(key.index())?;
        slot.value
            .as_ref()
            .filter(|_| Key::new(key.index(), slot.generation) == key)
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.index())?;
        slot.value
            .as_mut()
            .filter(|_| Key::new(key.index(), slot.generation) == key)
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        self.get_mut(key)?;
        let slot = &mut self.slots[key.index()];
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(key.index());
        slot.value.take()
    }

    /// Exchanges the value of a key that stays.
    pub(crate) fn replace(&mut self, key: Key, make: impl FnOnce(T) -> T) {
        if self.get_mut(key).is_some() {
            let slot = &mut self.slots[key.index()];
            slot.value = slot.value.take().map(make);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_does_not_reach_the_next_value_in_its_place() {
        let mut slots = Slots::new();
        let first = slots.insert('a');
        assert_eq!(slots.remove(first), Some('a'));
        let second = slots.insert('b');
        assert_eq!(slots.get_mut(first), None);
        assert_eq!(slots.remove(first), None);
        assert_eq!(slots.get_mut(second), Some(&mut 'b'));
    }
}
