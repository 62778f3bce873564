#!/bin/sh
# deps.sh - install the Debian packages that building, testing and the demo need (with sudo where not root)
set -e
packages='gcc libc6-dev meson ninja-build pkg-config protobuf-c-compiler libprotobuf-c-dev libuv1-dev libsqlite3-dev libsodium-dev
libhwloc-dev libcmocka-dev libjansson-dev libyaml-dev libmunge-dev uthash-dev munge procps iproute2 passwd
python3 python3-pytest python3-torch python3-numpy'
missing=
for p in $packages; do
	dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
[ -n "$missing" ] || exit 0
[ "$(id -u)" = 0 ] && sudo= || sudo=sudo
echo "Installing:$missing"
$sudo apt-get update -qq
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends $missing >/dev/null
