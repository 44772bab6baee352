package plugin

import (
	"context"
	"errors"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

type labelKey struct{}

func TestNextMsg(t *testing.T) {
	odd := errors.New("odd")
	packet, _ := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA).Pack()
	var q wire.Query
	if !q.Parse(packet) {
		t.Fatal("not eligible")
	}
	q.SetFlag(wire.FlagCD, true) // a plugin above changed it
	ctx := context.WithValue(context.Background(), CollectKey{}, Collect(func(ctx context.Context, state request.Request) context.Context {
		return context.WithValue(ctx, labelKey{}, "label of "+state.Name())
	}))
	next := HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		if ctx.Value(labelKey{}) != "label of www.example.org." {
			t.Errorf("metadata: %v", ctx.Value(labelKey{}))
		}
		if !r.CheckingDisabled || r.Question[0].Name != "www.example.org." {
			t.Errorf("not as it stands: %v", r)
		}
		w.WriteMsg(new(dns.Msg).SetRcode(r, dns.RcodeRefused))
		b, _ := new(dns.Msg).SetRcode(r, dns.RcodeNameError).Pack()
		w.Write(b)
		return dns.RcodeNameError, odd
	})
	m, rcode, err := NextMsg(ctx, next, &q)
	if m == nil || m.Rcode != dns.RcodeNameError || rcode != dns.RcodeNameError || !errors.Is(err, odd) {
		t.Errorf("got %v, %d, %v", m, rcode, err)
	}
	if m, rcode, err := NextMsg(ctx, nil, &q); m != nil || rcode != dns.RcodeServerFailure || err == nil {
		t.Errorf("without a next one: %v, %d, %v", m, rcode, err)
	}
}
