#!/usr/bin/env bash
# build.sh [PROGRAM...] builds etcd and kube-apiserver, or the programs named
# (etcd kube-apiserver kube-controller-manager kubectl), from their public Go
# modules at the versions that go.mod pins, into a cache folder, and prints that
# folder. What is built already is not built again.
set -euo pipefail
cd "$(dirname "$0")"
. ./binfolder.sh
mkdir -p "$bin"
exec 9>"$bin/.lock"; flock 9          # two callers never build at once

export GOFLAGS="-mod=readonly -buildvcs=false -trimpath" GOWORK=off CGO_ENABLED=0
version=k8s.io/component-base/version
minor=$(cut -d. -f2 <<<"$kube_version")
ldflags="-s -w -X $version.gitVersion=$kube_version -X $version.gitMajor=1 -X $version.gitMinor=$minor"

[ $# -gt 0 ] || set -- etcd kube-apiserver
for program in "$@"; do
  [ -x "$bin/$program" ] && continue
  case $program in
    etcd) package=go.etcd.io/etcd/server/v3 ;;
    kube-apiserver|kube-controller-manager|kubectl) package=k8s.io/kubernetes/cmd/$program ;;
    *) echo "unknown program $program" >&2; exit 2 ;;
  esac
  echo "building $program ($package)" >&2
  go build ${K8S_TESTBED_GOBUILD:-} -ldflags "$ldflags" -o "$bin/$program.tmp" "$package"
  mv "$bin/$program.tmp" "$bin/$program"          # a broken build leaves no binary
done
echo "$bin"
