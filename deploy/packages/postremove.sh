#!/bin/sh
# After removing. The user and /var/lib/coredns stay: files may be theirs.
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
