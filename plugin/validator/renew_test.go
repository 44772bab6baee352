package validator

import (
	"context"
	"crypto"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/plugin/pkg/resolver/validate"

	"github.com/miekg/dns"
)

// newRolling is a zone with a key, and the text of an anchor for it.
func newRolling(t *testing.T) (z *rolling, anchor string) {
	z = &rolling{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), priv: map[string]crypto.Signer{}}
	return z, strings.ReplaceAll(z.add(257).ToDS(dns.SHA256).String(), "\t", " ")
}

// keysAsked is how often the zone's keys were asked for since the last call.
func (z *rolling) keysAsked() (n int) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for _, q := range z.asked {
		if q == "example. DNSKEY" {
			n++
		}
	}
	z.asked = nil
	return n
}

// stripping is an upstream that hands no signatures on, while it is on.
type stripping struct {
	plugin.Handler
	on   bool
	only uint16 // type of questions in whose replies it does that; 0 is all
}

func (s *stripping) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	nw := nonwriter.New(w)
	rcode, err := s.Handler.ServeDNS(ctx, nw, r)
	metadata.SetValueFunc(ctx, "forward/upstream", func() string { return "192.0.2.53:53" })
	m := nw.Msg
	if s.on && (s.only == 0 || s.only == r.Question[0].Qtype) {
		var kept []dns.RR
		for _, rr := range m.Answer {
			if rr.Header().Rrtype != dns.TypeRRSIG {
				kept = append(kept, rr)
			}
		}
		m.Answer = kept
	}
	_ = w.WriteMsg(m)
	return rcode, err
}

// Keys in use are fetched again when half of their time is over; what comes then counts only if it is secure.
func TestKeysAreRenewed(t *testing.T) {
	const ttl = time.Hour
	for _, prefetches := range []bool{true, false} {
		z, anchor := newRolling(t)
		v := z.begun(anchor, "")
		upstream := &stripping{Handler: z, only: dns.TypeDNSKEY}
		v.Next = upstream
		var fetches sync.WaitGroup
		if prefetches {
			r := &renewer{Validator: v, ctx: t.Context(), places: make(chan struct{}, renewals)}
			v.memory.renew = func(zone string) {
				r.places <- struct{}{}
				fetches.Go(func() { r.fetch(zone) })
			}
		}
		at := func(when time.Duration, asked, secure bool) {
			t.Helper()
			v.fixed = z.now.Add(when)
			m, _, err := ask(t, v, "www.example.", do)
			fetches.Wait()
			if got := err == nil && m.AuthenticatedData; got != secure {
				t.Errorf("prefetch %v, after %v: secure is %v: %v", prefetches, when, got, err)
			}
			if n := z.keysAsked(); n > 0 != asked {
				t.Errorf("prefetch %v, after %v: the keys were asked for %d times", prefetches, when, n)
			}
		}
		at(0, true, true)
		at(ttl/2-time.Minute, false, true)
		at(ttl/2+time.Minute, prefetches, true)
		at(ttl-time.Second, false, true)
		if !prefetches {
			at(ttl+time.Minute, true, true)
			continue
		}
		at(ttl+2*time.Minute, true, true) // half of the time of those that were fetched
		if b := v.memory.Node(questionOf(t, "example.").Name, v.now()); b == nil || b.Expires.Before(v.fixed.Add(ttl-time.Minute)) {
			t.Errorf("what is known ends at %v", b)
		}
		upstream.on = true
		at(ttl+33*time.Minute, true, true) // nobody has signed what comes: what is known holds
		at(ttl+33*time.Minute+time.Second, false, true)
		at(ttl+34*time.Minute, true, true) // tried once more
		at(3*ttl, true, false)
	}
}

// prefetcher is a resolver that may fetch again what it keeps.
type prefetcher struct {
	plugin.Handler
	on bool
}

func (p prefetcher) Prefetches() bool { return p.on }

// Whether keys are fetched again is the resolver's to say; no forwarder's upstream sees more queries than before.
func TestWhoRenews(t *testing.T) {
	for below, want := range map[plugin.Handler]bool{prefetcher{nil, true}: true, prefetcher{nil, false}: false, nil: false} {
		z, anchor := newRolling(t)
		v := z.begun(anchor, "rfc5011 off")
		v.heed(below)
		if err := v.keeper.start(); err != nil {
			t.Fatal(err)
		}
		defer v.keeper.stop()
		for _, later := range []time.Duration{0, 40 * time.Minute} {
			v.fixed = z.now.Add(later)
			if _, _, err := ask(t, v, "www.example.", do); err != nil {
				t.Fatal(err)
			}
			if later == 0 && z.keysAsked() == 0 {
				t.Fatal("the keys were not asked for")
			}
		}
		asked := false
		for range map[bool]int{true: 500, false: 5}[want] {
			if asked = asked || z.keysAsked() > 0; asked {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if asked != want {
			t.Errorf("above %v: keys were fetched again: %v", below, asked)
		}
	}
}

// An upstream that hands no signatures on is told of once, with its address.
func TestStripped(t *testing.T) {
	z, anchor := newRolling(t)
	upstream := &stripping{Handler: z, on: true}
	b := logtest.Capture(t)
	for _, bogus := range []int{1, 1, 0} { // the last time not all is wrong
		upstream.on = bogus > 0
		v := z.begun(anchor, "")
		v.Next = upstream
		for range 2 {
			v.memory.forget()
			v.failures = generations[validate.Question, failure]{most: failureOctets}
			m, _, err := ask(t, v, "www.example.", do)
			if (err == nil) == (bogus > 0) {
				t.Fatalf("upstream strips: %v: %v %v", upstream.on, m, err)
			}
		}
		const want = "Upstream 192.0.2.53:53 hands on no signatures of the keys of example.: nothing below that anchor can be validated"
		if n := strings.Count(b.String(), want); n != bogus {
			t.Errorf("upstream strips: %v: told %d times in\n%s", upstream.on, n, b.String())
		}
		b.Take()
	}
}

// What a validator knows passes to the one with the same stanza that follows at a reload.
func TestInherit(t *testing.T) {
	z, anchor := newRolling(t)
	begin := func(text, anchor string) *Validator {
		v := z.begun(anchor, "")
		v.text = text
		enter(text, v)
		v.keeper.publish()
		t.Cleanup(func() { leave(text, v) })
		return v
	}
	secure := func(v *Validator, asked bool) {
		t.Helper()
		m, _, err := ask(t, v, "www.example.", do)
		if err != nil || !m.AuthenticatedData {
			t.Errorf("%s: %v %v", v.text, m, err)
		}
		if n := z.keysAsked(); n > 0 != asked {
			t.Errorf("%s: the keys were asked for %d times", v.text, n)
		}
	}
	second := z.add(257) // which is waited for
	first := begin("one", anchor)
	first.keeper.look(t.Context(), z.now)
	z.keysAsked()
	secure(first, true) // as trust has changed, what was known is forgotten
	secure(first, false)
	if err := first.AddNegative([]byte(questionOf(t, "broken.").Name), time.Hour); err != nil {
		t.Fatal(err)
	}

	leave("one", begin("one", anchor)) // its configuration failed to start
	next := begin("one", anchor)
	secure(next, false)
	states := map[string]int{}
	keys, negative := next.AnchorStatus()
	for _, k := range keys {
		states[k.State]++
	}
	if states["valid"] != 1 || states["addpend"] != 1 || len(negative) != 1 || negative[0].Name != "broken." {
		t.Errorf("keys %v, negative anchors %v", keys, negative)
	}
	secure(begin("two", anchor), true)
	other := begin("one", strings.ReplaceAll(second.ToDS(dns.SHA256).String(), "\t", " ")) // with another file
	if keys, negative := other.AnchorStatus(); len(keys) != 1 || len(negative) != 0 {
		t.Errorf("another anchor: keys %v, negative anchors %v", keys, negative)
	}
	leave("one", next) // it was followed
	if all := living.all["one"]; all[len(all)-1] != other {
		t.Error("the end of one that was followed ends the other")
	}
}
