#!/bin/sh
# After installing. dpkg: configure [OLD VERSION]; rpm: 1 for the first time, 2 for an upgrade.
# Nothing is started the first time: port 53 is often taken, and the Corefile is yet to be written.
set -e
if command -v systemd-sysusers >/dev/null; then # else there is no unit to run, either
  systemd-sysusers coredns.conf
  systemd-tmpfiles --create coredns.conf
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  case "$1 $2" in
    "configure "?* | "2 "*) systemctl try-restart coredns.service ;;
  esac
fi
