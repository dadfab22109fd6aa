//! The contract of a network driver, a simulated network, and the conformance suite
