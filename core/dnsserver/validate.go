package dnsserver

import (
	"sync"

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

// Validate checks a configuration as far as it can be without starting it: it is parsed, all
// directives are set up, and its listeners are compared. No callback is run and nothing is listened on.
func Validate(input caddy.Input) error {
	capture.one.Lock()
	defer capture.one.Unlock()
	setCapture(true)
	defer setCapture(false)
	if err := caddy.ValidateAndExecuteDirectives(input, nil, true); err != nil {
		return err
	}
	capture.mu.Lock()
	d := capture.last
	capture.mu.Unlock()
	_, err := d.MakeServers()
	return err
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
	if capture.on {
		capture.last, d.once = d, capture.once
	}
	capture.mu.Unlock()
	return d
}
