#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# slurm.sh COMMAND...: runs a command with a Slurm of its own, of one node, on the loopback interface: munged, slurmctld
# and slurmd with their files in a temporary folder, which end with it. Inside, srun and sbatch work as on a cluster.
# Exit code 77, with the reason, where Slurm is not installed or cannot be started.
set -euo pipefail

skip() {
  echo "SKIPPED: $*"
  exit 77
}

PATH=$PATH:/usr/sbin
for program in munged slurmctld slurmd srun sinfo; do
  command -v "$program" >/dev/null || skip "no $program here; Debian 12: apt-get install slurmctld slurmd slurm-client munge"
done
[ "$(id -u)" -eq 0 ] || skip "slurmd starts as root only"

# Munge wants a path that nobody else may write to.
home=$(mktemp -d /var/tmp/cohort-slurm.XXXXXX)
chmod 755 "$home"
mkdir "$home/state" "$home/spool"
pids=()
cleanup() {
  local file pid
  for file in slurmd slurmctld munged; do
    pid=$(cat "$home/$file.pid" 2>/dev/null) || continue
    pids+=("$pid")
    kill "$pid" 2>/dev/null || true
  done
  for pid in ${pids[@]+"${pids[@]}"}; do
    for _ in $(seq 100); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
  done
  rm -rf "$home"
}
trap cleanup EXIT

node=$(hostname -s)
port=$((21000 + $$ % 4000))
cat >"$home/slurm.conf" <<CONF
ClusterName=cohort
SlurmctldHost=$node(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$home/munge.socket
CredType=cred/munge
SlurmctldPort=$port
SlurmdPort=$((port + 1))
StateSaveLocation=$home/state
SlurmdSpoolDir=$home/spool
SlurmctldPidFile=$home/slurmctld.pid
SlurmdPidFile=$home/slurmd.pid
SlurmctldLogFile=$home/slurmctld.log
SlurmdLogFile=$home/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=FORCE:8
CONF
export SLURM_CONF=$home/slurm.conf

(umask 077 && head -c 64 /dev/urandom >"$home/munge.key")
munged --force --key-file="$home/munge.key" --socket="$home/munge.socket" --pid-file="$home/munged.pid" \
  --log-file="$home/munged.log" --seed-file="$home/munge.seed" || skip "munged does not start"
slurmctld -c >/dev/null 2>&1 || skip "slurmctld does not start: $(tail -n 1 "$home/slurmctld.log" 2>/dev/null)"
slurmd >/dev/null 2>&1 || skip "slurmd does not start: $(tail -n 1 "$home/slurmd.log" 2>/dev/null)"
for _ in $(seq 100); do
  [ "$(sinfo -h -o %T 2>/dev/null)" = idle ] && break
  sleep 0.1
done
[ "$(sinfo -h -o %T 2>/dev/null)" = idle ] ||
  skip "the node does not come up: $(tail -n 1 "$home/slurmd.log" 2>/dev/null)"
"$@"
