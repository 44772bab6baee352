# Sourced by build.sh and start.sh, in the folder of go.mod: sets $bin, the
# folder of the built programs, and the versions it is named after.
# $K8S_TESTBED_BIN overrides it, $K8S_TESTBED_CACHE moves its parent.
kube_version=$(awk '$1=="k8s.io/kubernetes" && $2~/^v/ {print $2; exit}' go.mod)
etcd_version=$(awk '$1=="go.etcd.io/etcd/server/v3" && $2~/^v/ {print $2; exit}' go.mod)
cache=${K8S_TESTBED_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/k8s-testbed}
bin=${K8S_TESTBED_BIN:-$cache/k8s-$kube_version-etcd-$etcd_version-$(go env GOOS)-$(go env GOARCH)}
