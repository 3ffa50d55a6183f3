#!/bin/bash
# Runs the framed commands of docs/operations.md, in order, in a fresh Debian 12 in a folder.
# usage: scripts/try_operations.sh [FOLDER]    as root; needs debootstrap; FOLDER (2 GB) is deleted at the end
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

folder=${1:-$(mktemp -d /tmp/docmem-operations.XXXXXX)}
page=docs/operations.md
model=build/models/smollm2-135m-instruct

fail() { printf '%s: %s\n' "$0" "$*" >&2; exit 1; }

clean_up() {
  for place in proc dev; do ! mountpoint -q "$folder/$place" || umount -l "$folder/$place"; done
  rm -rf --one-file-system "$folder"
}

[[ $(id -u) == 0 ]] || fail "run it as root: it makes a root file system"
command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"
[[ -x build/release/bin/docmemd && -d $model ]] || fail "run ./dev demo first: it builds and makes the model"
trap clean_up EXIT

(cd build/release && rm -f docmem_*.deb && cpack) >build/operations-package.log 2>&1 ||
  fail "no package: see build/operations-package.log"
debootstrap --variant=minbase bookworm "$folder" >build/operations-debootstrap.log 2>&1 ||
  fail "no Debian: see build/operations-debootstrap.log"
mount -t proc proc "$folder/proc"
mount --bind /dev "$folder/dev"
cp -L /etc/resolv.conf "$folder/etc/resolv.conf"
cp build/release/docmem_*.deb "$folder/root/"
mkdir -p "$folder/srv/docmem"
cp -rL "$model" "$folder/srv/docmem/model"

# What stands between ```sh and ```; ends what it began also when a command fails.
{
  echo 'trap "kill \$(jobs -p) 2>/dev/null || true" EXIT'
  awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$page"
} >"$folder/root/page.sh"
env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
  DEBIAN_FRONTEND=noninteractive chroot "$folder" bash -euxo pipefail /root/page.sh ||
  fail "a command of $page failed: it is the last one above"
echo "All commands of $page worked."
