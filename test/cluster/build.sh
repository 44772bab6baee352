#!/usr/bin/env bash
# build.sh [PROGRAM...] builds etcd and kube-apiserver, or the programs named
# (etcd kube-apiserver kube-controller-manager kubectl), from their public Go
# modules at the versions that go.mod pins, into a cache folder, and prints that
# folder. What is built already is not built again. How far it is it tells on
# standard error, each half minute.
#
# What tests cost is the build: it takes the compiler without its optimiser for
# Kubernetes, which saves 40 % of that. K8S_TESTBED_GOBUILD replaces these flags.
set -euo pipefail
cd "$(dirname "$0")"
. ./binfolder.sh

export GOFLAGS="-mod=readonly -buildvcs=false" GOWORK=off
version=k8s.io/component-base/version
minor=$(cut -d. -f2 <<<"$kube_version")
ldflags="-s -w -X $version.gitVersion=$kube_version -X $version.gitMajor=1 -X $version.gitMinor=$minor"
read -ra flags <<<"${K8S_TESTBED_GOBUILD:-}"
[ -n "${K8S_TESTBED_GOBUILD:-}" ] || flags=("-gcflags=k8s.io/...=-N -l")

say() { echo "test cluster: $*" >&2; }
took() { echo "$((SECONDS / 60)) min $((SECONDS % 60)) s"; }

# compile builds one package, and tells meanwhile how many of those that it needs have been compiled.
compile() { # program package
  local log=$bin/$1.log all child
  SECONDS=0
  all=$(go list -deps "$2" 2>/dev/null | wc -l)
  go build -v "${flags[@]}" -ldflags "$ldflags" -o "$bin/$1.tmp" "$2" >"$log" 2>&1 & child=$!
  trap 'kill $child 2>/dev/null || true' EXIT
  trap 'exit 143' TERM INT
  while kill -0 $child 2>/dev/null; do
    sleep 1
    [ $((SECONDS % 30)) != 0 ] || say "$1: $(grep -vc '^go: ' "$log" || true) of at most $all packages compiled, $(took)"
  done
  trap - EXIT
  if ! wait $child; then
    grep -v '^[^ ]*$' "$log" | tail -n 20 >&2 || true
    say "$1 could not be built"
    return 1
  fi
  mv "$bin/$1.tmp" "$bin/$1"          # a broken build leaves no binary
  rm -f "$log"
  say "$1 is built, $(took)"
}

[ $# -gt 0 ] || set -- etcd kube-apiserver
missing=()
for program in "$@"; do
  case $program in
    etcd | kube-apiserver | kube-controller-manager | kubectl) ;;
    *) echo "unknown program $program" >&2; exit 2 ;;
  esac
  [ -x "$bin/$program" ] || missing+=("$program")
done
if [ ${#missing[@]} -gt 0 ]; then
  mkdir -p "$bin"
  exec 9>"$bin/.lock"                 # two callers never build at once
  flock -n 9 || { say "somebody else is building: waiting"; flock 9; }
fi
for program in ${missing[@]+"${missing[@]}"}; do
  [ -x "$bin/$program" ] && continue  # somebody else has built it
  case $program in
    etcd) package=go.etcd.io/etcd/server/v3 at=$etcd_version ;;
    *) package=k8s.io/kubernetes/cmd/$program at=$kube_version ;;
  esac
  say "building $program $at, which tests of the plugins for Kubernetes and etcd talk to: once, in some minutes"
  compile "$program" "$package"
done
echo "$bin"
