//! Where waiting ends: the graph of who waits for whom, its cycles, and the nodes that wait for nobody.
//!
//! Nodes are numbers. Nothing here knows what they stand for.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Who waits for whom.
#[derive(Debug, Default)]
pub(super) struct Graph {
    next: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
}

impl Graph {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            next: vec![Vec::new(); nodes],
            before: vec![Vec::new(); nodes],
        }
    }

    /// A node of its own.
    pub(super) fn add_node(&mut self) -> usize {
        self.next.push(Vec::new());
        self.before.push(Vec::new());
        self.next.len() - 1
    }

    pub(super) fn add(&mut self, from: usize, to: usize) {
        if !self.next[from].contains(&to) {
            self.next[from].push(to);
            self.before[to].push(from);
        }
    }

    /// Whether anybody waits for this one.
    pub(super) fn is_awaited(&self, node: usize) -> bool {
        !self.before[node].is_empty()
    }

    pub(super) fn waits(&self, node: usize) -> bool {
        !self.next[node].is_empty()
    }

    /// All that wait for some of these in the end, and how many steps away each is; these themselves are none away.
    pub(super) fn distances(&self, to: &[usize]) -> BTreeMap<usize, usize> {
        let mut known: BTreeMap<usize, usize> = to.iter().map(|node| (*node, 0)).collect();
        let mut queue: VecDeque<usize> = to.iter().copied().collect();
        while let Some(node) = queue.pop_front() {
            let far = known[&node] + 1;
            for before in &self.before[node] {
                if !known.contains_key(before) {
                    known.insert(*before, far);
                    queue.push_back(*before);
                }
            }
        }
        known
    }

    /// One cycle of each set of nodes that all wait for each other, each from its lowest node on.
    pub(super) fn cycles(&self) -> Vec<Vec<usize>> {
        let component = self.components();
        let mut seen = BTreeSet::new();
        let mut cycles = Vec::new();
        for node in 0..self.next.len() {
            let inside = |other: &&usize| component[**other] == component[node];
            let is_in_one = self.next[node].iter().any(|other| inside(&other));
            if is_in_one && seen.insert(component[node]) {
                cycles.push(self.walk(node, &component));
            }
        }
        cycles
    }

    /// Walks inside a component, where each node leads to another, until it comes back somewhere.
    fn walk(&self, start: usize, component: &[usize]) -> Vec<usize> {
        let mut path = vec![start];
        let mut places = BTreeMap::from([(start, 0)]);
        loop {
            let last = path[path.len() - 1];
            let inside = |other: &&usize| component[**other] == component[start];
            // Back to where it began, if that is possible: such a cycle is short.
            let begun = self.next[last].iter().find(|other| **other == start);
            let next = begun.or_else(|| self.next[last].iter().find(inside));
            let Some(next) = next.copied() else {
                return path;
            };
            if let Some(place) = places.get(&next) {
                let mut cycle = path.split_off(*place);
                let lowest = cycle.iter().enumerate().min_by_key(|(_, node)| **node);
                let lowest = lowest.map_or(0, |(place, _)| place);
                cycle.rotate_left(lowest);
                return cycle;
            }
            places.insert(next, path.len());
            path.push(next);
        }
    }

    /// The component of each node: nodes that all reach each other have the same (Kosaraju's algorithm, without recursion).
    fn components(&self) -> Vec<usize> {
        let nodes = self.next.len();
        let mut order = Vec::with_capacity(nodes);
        let mut seen = vec![false; nodes];
        for start in 0..nodes {
            if seen[start] {
                continue;
            }
            seen[start] = true;
            let mut stack = vec![(start, 0)];
            while let Some((node, edge)) = stack.pop() {
                match self.next[node].get(edge) {
                    None => order.push(node),
                    Some(next) => {
                        stack.push((node, edge + 1));
                        if !std::mem::replace(&mut seen[*next], true) {
                            stack.push((*next, 0));
                        }
                    }
                }
            }
        }
        let mut component = vec![usize::MAX; nodes];
        for start in order.into_iter().rev() {
            let mut stack = vec![start];
            while let Some(node) = stack.pop() {
                if component[node] == usize::MAX {
                    component[node] = start;
                    stack.extend(self.before[node].iter().copied());
                }
            }
        }
        component
    }
}
