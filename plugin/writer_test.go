package plugin_test

import (
	"crypto/tls"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// telling is a writer that tells all that can be asked.
type telling struct {
	test.ResponseWriter
	state *tls.ConnectionState
}

func (w *telling) ConnectionState() *tls.ConnectionState { return w.state }
func (w *telling) AskedName() string                     { return "asked.example." }

func TestWrappedHandsOn(t *testing.T) {
	outer := &telling{state: &tls.ConnectionState{ServerName: "dns.example"}}
	var w dns.ResponseWriter = outer
	for range 3 { // writers stand around writers
		w = plugin.Wrapped{ResponseWriter: w}
	}
	if plugin.ConnectionState(w) != outer.state || plugin.AskedName(w) != "asked.example." {
		t.Errorf("got %v, %q", plugin.ConnectionState(w), plugin.AskedName(w))
	}
	w = plugin.Wrapped{ResponseWriter: &test.ResponseWriter{}}
	if plugin.ConnectionState(w) != nil || plugin.AskedName(w) != "" {
		t.Errorf("around a writer that tells nothing: %v, %q", plugin.ConnectionState(w), plugin.AskedName(w))
	}
}
