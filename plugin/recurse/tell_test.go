package recurse

import (
	"context"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// An answer that lay here has no last server to speak of.
func TestNothingAsked(t *testing.T) {
	s := defaults()
	r := &Recurse{zones: []string{rrset.Root}, resolver: s.resolver("noted")}
	now, www := r.now(), rrset.New(rrset.MustName("www.example.org."), dns.TypeA, 300, "\xc0\x00\x02\x01")
	r.conf.Stores.RRsets.Put(www.Name, dns.TypeA, &store.Entry{Rank: store.AnswerData, Set: www, TTL: 300, Expires: now.After(300)}, now)
	ctx, trail := plugin.WithTrail(context.Background())
	m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	if _, err := trail.Serve(ctx, r, dnstest.NewRecorder(&test.ResponseWriter{}), m); err != nil {
		t.Fatal(err)
	}
	if notes := trail.Steps()[0].Notes; len(notes) != 1 || notes[0] != "no queries" {
		t.Errorf("noted %q", notes)
	}
}
