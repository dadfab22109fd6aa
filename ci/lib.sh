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

# Bytes that came and went over the cable between the two hosts so far.
carried() {
  ip netns exec "$host1" cat "/sys/class/net/v$$-1/statistics/rx_bytes" "/sys/class/net/v$$-1/statistics/tx_bytes" | { read -r in; read -r out; echo $((in + out)); }
}

# Job files in a folder for each kind of network between the two hosts, which are in $kinds; libfabric's only where it is installed.
network_files() {
  printf '[[network]]\nname = "sealed"\n' > "$1/tls"
  printf '[[network]]\nname = "clear"\nsecurity = "trusted"\n' > "$1/tcp"
  printf '[[network]]\nname = "fabric"\ndriver = "ofi"\nprovider = "tcp;ofi_rxm"\nsecurity = "trusted"\ninterfaces = ["10.77.1.0/24"]\n' > "$1/ofi"
  kinds="tcp tls"
  if ldconfig -p | grep 'libfabric\.so\.1' > /dev/null; then kinds="$kinds ofi"; fi
}

# Three hosts in a row, $near, $middle and $far, as network namespaces with cables between neighbours that are limited to so many Mbit/s, unless that is 0: they and
# the folder $scratch_dir, with the job's file of both networks in it, are gone when the script ends.
row_of_hosts() {
  scratch
  near=row$$-a middle=row$$-g far=row$$-b
  trap 'for each in "$near" "$middle" "$far"; do ip netns del "$each" 2> /dev/null || true; done; rm -rf "$scratch_dir"' EXIT
  local host cable
  for host in "$near" "$middle" "$far"; do
    ip netns add "$host"
    ip -n "$host" link set lo up
  done
  ip link add left netns "$near" type veth peer name left netns "$middle"
  ip link add right netns "$middle" type veth peer name right netns "$far"
  ip -n "$near" addr add 10.83.1.1/24 dev left
  ip -n "$middle" addr add 10.83.1.2/24 dev left
  ip -n "$middle" addr add 10.83.2.2/24 dev right
  ip -n "$far" addr add 10.83.2.3/24 dev right
  for cable in "$near left" "$middle left" "$middle right" "$far right"; do
    ip -n "${cable% *}" link set "${cable#* }" up
    [ "$1" = 0 ] || ip netns exec "${cable% *}" tc qdisc add dev "${cable#* }" root tbf rate "$1mbit" burst 125000 limit 1000000
  done
  cat > "$scratch_dir/file" <<FILE
[[network]]
name = "left"
hosts = ["$near", "$middle"]
interfaces = ["10.83.1.0/24"]
security = "trusted"

[[network]]
name = "right"
hosts = ["$middle", "$far"]
interfaces = ["10.83.2.0/24"]
security = "trusted"
FILE
}

# So many hosts, as network namespaces on a switch, called ${hosts[0]} and so on; they and the folder $scratch_dir are gone when the
# script ends. `on_switch` runs a job on them.
switched_hosts() {
  local host
  switch=mz$$-s hosts=()
  scratch_dir=$(mktemp -d)
  trap '[ -z "${job:-}" ] || kill "$job" 2>/dev/null || true; for each in "$switch" "${hosts[@]}"; do ip netns del "$each" 2>/dev/null || true; done; rm -rf "$scratch_dir"' EXIT
  ip netns add "$switch"
  ip -n "$switch" link add br0 type bridge
  ip -n "$switch" link set br0 up
  for ((host = 0; host < $1; host++)); do
    hosts+=("mz$$-$host")
    ip netns add "mz$$-$host"
    ip link add mz0 netns "mz$$-$host" type veth peer name "port$host" netns "$switch"
    ip -n "mz$$-$host" addr add "10.77.2.$((host + 1))/24" dev mz0
    ip -n "mz$$-$host" link set lo up
    ip -n "mz$$-$host" link set mz0 up
    ip -n "$switch" link set "port$host" master br0
    ip -n "$switch" link set "port$host" up
  done
}

on_switch() {
  local list
  list=$(IFS=,; echo "${hosts[*]}")
  "$mizzen" run --hosts "$list" --remote-shell 'ip netns exec {host}' "$@"
}

# Pulls the cable of a host (`cable 2 down`) or puts it back (`cable 2 up`).
cable() {
  ip -n "$switch" link set "port$1" "$2"
}

# All processes of a host, the agent too.
processes_of() {
  ip netns pids "${hosts[$1]}"
}

# Sends a signal to all of them at once.
signal_host() {
  kill "-$2" $(processes_of "$1") 2>/dev/null || true
}

# The time of day, in milliseconds.
now() {
  date +%s%3N
}

# Waits until a command succeeds, so many milliseconds at most.
await() {
  local until=$(($(now) + $1))
  shift
  until "$@"; do
    [ "$(now)" -lt "$until" ] || return 1
    sleep 0.02
  done
}

# The networks of the testbed as a job's file, with more lines for the one between the sites: `sites [LINE …]`.
sites() {
  quoted() {
    local IFS=, list=() each
    for each in $1; do list+=("\"$each\""); done
    echo "[${list[*]}]"
  }
  cat <<FILE
[[network]]
name = "site-a"
hosts = $(quoted "$SITE_A,$GATEWAYS_A")
interfaces = ["10.80.1.0/24"]

[[network]]
name = "site-b"
hosts = $(quoted "$SITE_B,$GATEWAYS_B")
interfaces = ["10.80.2.0/24"]

[[network]]
name = "wan"
hosts = $(quoted "$GATEWAYS_A,$GATEWAYS_B")
interfaces = ["10.81.0.0/16"]
FILE
  printf '%s\n' "$@"
}

# What all cores did since the machine was started, and what other machines took from them, in hundredths of a second.
processor_time() { awk '/^cpu / { for (i = 2; i <= 9; i++) sum += $i; print sum, $9 }' /proc/stat; }

# Runs a command that asserts times: `undisturbed COMMAND …`. If it failed while other machines took more than a fiftieth of this one's
# cores, again, and again a while later: a process that stands still seems to be late, or to compute. 75 (try again later) if it was so
# each time: then nothing can be said.
undisturbed() {
  local pause code all before all_now now share
  for pause in 2 10 30 60 0; do
    read -r all before < <(processor_time)
    code=0
    "$@" || code=$?
    read -r all_now now < <(processor_time)
    share=$(((now - before) * 1000 / (all_now - all + 1)))
    [ "$code" -ne 0 ] && [ "$code" -ne 75 ] && [ "$share" -gt 20 ] || return "$code"
    echo "other machines took $share of 1,000 parts of the cores meanwhile: that says nothing"
    sleep "$pause"
  done
  return 75
}
