//! Generates the gRPC service from `proto/echo.proto`.

fn main() {
    tonic_prost_build::configure()
        .bytes(".")
        .compile_protos(&["proto/echo.proto"], &["proto"])
        .expect("protoc is installed");
}
