#!/usr/bin/env bash
# stop.sh RUN [-a | -r] ends, by process id, what start.sh started in the run
# folder RUN. With -a only the API server, as in an outage; with -r the folder
# is removed, too.
set -u
run=${1:?run folder}
programs="controllers apiserver etcd"
[ "${2:-}" = -a ] && programs=apiserver
for name in $programs; do
  pid=$(cat "$run/$name.pid" 2>/dev/null) || continue
  kill "$pid" 2>/dev/null
  [ "$name" = apiserver ] && kill -9 "$pid" 2>/dev/null     # it would drain for a minute
  for i in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
  kill -9 "$pid" 2>/dev/null
  rm -f "$run/$name.pid"
done
[ "${2:-}" = -r ] && rm -rf "$run"
exit 0
