# SPDX-License-Identifier: BSL-1.0
# Sourced by overlap.sh and hosts.sh: two hosts, which are network namespaces of its own with a link of limited rate
# between them. Over plain loopback the processors are the wire, and nothing that saves messages or bytes is to be seen.

host_one=cohort_hosts_$$_a
host_two=cohort_hosts_$$_b
host_one_address=10.77.0.1

remove_hosts() {
  ip netns del "$host_one" 2>/dev/null || true
  ip netns del "$host_two" 2>/dev/null || true
}

# make_hosts RATE SCRIPT: ends the script, with the reason, where there can be none. RATE is as tc writes it.
make_hosts() {
  if [ "$(id -u)" != 0 ] || ! command -v ip >/dev/null || ! command -v tc >/dev/null; then
    echo "skipped: $2 needs root, ip and tc, to make network namespaces"
    exit 77
  fi
  trap remove_hosts EXIT
  trap 'exit 130' INT TERM
  if ! ip netns add "$host_one" 2>/dev/null || ! ip netns add "$host_two" 2>/dev/null; then
    echo "skipped: this system does not let $2 make network namespaces"
    exit 77
  fi
  ip -n "$host_one" link add wire type veth peer name wire netns "$host_two"
  connect_host "$host_one" 1 "$1"
  connect_host "$host_two" 2 "$1"
}
connect_host() {  # NAMESPACE NUMBER RATE
  ip -n "$1" addr add "10.77.0.$2/24" dev wire
  ip -n "$1" link set lo up
  ip -n "$1" link set wire up
  tc -n "$1" qdisc add dev wire root tbf rate "$3" burst 32kb latency 50ms
}

# A secret for the world of both.
host_secret=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
