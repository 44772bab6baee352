package plugin_test

import (
	"context"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// explaining is a source that says something beside its answer, by one rule in both lanes.
type explaining struct{}

func (explaining) Name() string { return "explaining" }

func (explaining) decide(w *wire.Reply, q *wire.Query) {
	w.Begin(q)
	w.Addr(wire.Answer, q.Name(), 60, answer)
	w.AddEDE(dns.ExtendedErrorCodeFiltered, "left out")
	w.AddOption(wire.OptionECS, []byte{0, 1, 24, 16, 192, 0, 2})
}

func (e explaining) ServeWire(_ context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	e.decide(w, q)
	return wire.Done
}

func (e explaining) WireSelf() plugin.Handler { return e }

func (e explaining) ServeDNS(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	a, err := plugin.NewWireAdapter(w, r)
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	defer a.Free()
	e.decide(&a.Reply, &a.Query)
	return a.Write()
}

// edited has the replies of a source edited.
type edited struct {
	withAA
	below plugin.Handler
}

func (e *edited) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	return plugin.EditWire(&e.withAA, e.below, ctx, w, q)
}

func (e *edited) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	rcode, _, err := plugin.EditReplies(&e.withAA, e.below, ctx, w, r)
	return rcode, err
}

// EDNS options that a source puts into its reply get to clients with EDNS in both lanes, and through plugins in between that
// see messages only.
func TestOptionsInBothLanes(t *testing.T) {
	plain, extended := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA), new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	extended.SetEdns0(1232, true)
	for name, create := range map[string]func() test.Handler{
		"alone":  func() test.Handler { return explaining{} },
		"edited": func() test.Handler { return &edited{below: explaining{}} },
	} {
		t.Run(name, func(t *testing.T) {
			test.Lanes(t, create, extended)
			for _, r := range []*dns.Msg{plain, extended} {
				k := new(keeping)
				if _, err := create().ServeDNS(context.Background(), k, r); err != nil || len(k.all) != 1 {
					t.Fatalf("%v, %d messages", err, len(k.all))
				}
				opt := k.all[0].IsEdns0()
				if r == plain {
					if opt != nil {
						t.Errorf("a client without EDNS gets %v", opt)
					}
					continue
				}
				if opt == nil || len(opt.Option) != 2 || !opt.Do() || opt.UDPSize() != 1232 {
					t.Fatalf("OPT record: %v", opt)
				}
				ede, _ := opt.Option[0].(*dns.EDNS0_EDE)
				ecs, _ := opt.Option[1].(*dns.EDNS0_SUBNET)
				if ede == nil || ede.InfoCode != dns.ExtendedErrorCodeFiltered || ede.ExtraText != "left out" || ecs == nil || ecs.SourceScope != 16 {
					t.Errorf("options: %v", opt.Option)
				}
			}
		})
	}
}
