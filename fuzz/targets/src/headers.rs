//! Headers of fixed length: the TCP driver's, and packets between two processes of a host.

/// Reads the bytes as each of them. The decoders check themselves that what they take is written back as it was.
pub fn run(data: &[u8]) {
    mizzen_tcp::fuzzing::header(data);
    mizzen_tcp::fuzzing::hello(data);
    mizzen::fuzzing::packet(data);
}
