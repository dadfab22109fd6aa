//! The TCP driver of Mizzen
