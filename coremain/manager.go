package coremain

import (
	"os"
	"slices"

	"github.com/coredns/coredns/core/dnsserver"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/systemd"

	"github.com/coredns/caddy"
)

// tellManager has the service manager be told when the server serves, reads its configuration anew, and ends, if the
// manager wants to know (sd_notify(3)).
//
// That it serves is told before the process whose place this one takes may end (SIGUSR2): the manager then knows
// which one to watch.
func tellManager() {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return
	}
	said := func(err error) {
		if err != nil {
			clog.Warning(err)
		}
	}
	dnsserver.Serving = func(i *caddy.Instance) {
		said(systemd.Ready())
		i.OnRestart = append(i.OnRestart, func() error { said(systemd.Reloading()); return nil })
		i.OnRestartFailed = append(i.OnRestartFailed, func() error { said(systemd.Ready()); return nil })
		// First of all, as others may take their time.
		i.OnFinalShutdown = slices.Insert(i.OnFinalShutdown, 0, func() error { said(systemd.Notify("STOPPING=1")); return nil })
	}
}
