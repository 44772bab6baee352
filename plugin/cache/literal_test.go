package cache

import (
	"testing"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// TestLiteralWriter: a ResponseWriter that others made knows no query, so it keeps nothing and passes all on as it is.
func TestLiteralWriter(t *testing.T) {
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	w := &ResponseWriter{ResponseWriter: rec, Cache: New()}
	m := new(dns.Msg).SetReply(new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
	if err := w.WriteMsg(m); err != nil || rec.Msg != m {
		t.Errorf("%v, %v", err, rec.Msg)
	}
}
