package recurse

import (
	"context"
	"net/netip"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// What the system refuses to send is no failure of a server: the name is tried again after a second, not after five.
func TestRefusedBySystem(t *testing.T) {
	zone, name := rrset.MustName("example.org."), rrset.MustName("www.example.org.")
	r := silent(t, func(s *settings) {
		// Who has not asked for that may not send to all.
		all := []netip.Addr{netip.MustParseAddr("255.255.255.255")}
		s.stubs[zone] = &store.Delegation{Zone: zone, Fixed: true, Hosts: []store.Host{{Addrs: all, Port: 9}}}
	})
	j, _ := r.beginFor(queryFrom(t, "192.0.2.1", "www.example.org."), nil, nil, unlooked)
	if err := j.wait(context.Background()); err != nil || j.result.Rcode != 2 || j.result.Queries == 0 {
		t.Fatalf("%+v %v", j.result, err)
	}
	now := r.now()
	f, ok := r.conf.Stores.Failures.Get(name, wire.TypeA, now)
	if !ok || f.Code != codeNetwork {
		t.Fatalf("kept: %v, %+v", ok, f)
	}
	if f.Until > now+store.Second {
		t.Errorf("%s: kept for %d ns", f.Text, f.Until-now)
	}
}
