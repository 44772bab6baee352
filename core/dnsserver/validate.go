package dnsserver

import (
	"sync"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/memory"

	"github.com/coredns/caddy"
)

// capture is the context that caddy makes while Validate runs it.
var capture struct {
	one  sync.Mutex // held by Validate
	mu   sync.Mutex
	on   bool
	once bool // for one question: see Once
	last *dnsContext
}

// Check has check called when the configuration of c starts, and when it is only looked at, as Validate does: all
// blocks are set up by then, so it is for what one plugin needs of others. What it returns refuses the configuration.
// It changes nothing outside of the configuration.
func Check(c *caddy.Controller, check func() error) {
	d := c.Context().(*dnsContext)
	d.checks = append(d.checks, len(d.instance.OnStartup)) // where its errors are given their place
	c.OnStartup(check)
}

// Validate checks a configuration as far as it can be without starting it: it is parsed, all
// directives are set up, and its listeners are compared. No callback is run but those of Check and OnEnd, and nothing
// is listened on.
func Validate(input caddy.Input) error {
	capture.one.Lock()
	defer capture.one.Unlock()
	setCapture(true)
	defer setCapture(false)
	err := caddy.ValidateAndExecuteDirectives(input, nil, true)
	d := captured()
	if d == nil {
		return err // it cannot be parsed
	}
	if err == nil {
		_, err = d.MakeServers()
	}
	for _, i := range d.checks {
		if err == nil {
			err = d.instance.OnStartup[i]()
		}
	}
	if end := d.ends.run(time.Now().Add(endTime)); end != nil {
		log.Errorf("Ending a configuration that was validated: %v", end)
	}
	return err
}

// Validated reports whether the configuration of c is only looked at, as Validate does. The setup of a plugin that
// asks others, such as the API of a cloud, does not ask them then.
func Validated(c *caddy.Controller) bool { return c.Context().(*dnsContext).looked }

// captured is the last configuration that was made since setCapture, nil if there was none.
func captured() *dnsContext {
	capture.mu.Lock()
	defer capture.mu.Unlock()
	return capture.last
}

func setCapture(on bool) {
	capture.mu.Lock()
	capture.on, capture.once, capture.last = on, false, nil
	capture.mu.Unlock()
}

// newContext is the context of one configuration.
func newContext(i *caddy.Instance) caddy.Context {
	d := &dnsContext{instance: i, at: map[keyPos]*Config{}}
	capture.mu.Lock()
	defer capture.mu.Unlock()
	if capture.on {
		capture.last, d.once, d.looked = d, capture.once, !capture.once
		return d
	}
	memory.Trim()
	restarting.Lock()
	defer restarting.Unlock()
	if r := restarting.all[lineage(i)]; r != nil {
		r.made = d
	}
	return d
}
