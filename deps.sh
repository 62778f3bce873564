#!/bin/sh
# deps.sh - install the Debian packages that building, testing and the demo need (with sudo where not root)
#   deps.sh mpi   also those that only the tests of MPI (160 MB: without them `--mpi=pmix` and pam_slurm_adopt are not built), of pdsh and of the vm tier need; without them these
#                 are skipped. What pdsh and pam_slurm_adopt speak to, sshd, is used where it is there: its package would open a port on this machine.
set -e
packages='gcc libc6-dev meson ninja-build pkg-config protobuf-c-compiler libprotobuf-c-dev libuv1-dev libsqlite3-dev libsodium-dev
musl-tools libhwloc-dev libcmocka-dev libjansson-dev libyaml-dev liblz4-dev libmunge-dev zlib1g-dev uthash-dev munge procps iproute2 passwd
python3 python3-pytest python3-pytest-xdist python3-torch python3-numpy'
mpi='libpmix-dev openmpi-bin libopenmpi-dev mpich libmpich-dev python3-mpi4py pdsh'
vm='qemu-system-x86 cpio crun libpam0g-dev'
[ "${1:-}" != mpi ] || packages="$packages $mpi $vm"
command -v apt-get >/dev/null || { echo "deps: this is not Debian; what these packages hold is taken to be here:" $packages >&2; exit 0; }
missing=
for p in $packages; do
	dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
[ "$(id -u)" = 0 ] && sudo= || sudo=sudo
[ -z "$sudo" ] || command -v sudo >/dev/null || { echo "deps: packages are missing and there is no sudo; as root: apt-get install$missing" >&2; exit 1; }
echo "Installing:$missing"
$sudo apt-get update -qq
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
