# What the scripts beside this file share. Source it; it changes to the root of the checkout.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export RUST_BACKTRACE=0
bin=target/release
mizzen=$bin/mizzen

# What is built is always of all these: with fewer packages cargo chooses other features, and builds what they share once more.
packages=(-p mizzen-cli -p mizzen -p mizzen-checks -p mizzen-examples)

# Builds the launcher, the examples and the check programs.
build() {
  cargo build --release --quiet "${packages[@]}" --bins --examples
}

# A folder that is gone when the script ends.
scratch() {
  scratch_dir=$(mktemp -d)
  trap 'rm -rf "$scratch_dir"' EXIT
}

# Two hosts, as network namespaces with a cable between them, which are gone when the script ends. They are called
# $host1 and $host2; `on_hosts` runs a job on them.
two_hosts() {
  local id=$$
  host1=mz$id-1 host2=mz$id-2
  trap 'ip netns del "$host1" 2>/dev/null || true; ip netns del "$host2" 2>/dev/null || true' EXIT
  ip netns add "$host1"
  ip netns add "$host2"
  ip link add "v$id-1" netns "$host1" type veth peer name "v$id-2" netns "$host2"
  ip -n "$host1" addr add 10.77.1.1/24 dev "v$id-1"
  ip -n "$host2" addr add 10.77.1.2/24 dev "v$id-2"
  for host in 1 2; do
    ip -n "mz$id-$host" link set lo up
    ip -n "mz$id-$host" link set "v$id-$host" up
  done
}

on_hosts() {
  "$mizzen" run --hosts "$host1,$host2" --remote-shell 'ip netns exec {host}' "$@"
}
