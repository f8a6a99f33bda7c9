#!/usr/bin/env bash
# Makes a real Debian image without a registry: an OCI layout with the tag `bookworm`, from the Debian mirror that this
# machine uses. Takes about a minute; a layout that is there already is kept.
#
#   tools/debian-image.sh DIRECTORY
set -euo pipefail

readonly SUITE=bookworm
target=${1:?usage: tools/debian-image.sh DIRECTORY}

say() { printf 'debian-image: %s\n' "$*"; }
fail() { printf 'debian-image: %s\n' "$*" >&2; exit 1; }

if [ -e "$target/index.json" ]; then
  say "$target is there"
  exit 0
fi
[ "$(id -u)" = 0 ] || fail 'debootstrap must run as root'
for program in debootstrap umoci; do
  command -v "$program" >/dev/null || fail "$program is missing; run: make setup"
done

mirror=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' 2>/dev/null |
  awk -v suite="$SUITE" '$2 == suite && $1 !~ /security/ && !seen++ { print $1 }')
mirror=${mirror:-http://deb.debian.org/debian}

mkdir -p "$(dirname "$target")"
# Beside the target, because /tmp is often too small and mounted nodev.
work=$(mktemp -d "$(dirname "$target")/debian-image.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT

say "taking Debian $SUITE from $mirror (about a minute)"
debootstrap --variant=minbase "$SUITE" "$work/root" "$mirror" >"$work/debootstrap.log" 2>&1 || {
  tail -n 20 "$work/debootstrap.log" >&2
  fail 'debootstrap failed; the last lines of its output are above'
}
rm -rf "$work"/root/var/cache/apt/archives/*.deb "$work"/root/var/lib/apt/lists/*

umoci init --layout "$work/layout"
umoci new --image "$work/layout:$SUITE"
umoci insert --image "$work/layout:$SUITE" "$work/root" /
umoci config --image "$work/layout:$SUITE" --config.cmd /bin/bash \
  --config.env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
chmod -R a+rX "$work/layout"
rm -rf "$target"
mv "$work/layout" "$target"
say "$target:$SUITE is ready ($(du -sh "$target" | cut -f 1))"
