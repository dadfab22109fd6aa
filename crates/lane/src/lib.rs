//! The lock-free lane: a one-way message queue over any memory region
