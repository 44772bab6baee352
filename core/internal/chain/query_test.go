package chain

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"testing"

	"github.com/coredns/coredns/core/internal/reply"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/cookie"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// The context tells what plugins ask of it, and the transport's context all else.
func TestQueryContext(t *testing.T) {
	type ownKey struct{}
	self := new(int)
	for _, tc := range []struct {
		name  string
		outer context.Context
		loop  int
		inner bool
	}{
		{"of a client", t.Context(), 0, false},
		{"of a plugin", context.WithValue(context.WithValue(t.Context(), plugin.ServerKey{}, "another"), plugin.LoopKey{}, 3), 3, true},
	} {
		var seen context.Context
		b := blockOf(".", handler{"sees", func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			seen = ctx
			return named.serve(ctx, w, r)
		}})
		*b.View = "v"
		c := build(t, Options{Self: self}, b)
		c.ServeDNS(context.WithValue(tc.outer, ownKey{}, "own"), new(foreign), asked())
		if seen.Value(plugin.ServerKey{}) != any(self) || seen.Value(plugin.ViewKey{}) != "v" || seen.Value(ownKey{}) != "own" {
			t.Errorf("%s: %v, %v, %v", tc.name, seen.Value(plugin.ServerKey{}), seen.Value(plugin.ViewKey{}), seen.Value(ownKey{}))
		}
		if seen.Value(plugin.LoopKey{}) != tc.loop || plugin.Inner(seen) != tc.inner {
			t.Errorf("%s: loop %v, inner %t", tc.name, seen.Value(plugin.LoopKey{}), plugin.Inner(seen))
		}
		if got := plugin.PathFrom(seen).Wrote(); got != "sees" {
			t.Errorf("%s: %q wrote", tc.name, got)
		}
	}
}

// TestQuestionsInCircle has a plugin that asks the server for what it is asked, and does not count. It comes to an end, and
// those behind it are told how deep they are.
func TestQuestionsInCircle(t *testing.T) {
	var c *Chain
	var loops []any
	c = build(t, Options{}, blockOf(".", handler{"circle", func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		if loops = append(loops, ctx.Value(plugin.LoopKey{})); len(loops) > 2*maxDepth {
			return dns.RcodeNameError, nil
		}
		inner := new(foreign)
		c.ServeDNS(context.WithValue(ctx, plugin.ServerKey{}, c), inner, r.Copy())
		return inner.sent[0].Rcode, nil
	}}))
	w := new(foreign)
	c.ServeDNS(t.Context(), w, asked())
	if len(w.sent) != 1 || w.sent[0].Rcode != dns.RcodeServerFailure {
		t.Errorf("got %v", w.sent)
	}
	if len(loops) != maxDepth+1 || loops[0] != 0 || loops[1] != 0 || loops[maxDepth] != maxDepth-1 {
		t.Errorf("asked %d times, with %v", len(loops), loops)
	}
}

// Who asks a server from within has no client whose cookie would be answered.
func TestInnerHasNoCookie(t *testing.T) {
	c := build(t, Options{Finish: &reply.Finisher{Cookies: cookie.NewRing(cookie.Keys{{1}})}}, blockOf(".", returning(dns.RcodeRefused, nil)))
	inner := context.WithValue(t.Context(), plugin.ServerKey{}, c)
	for ctx, want := range map[context.Context]int{t.Context(): 1, inner: 0} {
		w := new(foreign)
		c.ServeDNS(ctx, w, asked(withEDNS, cookieOf("0123456789abcdef")))
		if got := len(w.sent[0].IsEdns0().Option); got != want {
			t.Errorf("%d options, want %d", got, want)
		}
	}
}

// What handlers write comes to the client, by whatever way, and which plugin wrote is noted.
func TestChainWriter(t *testing.T) {
	state := new(tls.ConnectionState)
	lane := func(r *dns.Msg, rcode int) *wire.Reply {
		var q wire.Query
		b, _ := r.Pack()
		q.Parse(b)
		w := new(wire.Reply)
		w.Reset(nil)
		w.Begin(&q)
		w.Addr(wire.Answer, q.Name(), 60, netip.MustParseAddr("192.0.2.7"))
		w.SetRcode(rcode)
		return w
	}
	for name, tc := range map[string]struct {
		write func(w dns.ResponseWriter, r *dns.Msg) error
		taken bool // by a writer of ours
	}{
		"message": {func(w dns.ResponseWriter, r *dns.Msg) error {
			m := new(dns.Msg).SetReply(r)
			m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.IPv4(192, 0, 2, 7)}}
			return w.WriteMsg(m)
		}, true},
		"octets": {func(w dns.ResponseWriter, r *dns.Msg) error {
			b, err := new(dns.Msg).SetReply(r).Pack()
			if err == nil {
				_, err = w.Write(b)
			}
			return err
		}, true},
		"from a lane": {func(w dns.ResponseWriter, r *dns.Msg) error {
			taken, err := plugin.TakeReply(w, lane(r, 0), r)
			if !taken {
				return errors.New("not taken")
			}
			return err
		}, true},
		"from a lane, extended rcode": {func(w dns.ResponseWriter, r *dns.Msg) error {
			_, err := plugin.TakeReply(w, lane(r, dns.RcodeBadCookie), r)
			return err
		}, false},
		"from a lane, to another query": {func(w dns.ResponseWriter, r *dns.Msg) error {
			_, err := plugin.TakeReply(w, lane(r, 0), r.Copy())
			return err
		}, false},
		"from a lane, signed": {func(w dns.ResponseWriter, r *dns.Msg) error {
			r.SetTsig("key.", dns.HmacSHA256, 300, 0)
			_, err := plugin.TakeReply(w, lane(asked(), 0), r)
			return err
		}, false},
	} {
		var path *plugin.Path
		h := handler{"writes", func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
			path = plugin.PathFrom(ctx)
			if got := plugin.ConnectionState(w); got != state {
				t.Errorf("%s: TLS state %v", name, got)
			}
			return 0, tc.write(w, r)
		}}
		w, to := ours()
		w.TLS = state
		build(t, Options{}, blockOf(".", h)).ServeDNS(t.Context(), w, asked())
		if (len(to.sent) == 1) != tc.taken || (path.Wrote() == "writes") != tc.taken {
			t.Errorf("%s: sent %v, %q wrote", name, to.sent, path.Wrote())
		}
		if name != "octets" && tc.taken && len(to.sent[0].Answer) != 1 {
			t.Errorf("%s: got %v", name, to.sent)
		}
	}
	h := handler{"writes", func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		if taken, _ := plugin.TakeReply(w, lane(r, 0), r); taken {
			t.Error("a writer of others took a reply from a lane")
		}
		return 0, nil
	}}
	build(t, Options{}, blockOf(".", h)).ServeDNS(t.Context(), &foreign{tls: state}, asked())
}
