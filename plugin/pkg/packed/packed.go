// Package packed makes messages in wire format (RFC 1035 §4.1) for tests: queries, and replies with records as they
// stand in zone files. Only tests may use it: what can not be packed fails them. Start at Message.
package packed

import (
	"testing"

	"github.com/miekg/dns"
)

// Message is a message with a question for name, changed by the functions in their order. Its names are compressed.
func Message(t testing.TB, name string, typ uint16, change ...func(*dns.Msg)) []byte {
	t.Helper()
	m := new(dns.Msg).SetQuestion(name, typ)
	m.Compress = true
	for _, f := range change {
		f(m)
	}
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Reply makes m a reply, with whatever else is in it.
// It is one of the functions that Message takes.
func Reply(m *dns.Msg) { m.Response = true }

// Answer makes a message a reply with records in its answer section, each as it stands in a zone file. It panics if one
// does not.
func Answer(rrs ...string) func(*dns.Msg) {
	return func(m *dns.Msg) {
		Reply(m)
		for _, s := range rrs {
			rr, err := dns.NewRR(s)
			if err != nil {
				panic(err)
			}
			m.Answer = append(m.Answer, rr)
		}
	}
}
