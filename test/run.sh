#!/usr/bin/env bash
# run.sh [FLAGS OF GO TEST...] runs all tests of this module.
#
#   first   the packages that need nothing but Go, the one that takes longest before the others; beside them
#           test/cluster/build.sh builds etcd and kube-apiserver, unless they have been built
#   then    those whose tests talk to them: what names test/cluster in a test
#
# Most tests wait, for a time-out or another process: so more packages run at a time than there are processors.
#
# Its exit status is 1 when a test fails, or that build does.
set -uo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}

module=$($go list -m) || exit 1
all=$($go list ./...) || exit 1
later=$(grep -rl --include='*_test.go' test/cluster . | sed -E "s|^\./(.*)/[^/]*$|$module/\1|" | sort -u)
first=$(echo "$module/test"; grep -Fxv "$later" <<<"$all" | grep -Fxv "$module/test")
atonce=$((2 * $(getconf _NPROCESSORS_ONLN)))

# The tests have the processors first, as most wait for something; the build takes the rest.
nice -n 10 test/cluster/build.sh >/dev/null & build=$!
trap 'kill $build 2>/dev/null' EXIT
trap 'exit 130' INT TERM

status=0
$go test -p $atonce -timeout 14m "$@" $first || status=1
if wait $build; then
  $go test -timeout 14m "$@" $later || status=1
else
  echo "not tested, for want of the test cluster:" $later >&2
  status=1
fi
exit $status
