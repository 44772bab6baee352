#!/usr/bin/env bash
# release.sh binaries|packages|manuals|site builds what is handed out, below dist/ or the folder in DIST. make calls it with these in the environment:
#
#   binaries   for each target OS/ARCH in TARGETS: coredns_VERSION_OS_ARCH.tgz with the server, its SBOM, .cdx.json (CycloneDX), and the
#              licences of what it was built from, .licenses.txt. Archives of one commit, made with one version of Go, are the same octets.
#   packages   for each ARCH in PACKAGES: a .deb and a .rpm with what is in deploy/nfpm.yaml, and the manuals
#   manuals    man/: the manual pages
#   site       site/: the pages for a browser
#   the first two also SHA256SUMS of all files that lie in dist/ itself
#
# GO, BUILDOPTS, GOTAGS, LDFLAGS, VERSION are those of the Makefile. MAINTAINER is who answers for a package.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go} dist=${DIST:-dist}
nfpm=github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0
: "${VERSION:?the version is not set: run make release}"

# build OS ARCH makes the program in a folder of its own and prints its path.
build() {
  local ending=
  [ "$1" != windows ] || ending=.exe
  local to=$dist/$1_$2/coredns$ending
  CGO_ENABLED=0 GOOS=$1 GOARCH=$2 $go build ${BUILDOPTS:-} -tags "${GOTAGS:-}" -ldflags "${LDFLAGS:-}" -o "$to" . >&2
  echo "$to"
}

# epoch is the time of the commit, which all files of an archive bear.
epoch() { git log -1 --format=%ct 2>/dev/null || echo 0; }

binaries() {
  local target os arch name program
  for target in $TARGETS; do
    os=${target%/*} arch=${target#*/}
    program=$(build "$os" "$arch")
    name=$dist/coredns_${VERSION}_${os}_$arch
    tar -C "$(dirname "$program")" --sort=name --mtime="@$(epoch)" --owner=0 --group=0 --numeric-owner --mode=0755 \
      -cf - "$(basename "$program")" | gzip -9n >"$name.tgz"
    $go run ./deploy/sbom "$VERSION" "$program" >"$name.cdx.json"
    $go run ./deploy/licenses "$program" >"$name.licenses.txt"
    echo "$name.tgz"
  done
}

# generate FLAG... runs the program that makes manuals and pages, whose module is its own.
generate() {
  local day to
  day=$(date -u -d "@$(epoch)" +%F)
  to=$(realpath -m "$dist")
  $go run -C man/generate . -root ../.. -version "$VERSION" -date "$day" "-$1" "$to/$1"
  echo "$dist/$1"
}

packages() {
  local arch kind program
  generate man
  gzip -9nf "$dist"/man/*.[157]
  for arch in $PACKAGES; do
    program=$(build linux "$arch")
    $go run ./deploy/licenses "$program" >"${program%/*}/licenses.txt"
    for kind in deb rpm; do
      BINARY=$program LICENSES=${program%/*}/licenses.txt MANUALS=$dist/man PACKAGED=$arch VERSION=$VERSION MAINTAINER=${MAINTAINER:-nobody <nobody@localhost>} \
        $go run "$nfpm" package -f deploy/nfpm.yaml -p "$kind" -t "$dist"
    done
  done
}

mkdir -p "$dist"
case ${1:-} in
  binaries | packages) "$1" ;;
  manuals) generate man; exit ;;
  site) generate site; exit ;;
  *) sed -n 's/^# \{0,1\}//p' deploy/release.sh | sed -n 2,12p >&2; exit 2 ;;
esac
cd "$dist"
find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS
