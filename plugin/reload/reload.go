// Package reload watches the Corefile, and everything that it imports, and has the server take over what changed.
//
//	instance is up ──hook──▶ watcher ──each interval──▶ look ──changed──▶ check ──good──▶ instance.Restart
//	                            ▲                                                              │
//	                            └── stopped when the instance is shut down    the next instance has its own watcher
//
// A watcher belongs to one instance. What cannot be read or parsed leaves everything as it is, and a change that cannot
// be taken over is not tried again before the next change. Start at watcher.tick.
package reload

import (
	"bytes"
	"errors"
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/log"

	"github.com/coredns/caddy"
	"github.com/coredns/caddy/caddyfile"
)

const pluginName = "reload"

var logger = log.NewWithPlugin(pluginName)

// watcher looks for changes of the configuration that its instance runs with.
type watcher struct {
	// What it works with; functions, so that tests need no server.
	load    func() (caddy.Input, error)
	restart func(caddy.Input) error

	running string // hash of the configuration that the instance runs with
	tried   string // hash of the configuration that was tried last
	unread  bool   // the last look could not read it, and that was logged

	quiet time.Duration // for how long a new one must be the same; see settled. 0: it is taken as it is
	quit  chan struct{}
	once  sync.Once // closes quit
}

// run looks every interval, until the watcher is stopped or the instance has been replaced.
func (w *watcher) run(interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-w.quit:
			return
		case <-tick.C:
			if w.tick() {
				return
			}
		}
	}
}

// stop ends the watcher. It does not wait: the one who calls is mostly the watcher itself, which restarts the instance.
func (w *watcher) stop() { w.once.Do(func() { close(w.quit) }) }

// stopped reports whether stop was called.
func (w *watcher) stopped() bool {
	select {
	case <-w.quit:
		return true
	default:
		return false
	}
}

// tick looks once, and reports whether the instance has been replaced.
func (w *watcher) tick() bool {
	input, err := w.load()
	if err != nil {
		if !w.unread {
			logger.Warningf("Corefile could not be read: %s", err)
		}
		w.unread = true
		return false
	}
	w.unread = false
	now, err := hash(input)
	if err != nil {
		logger.Warningf("Corefile parse failed: %s", err)
		return false
	}
	if now == w.tried {
		return false
	}
	if w.quiet > 0 {
		input, now = w.settled(input, now)
	}
	if now == "" || now == w.tried {
		return false
	}
	w.tried = now
	if now == w.running { // it is as it was, after something that could not be taken over
		return false
	}
	if err = check(input); err == nil && !w.stopped() {
		err = w.restart(input)
	}
	if err != nil {
		failed.Inc()
		logger.Errorf("Corefile changed but reload failed: %s", err)
		return false
	}
	return true
}

// mostLooks is how often a configuration is looked at that is another one each time.
const mostLooks = 30

// settled is a new configuration when it has not changed for a while: who writes its files in their places may not have
// come to the end, and a part of the server blocks is a configuration, too. The hash is "" if it can be read no more, of
// which the next look tells, or if the watcher was stopped.
func (w *watcher) settled(input caddy.Input, now string) (caddy.Input, string) {
	for range mostLooks {
		select {
		case <-w.quit:
			return nil, ""
		case <-time.After(w.quiet):
		}
		before := now
		var err error
		if input, err = w.load(); err == nil {
			now, err = hash(input)
		}
		if err != nil {
			return nil, ""
		}
		if now == before {
			break
		}
	}
	return input, now
}

var errEmpty = errors.New("there is no server block in it")

// check is an error if a configuration cannot be taken over for a reason that can be seen without trying: so that a
// slip of the pen disturbs nothing.
func check(input caddy.Input) error {
	names := caddy.ValidDirectives(input.ServerType())
	_, err := caddyfile.Parse(input.Path(), bytes.NewReader(input.Body()), names)
	return corefile.Explain(err, input.Path(), input.Body(), names)
}
