#!/bin/sh
# Before removing. dpkg: remove, or upgrade NEW VERSION; rpm: 0 when the last one goes, 1 for an upgrade.
set -e
case "$1" in
  remove | 0)
    if [ -d /run/systemd/system ]; then
      systemctl --no-reload disable --now coredns.service
    fi
    ;;
esac
