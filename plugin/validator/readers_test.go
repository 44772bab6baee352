package validator

import (
	"context"
	"testing"

	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// A signature is never computed where sockets are read: the query is parked for it. What was checked before is judged there, and so is
// what nobody signs.
func TestReadersComputeNothing(t *testing.T) {
	v, s := lab(t, "")
	wired(v, s)
	var w wire.Reply
	var q wire.Query
	serve := func(what, name string, want bool) {
		t.Helper()
		m := new(dns.Msg).SetQuestion(name, dns.TypeA)
		do(m)
		packet, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		if parked := serveWire(t, v, &w, &q, packet, make([]byte, 4096)); (parked > 0) != want {
			t.Errorf("%s: parked %d times", what, parked)
		}
	}
	serve("nothing is known", "www.example.", true)
	serve("all is known", "www.example.", false)
	v.memory.checks.forget()
	serve("the keys are known", "www.example.", true)
	serve("it was bogus", "bad.example.", true)
	serve("no anchor", "plain.test.", false)
}

// Plugins above are told what a reply was found to be.
func TestMetadata(t *testing.T) {
	for name, want := range map[string]string{"www.example.": "secure", "bad.example.": "bogus", "plain.test.": "indeterminate"} {
		v, _ := lab(t, "")
		ctx := metadata.ContextWithMetadata(context.Background())
		m := new(dns.Msg).SetQuestion(name, dns.TypeA)
		do(m)
		_, _ = v.ServeDNS(ctx, &test.ResponseWriter{}, m)
		got := "nothing"
		if f := metadata.ValueFunc(ctx, "validator/status"); f != nil {
			got = f()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
