#!/usr/bin/env bash
# Installs what AgentENV needs on Debian 12, Debian 13 or Ubuntu 24.04: system packages, npm packages, the guest daemon
# and a guest kernel. Does only what is missing, so a second run takes seconds.
#
#   tools/setup.sh           what a server needs
#   tools/setup.sh --tests   also what `make test` needs (a registry and tools to fill it)
set -euo pipefail
cd "$(dirname "$0")/.."

# QEMU 8.2 is the first with `migrate-incoming file:` and `rom=off`; mke2fs 1.47.1 the first that takes a tar stream.
readonly NEED_QEMU=8.2 NEED_E2FSPROGS=1.47.1 NEED_NODE=18
readonly PRIVATE=/usr/local/lib/aenv/e2fsprogs

TESTS=no
for argument in "$@"; do
  case $argument in
    --tests) TESTS=yes ;;
    *) echo "setup: unknown argument $argument (known: --tests)" >&2; exit 2 ;;
  esac
done
export PATH=/usr/local/sbin:/usr/local/bin:/usr/local/go/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export DEBIAN_FRONTEND=noninteractive

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
# at_least FOUND NEEDED: compares dotted versions.
at_least() { [ -n "$1" ] && [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || fail "only Linux on x86-64 is supported, this is $(uname -s) on $(uname -m)"
have apt-get || fail 'this script knows apt only (Debian 12, Debian 13, Ubuntu 24.04); README.md lists what to install by hand'
[ "$(id -u)" = 0 ] || fail 'it installs packages and must run as root: run the same command with sudo'
# shellcheck source=/dev/null
. /etc/os-release

qemu_version() { have qemu-system-x86_64 && qemu-system-x86_64 --version | sed -n 's/.*version \([0-9.]*\).*/\1/p'; }
mke2fs_version() { have mke2fs && mke2fs -V 2>&1 | sed -n 's/^mke2fs \([0-9.]*\).*/\1/p'; }
node_major() { have node && node -p 'process.versions.node.split(".")[0]'; }
go_version() { have go && GOTOOLCHAIN=local go env GOVERSION | sed 's/^go//'; }
go_needed() { sed -n 's/^go //p' aenvd/go.mod; }

refreshed=no
refresh() {
  [ "$refreshed" = no ] || return 0
  say 'reading the package lists'
  apt-get update -qq || say 'some package lists could not be read; going on with those that could'
  refreshed=yes
}

install() {
  refresh
  say "installing $*"
  apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# The archive that this machine takes its release from, so that a mirror stays in use.
debian_mirror() {
  apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' 2>/dev/null |
    awk '$2 == "bookworm" && $1 !~ /security/ && !seen++ { print $1 }'
}

# Debian 12's own qemu, e2fsprogs and Go are too old; its backports have new ones.
backports=()
use_backports() {
  [ "${VERSION_CODENAME:-}" = bookworm ] || return 0
  backports=(-t bookworm-backports)
  if [[ $(apt-get indextargets --format '$(CODENAME)' 'Created-By: Packages') != *bookworm-backports* ]]; then
    local mirror
    mirror=$(debian_mirror)
    say 'adding bookworm-backports to the package sources (/etc/apt/sources.list.d/aenv-backports.list)'
    echo "deb ${mirror:-http://deb.debian.org/debian} bookworm-backports main" >/etc/apt/sources.list.d/aenv-backports.list
    refreshed=no
  fi
}

install_system_packages() {
  local wanted=() program_package
  for program_package in ip:iproute2 nft:nftables setpriv:util-linux flock:util-linux zstd:zstd cpio:cpio xz:xz-utils \
    curl:curl make:make modprobe:kmod debootstrap:debootstrap skopeo:skopeo umoci:umoci; do
    have "${program_package%%:*}" || wanted+=("${program_package#*:}")
  done
  [ -e /etc/ssl/certs/ca-certificates.crt ] || wanted+=(ca-certificates)
  [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || wanted+=(debian-archive-keyring)
  # mke2fs loads it by name when it is given a tar stream.
  [[ $(ldconfig -p) == *libarchive.so.13* ]] || wanted+=("$(libarchive_package)")
  if ! at_least "$(node_major)" "$NEED_NODE" || ! have npm; then wanted+=(nodejs npm); fi
  if [ "$TESTS" = yes ]; then
    have docker-registry || wanted+=(docker-registry)
    have socat || wanted+=(socat)
    have git || wanted+=(git)
  fi
  [ ${#wanted[@]} -eq 0 ] || without_services install "${wanted[@]}"
}

libarchive_package() {
  refresh >&2
  if apt-cache show libarchive13t64 >/dev/null 2>&1; then echo libarchive13t64; else echo libarchive13; fi
}

# Debian starts a package's service when it is installed; the tests start their own registry.
without_services() {
  local policy=/usr/sbin/policy-rc.d
  if [ -e "$policy" ]; then "$@"; return; fi
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
  trap 'rm -f /usr/sbin/policy-rc.d' EXIT
  "$@"
  rm -f "$policy"
  trap - EXIT
}

install_qemu() {
  if at_least "$(qemu_version)" "$NEED_QEMU" && have qemu-img; then return; fi
  use_backports
  install "${backports[@]}" qemu-system-x86 qemu-utils
  at_least "$(qemu_version)" "$NEED_QEMU" || fail "QEMU $(qemu_version) is what this system offers; $NEED_QEMU or newer is needed"
}

install_mke2fs() {
  if at_least "$(mke2fs_version)" "$NEED_E2FSPROGS"; then return; fi
  use_backports
  install "${backports[@]}" e2fsprogs
  hash -r
  if at_least "$(mke2fs_version)" "$NEED_E2FSPROGS"; then return; fi
  private_mke2fs
  hash -r
  at_least "$(mke2fs_version)" "$NEED_E2FSPROGS" || fail "mke2fs $(mke2fs_version) is too old; $NEED_E2FSPROGS or newer is needed"
}

# Ubuntu 24.04 has no mke2fs that is new enough. Debian's binaries run there; they go to a directory of their own, so the
# system's e2fsprogs stays as it is. apt checks the signatures with Debian's keys.
private_mke2fs() {
  local work
  work=$(mktemp -d)
  chmod 755 "$work"
  mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/debs"
  : >"$work/status"
  echo 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm-backports main' >"$work/sources.list"
  echo 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main' >>"$work/sources.list"
  local options=(-o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$work/lists"
    -o "Dir::State::status=$work/status" -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root)
  say "taking mke2fs $NEED_E2FSPROGS or newer from Debian (into $PRIVATE)"
  apt-get "${options[@]}" -qq update
  (cd "$work/debs" && apt-get "${options[@]}" -qq -t bookworm-backports download e2fsprogs libext2fs2 libcom-err2 libss2)
  rm -rf "$PRIVATE"
  mkdir -p "$PRIVATE"
  local deb
  for deb in "$work"/debs/*.deb; do dpkg-deb -x "$deb" "$PRIVATE"; done
  rm -rf "$work"
  local program libraries="$PRIVATE/lib/x86_64-linux-gnu:$PRIVATE/usr/lib/x86_64-linux-gnu"
  for program in mke2fs resize2fs; do
    printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s/sbin/%s "$@"\n' "$libraries" "$PRIVATE" "$program" >"/usr/local/sbin/$program"
    chmod 755 "/usr/local/sbin/$program"
  done
}

install_go() {
  at_least "$(go_version)" "$(go_needed)" && return
  # A newer system has a new enough golang-go; older ones carry versioned packages next to it.
  use_backports
  local series
  series=$(go_needed | cut -d. -f1,2)
  install "${backports[@]}" golang-go || true
  if ! at_least "$(go_version)" "$(go_needed)"; then
    install "${backports[@]}" "golang-$series-go"
    ln -sf "/usr/lib/go-$series/bin/go" /usr/local/bin/go
  fi
  hash -r
  at_least "$(go_version)" "$(go_needed)" || fail "Go $(go_version) is too old for aenvd; $(go_needed) or newer is needed"
}

install_npm_packages() {
  [ node_modules/.package-lock.json -nt package-lock.json ] && [ -x node_modules/.bin/node ] && return
  say 'installing npm packages (node_modules)'
  npm ci --no-audit --no-fund --loglevel=error
  # npm keeps the time of its own file when nothing changed.
  touch node_modules/.package-lock.json
}

build_aenvd() {
  local binary=aenvd/bin/aenvd
  [ -x "$binary" ] && [ -z "$(find aenvd -newer "$binary" \( -name '*.go' -o -name go.mod -o -name go.sum \) ! -name '*_test.go' -print -quit)" ] && return
  install_go
  say "building the guest daemon ($binary)"
  (cd aenvd && CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags '-s -w' -o bin/aenvd ./cmd/aenvd)
}

install_system_packages
install_qemu
install_mke2fs
[ "$TESTS" = no ] || install_go
install_npm_packages
build_aenvd
tools/fetch-kernel.sh
say "ready: QEMU $(qemu_version), mke2fs $(mke2fs_version), Node $(node_modules/.bin/node -p process.versions.node)"
