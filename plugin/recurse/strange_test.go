package recurse

import (
	"context"
	"errors"
	"iter"
	"net/netip"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"

	"github.com/miekg/dns"
)

// opinion is a validator that finds all replies secure, or none.
type opinion struct {
	err   error
	asked chan [2]*rrset.Message // of each judgement the NS and the DNSKEY RRset
}

func (o *opinion) Examine(reply func(string, uint16) *rrset.Message, all iter.Seq2[string, uint16]) error {
	for name, typ := range all {
		o.asked <- [2]*rrset.Message{reply(name, typ), reply(name, rrset.TypeDNSKEY)}
	}
	return o.err
}

// Servers of the root whose names are not those of the hints are used if a validator finds that they are signed, or if
// there is none.
func TestStrangeRoot(t *testing.T) {
	p, l, err := loopback.Listen()
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	server := &dns.Server{PacketConn: p, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		m.Authoritative = true
		for _, text := range map[uint16][]string{
			dns.TypeNS:     {". 300 IN NS b.root.", ". 300 IN RRSIG NS 13 0 300 20400101000000 20200101000000 7 . AAAA"},
			dns.TypeDNSKEY: {". 300 IN DNSKEY 257 3 13 AAAA", ". 300 IN RRSIG DNSKEY 13 0 300 20400101000000 20200101000000 7 . AAAA"},
		}[q.Question[0].Qtype] {
			rr, err := dns.NewRR(text)
			if err != nil {
				t.Error(err)
			}
			m.Answer = append(m.Answer, rr)
		}
		_ = w.WriteMsg(m)
	})}
	go func() { _ = server.ActivateAndServe() }()
	t.Cleanup(func() { _ = server.Shutdown() })
	at := netip.MustParseAddrPort(p.LocalAddr().String())

	for what, tc := range map[string]struct {
		validator *opinion
		used      bool
	}{
		"no validator": {nil, true},
		"secure":       {&opinion{nil, make(chan [2]*rrset.Message, 1)}, true},
		"bogus":        {&opinion{errors.New("bogus"), make(chan [2]*rrset.Message, 1)}, false},
	} {
		r := silent(t, func(c *settings) {
			c.timeout = 5 * time.Second
			c.hints = &store.Delegation{Zone: rrset.Root, Fixed: true, Hosts: []store.Host{{Name: rrset.MustName("a.root."), Addrs: []netip.Addr{at.Addr()}, Port: at.Port()}}}
		})
		if tc.validator != nil {
			r.examineBy(tc.validator, false)
		}
		j, _ := r.beginFor(queryFrom(t, "192.0.2.1", "www.example.net."), nil, nil, unlooked)
		if err := j.wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		if tc.validator != nil {
			select {
			case got := <-tc.validator.asked:
				if ns, keys := got[0], got[1]; ns == nil || keys == nil || ns.Section[rrset.Answer][0].Sigs != 1 || keys.Section[rrset.Answer][0].Sigs != 1 {
					t.Errorf("%s: judged by %v and %v", what, ns, keys)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%s: it was not judged", what)
			}
		}
		used := func() bool { return r.conf.Stores.Delegations.Get(rrset.Root, r.now()) != nil }
		for range 500 {
			if used() || !tc.used {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if !tc.used {
			time.Sleep(50 * time.Millisecond)
		}
		if got := used(); got != tc.used {
			t.Errorf("%s: used: %v", what, got)
		}
	}
}

// The validator of a configuration that is over examines no more, but the one before it, if that serves still.
func TestExaminers(t *testing.T) {
	running, failed := new(opinion), new(opinion)
	r := silent(t, func(*settings) {})
	r.examineBy(running, false)
	r.examineBy(failed, false)
	r.examineBy(failed, true)
	if r.examiner.get() != running {
		t.Error("after a reload that failed another one examines")
	}
	r.examineBy(running, true)
	if r.examiner.get() != nil {
		t.Error("one examines that is over")
	}
}
