#!/bin/sh
# After installing. dpkg: configure [OLD VERSION]; rpm: 1 for the first time, 2 for an upgrade.
# Nothing is started the first time: port 53 is often taken, and the Corefile is yet to be written.
set -e
systemd-sysusers coredns.conf
systemd-tmpfiles --create coredns.conf
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  case "$1 $2" in
    "configure "?* | "2 "*) systemctl try-restart coredns.service ;;
  esac
fi
