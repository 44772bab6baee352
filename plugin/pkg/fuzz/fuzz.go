// Package fuzz hands arbitrary messages to a plugin. Start at Do.
package fuzz

import (
	"context"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// Do reads data as a message and, if it is one that a server would hand to its plugins, lets p serve it. It
// returns 1 if p was called and 0 if not, as fuzzers want to know which inputs lead anywhere. p may panic.
func Do(p plugin.Handler, data []byte) int {
	r := new(dns.Msg)
	if err := r.Unpack(data); err != nil || len(r.Question) != 1 || r.Response {
		return 0
	}
	// What p returns is its own business; it is enough that it does return.
	_, _ = p.ServeDNS(context.Background(), &test.ResponseWriter{}, r)
	return 1
}
