package forward

import (
	"context"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// The DS records of an inner zone are asked of the next plugin, where one says so; all else of the zone is forwarded.
func TestLeaveDS(t *testing.T) {
	for _, c := range []struct {
		name   string
		typ    uint16
		leaves bool
		next   bool
	}{
		{"corp.", dns.TypeDS, true, true}, {"CORP.", dns.TypeDS, true, true}, {"corp.", dns.TypeDS, false, false}, {"corp.", dns.TypeA, true, false},
		{"x.corp.", dns.TypeDS, true, false}, {"other.", dns.TypeA, true, true},
	} {
		f, asked := New(), false
		f.zones.From = wire.MustName("corp.")
		f.Next = plugin.HandlerFunc(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
			asked = true
			return 0, nil
		})
		if c.leaves {
			f.LeaveDS()
		}
		_, _ = f.ServeDNS(context.Background(), dnstest.NewRecorder(&test.ResponseWriter{}), new(dns.Msg).SetQuestion(c.name, c.typ))
		if asked != c.next {
			t.Errorf("%+v: next %v", c, asked)
		}
		a, err := plugin.NewWireAdapter(&test.ResponseWriter{}, new(dns.Msg).SetQuestion(c.name, c.typ))
		if err != nil {
			t.Fatal(err)
		}
		if o := f.ServeWire(context.Background(), &a.Reply, &a.Query); (o == wire.Unpack) != c.next { // next is no WireHandler
			t.Errorf("%+v, wire lane: outcome %v", c, o)
		}
	}
	f := New()
	if f.LeaveDS(); f.parentSide {
		t.Error("the root has no parent")
	}
}
