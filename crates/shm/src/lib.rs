//! Shared memory between processes of a host: segments, sockets that pass them, peer death
