#!/usr/bin/env bash
# Takes a guest kernel from the distribution without installing it: `vmlinuz`, the modules that a guest needs
# (uncompressed) and `modules.builtin`. What is there already is kept; remove the directory to get a newer kernel.
#
#   tools/fetch-kernel.sh [DIRECTORY]      default: .cache/kernel in the checkout
set -euo pipefail

# Packages that follow the distribution's newest kernel for virtual machines: Debian, Ubuntu, older Ubuntu.
readonly META_PACKAGES=(linux-image-cloud-amd64 linux-image-virtual linux-image-kvm linux-image-generic)
# packages/vmm/src/initramfs.ts says which of them a guest cannot do without.
readonly MODULES=(virtio_mmio virtio_blk virtio_net virtio_rng ext4 overlay fuse af_packet)

cd "$(dirname "$0")/.."
target=${1:-.cache/kernel}

say() { printf 'fetch-kernel: %s\n' "$*"; }
fail() { printf 'fetch-kernel: %s\n' "$*" >&2; exit 1; }

if [ -e "$target/version" ]; then
  say "$target has $(cat "$target/version")"
  exit 0
fi
[ "$(uname -m)" = x86_64 ] || fail "only x86-64 guests are supported, this machine is $(uname -m)"
for program in apt-get apt-cache dpkg-deb; do
  command -v "$program" >/dev/null || fail "$program is missing; it takes a Debian or Ubuntu system to get a kernel this way"
done

# The package with the kernel itself: the one that a meta package depends on.
kernel_package() {
  local meta name
  for meta in "${META_PACKAGES[@]}"; do
    name=$(apt-cache depends --important "$meta" 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9][^ ]*\)$/\1/p' | head -n 1)
    if [ -n "$name" ]; then echo "$name"; return; fi
  done
}

# Modules are in a package of their own on Ubuntu.
modules_package() {
  apt-cache depends --important "$1" | sed -n 's/^ *Depends: \(linux-modules-[0-9][^ ]*\)$/\1/p' | head -n 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
package=$(kernel_package)
if [ -z "$package" ]; then
  say 'reading the package lists'
  apt-get update -qq || say 'some package lists could not be read; going on with those that could'
  package=$(kernel_package)
fi
[ -n "$package" ] || fail "no package source offers any of ${META_PACKAGES[*]}; add the main component of Debian or Ubuntu"
packages=("$package")
modules=$(modules_package "$package")
[ -z "$modules" ] || packages+=("$modules")

say "downloading ${packages[*]}"
download() { (cd "$work" && apt-get -qq -o APT::Sandbox::User=root download "${packages[@]}"); }
# The lists may be older than what the mirror still holds.
download || { apt-get update -qq || true; download; } || fail "could not download ${packages[*]}"
for deb in "$work"/*.deb; do dpkg-deb -x "$deb" "$work/root"; done

shopt -s nullglob
kernels=("$work"/root/boot/vmlinuz-* "$work"/root/usr/lib/modules/*/vmlinuz)
[ ${#kernels[@]} -gt 0 ] || fail "${packages[*]} contain no vmlinuz"
trees=("$work"/root/lib/modules/* "$work"/root/usr/lib/modules/*)
[ ${#trees[@]} -gt 0 ] || fail "${packages[*]} contain no modules"
tree=${trees[0]}

result=$work/result
mkdir -p "$result/modules"
install -m 644 "${kernels[0]}" "$result/vmlinuz"
install -m 644 "$tree/modules.builtin" "$result/modules.builtin"

# File of a module by its name, in which - and _ are the same; empty when it is built in.
find_module() { find "$tree" -type f -name "${1//[-_]/[-_]}.ko*" -print -quit; }

# Puts the uncompressed module into the result.
unpack() {
  case $1 in
    *.ko) cat "$1" ;;
    *.ko.xz) xz -dc "$1" ;;
    *.ko.zst) zstd -qdc "$1" ;;
    *.ko.gz) gzip -dc "$1" ;;
    *) fail "$1 is compressed in a way that this script does not know" ;;
  esac >"$result/modules/$2.ko"
}

# .modinfo is a list of NUL-terminated KEY=VALUE; depmod and its files are not needed to follow it.
depends() { tr '\0' '\n' <"$1" | sed -n 's/^depends=//p' | tr ',' '\n'; }

queue=("${MODULES[@]}")
while [ ${#queue[@]} -gt 0 ]; do
  name=${queue[0]//-/_}
  queue=("${queue[@]:1}")
  [ ! -e "$result/modules/$name.ko" ] || continue
  file=$(find_module "$name")
  [ -n "$file" ] || continue
  unpack "$file" "$name"
  mapfile -t -O "${#queue[@]}" queue < <(depends "$result/modules/$name.ko")
done

echo "$(basename "$tree") ($(dpkg-deb -f "$work/$(cd "$work" && ls | grep '^linux-image.*\.deb$')" Package Version | paste -sd' '))" >"$result/version"
rm -rf "$target"
mkdir -p "$(dirname "$target")"
mv "$result" "$target"
chmod 755 "$target"
say "$target has $(cat "$target/version")"
