#!/usr/bin/env bash
# start.sh [-c] [-4] [-d RUN] [-e ETCD] starts etcd and kube-apiserver on
# 127.0.0.1 at free ports and prints shell assignments for the test process.
#
#   -c       also kube-controller-manager (slices from selectors, namespaces)
#   -4       IPv4 services only (default: dual stack)
#   -d RUN   run folder (default: a new one); one used before resumes with its
#            data at its ports, and what runs there already is left running
#   -e ETCD  another etcd binary
#
# Nothing is built here: exit status 77 means that build.sh has not been run and
# the caller should skip its tests.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here"; . ./binfolder.sh
run= controllers= etcd=$bin/etcd services=10.96.0.0/12,fd00:10:96::/108
while getopts c4d:e: o; do case $o in
  c) controllers=1 ;; 4) services=10.96.0.0/12 ;; d) run=$OPTARG ;; e) etcd=$OPTARG ;; *) exit 2 ;;
esac; done
for program in "$bin/kube-apiserver" "$etcd" ${controllers:+"$bin/kube-controller-manager"}; do
  [ -x "$program" ] || { echo "no $program: run test/cluster/build.sh ${program##*/}" >&2; exit 77; }
done
run=${run:-$(mktemp -d)}; mkdir -p "$run/pki"; run=$(cd "$run" && pwd)

freeport() {
  local port i
  for i in $(seq 50); do
    port=$((20000 + RANDOM % 12000))
    (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
  done
  return 1
}
if [ ! -f "$run/ports" ]; then
  ports=$(for _ in $(seq 10); do freeport; done | sort -nu | shuf -n 3 | paste -sd ' ')
  echo "$ports" > "$run/ports"
fi
read -r client_port peer_port api_port < "$run/ports"
url=https://127.0.0.1:$api_port

# One CA; a certificate to serve with; client certificates of the administrator
# and of the DNS server, whose rights are those that a DNS server needs.
newkey=(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes)
certificate() { # name subject extension
  openssl req -new "${newkey[@]}" -keyout "$1.key" -subj "$2" -out "$1.csr" 2>/dev/null
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 \
    -out "$1.crt" -extfile <(printf '%s\n' "$3") 2>/dev/null
}
kubeconfig() { # token
  cat <<Y
apiVersion: v1
kind: Config
current-context: bed
clusters: [{name: bed, cluster: {server: "$url", certificate-authority: $run/pki/ca.crt}}]
users: [{name: bed, user: {token: $1}}]
contexts: [{name: bed, context: {cluster: bed, user: bed}}]
Y
}
if [ ! -f "$run/pki/tokens.csv" ]; then
  cd "$run/pki"
  openssl req -x509 "${newkey[@]}" -keyout ca.key -subj /CN=test-bed -days 365 -out ca.crt 2>/dev/null
  certificate server /CN=kube-apiserver "subjectAltName=IP:127.0.0.1,DNS:localhost"
  certificate admin /O=system:masters/CN=admin extendedKeyUsage=clientAuth
  certificate dns /CN=dns-under-test extendedKeyUsage=clientAuth
  openssl ecparam -name prime256v1 -genkey -noout -out sa.key
  printf '%s\n' admin-token,admin,1,system:masters dns-token,dns-under-test,2 nobody-token,nobody,3 > tokens.csv
fi
cd "$run"
for who in admin dns nobody; do kubeconfig $who-token > $who.kubeconfig; done

running() { local pid; pid=$(cat "$1.pid" 2>/dev/null) && kill -0 "$pid" 2>/dev/null; }
launch() { # name program argument...
  running "$1" && return
  local name=$1; shift
  "$@" </dev/null >>"$name.log" 2>&1 &
  echo $! > "$name.pid"
}
fail() {
  echo "start failed: $1" >&2; tail -n 5 "$run"/*.log >&2
  "$here/stop.sh" "$run" >/dev/null 2>&1 || true; exit 1
}
launch etcd "$etcd" --data-dir "$run/etcd" --unsafe-no-fsync --quota-backend-bytes 4294967296 --log-level error \
  --listen-client-urls "http://127.0.0.1:$client_port" --advertise-client-urls "http://127.0.0.1:$client_port" \
  --listen-peer-urls "http://127.0.0.1:$peer_port" --initial-advertise-peer-urls "http://127.0.0.1:$peer_port" \
  --initial-cluster "default=http://127.0.0.1:$peer_port"
launch apiserver "$bin/kube-apiserver" --etcd-servers "http://127.0.0.1:$client_port" \
  --bind-address 127.0.0.1 --advertise-address 127.0.0.1 --secure-port "$api_port" \
  --tls-cert-file pki/server.crt --tls-private-key-file pki/server.key --cert-dir "$run/pki" \
  --client-ca-file pki/ca.crt --token-auth-file pki/tokens.csv --authorization-mode RBAC \
  --service-account-issuer https://test-bed --service-account-key-file pki/sa.key --service-account-signing-key-file pki/sa.key \
  --service-cluster-ip-range "$services" --endpoint-reconciler-type none --allow-privileged \
  --disable-admission-plugins ServiceAccount,TaintNodesByCondition,Priority \
  --enable-priority-and-fairness=false --max-requests-inflight 0 --max-mutating-requests-inflight 0 \
  --watch-cache-sizes services#50000,endpointslices.discovery.k8s.io#50000,pods#50000 \
  ${K8S_TESTBED_APISERVER_ARGS:-}

api() { curl -sS -m 5 --cacert pki/ca.crt -H "Authorization: Bearer admin-token" "$@"; }
ready=
for i in $(seq 600); do
  running apiserver || fail kube-apiserver
  running etcd || fail etcd
  if [ "$(api "$url/readyz" 2>/dev/null || true)" = ok ]; then ready=1; break; fi
  sleep 0.1
done
[ -n "$ready" ] || fail "not ready within a minute"

# What a cluster's DNS server may do, and no more.
rbac=rbac.authorization.k8s.io
post() { api -o /dev/null -X POST -H 'Content-Type: application/json' "$url/apis/$rbac/v1/$1" -d "$2"; }
post clusterroles '{"metadata":{"name":"dns-under-test"},"rules":[
 {"apiGroups":[""],"resources":["services","pods","namespaces"],"verbs":["list","watch"]},
 {"apiGroups":["discovery.k8s.io"],"resources":["endpointslices"],"verbs":["list","watch"]},
 {"apiGroups":["multicluster.x-k8s.io"],"resources":["serviceimports"],"verbs":["list","watch"]}]}'
post clusterrolebindings '{"metadata":{"name":"dns-under-test"},
 "roleRef":{"apiGroup":"'$rbac'","kind":"ClusterRole","name":"dns-under-test"},
 "subjects":[{"kind":"User","apiGroup":"'$rbac'","name":"dns-under-test"}]}'
if [ -n "$controllers" ]; then
  launch controllers "$bin/kube-controller-manager" --kubeconfig admin.kubeconfig --leader-elect=false --secure-port 0 \
    --kube-api-qps 1000 --kube-api-burst 2000 \
    --controllers endpointslice-controller,endpointslice-mirroring-controller,endpoints-controller,namespace-controller
fi
cat <<Y | tee "$run/env"
K8S_TESTBED_RUN=$run
K8S_TESTBED_URL=$url
KUBECONFIG=$run/admin.kubeconfig
K8S_TESTBED_DNS_KUBECONFIG=$run/dns.kubeconfig
K8S_TESTBED_NOBODY_KUBECONFIG=$run/nobody.kubeconfig
K8S_TESTBED_DNS_TLS="$run/pki/dns.crt $run/pki/dns.key $run/pki/ca.crt"
Y
