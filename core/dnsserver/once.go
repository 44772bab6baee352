package dnsserver

import (
	"slices"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"

	"github.com/coredns/caddy"
	"github.com/coredns/caddy/caddyfile"
)

// besides is the directives that listen, or tell others, beside answering: what is set up for one question does without
// them.
var besides = []string{"health", "ready", "prometheus", "pprof", "control", "reload", "dnstap", "trace"}

// without takes directives out of blocks.
func without(blocks []caddyfile.ServerBlock, directives []string) {
	for i := range blocks {
		for _, d := range directives {
			delete(blocks[i].Tokens, d)
		}
	}
}

// Once sets a configuration up as far as its servers can be asked by Explain, or by their ServeDNS: plugins start, but
// nothing is listened on, and no endpoints for health, metrics and the like are opened. end ends the plugins. A plugin
// that does not start is told of in the log, and goes without.
func Once(input caddy.Input) (servers []*Server, end func(), err error) {
	capture.one.Lock()
	defer capture.one.Unlock()
	setCapture(true)
	defer setCapture(false)
	capture.mu.Lock()
	capture.once = true
	capture.mu.Unlock()
	err = caddy.ValidateAndExecuteDirectives(input, nil, true)
	d := captured()
	if err != nil {
		if d != nil {
			_ = d.ends.run(time.Now().Add(endTime)) // why it fails is more
		}
		return nil, nil, err
	}
	// Making servers may add to what starts, such as the listeners of plugins: only what setups asked for is begun.
	starts := d.instance.OnStartup
	ends := d.instance.OnShutdown
	if _, err := d.MakeServers(); err != nil {
		_ = d.ends.run(time.Now().Add(endTime))
		return nil, nil, err
	}
	late := len(d.instance.OnShutdown)
	for _, start := range append(d.instance.OnFirstStartup, starts...) {
		if err := start(); err != nil {
			log.Warningf("Starting for one question: %v", err)
		}
	}
	ends = append(slices.Clip(ends), d.instance.OnShutdown[late:]...) // of plugins that have started
	end = func() {
		d.ends.begin()
		for _, stop := range append(ends, func() error { return d.ends.run(time.Now().Add(endTime)) }) {
			if err := stop(); err != nil {
				log.Warningf("Ending: %v", err)
			}
		}
	}
	return d.servers, end, nil
}
