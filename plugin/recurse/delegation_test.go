package recurse

import (
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
	"github.com/coredns/coredns/plugin/pkg/resolver/store"
	"github.com/coredns/coredns/plugin/pkg/status"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

func TestDelegationStatus(t *testing.T) {
	s := defaults()
	r := &Recurse{zones: []string{rrset.MustName("com.")}, resolver: s.resolver("delegation")}
	stores, now := r.conf.Stores, r.now()
	one, two := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::2")
	host := rrset.MustName("ns2.example.net.")
	stores.RRsets.Put(host, wire.TypeAAAA, &store.Entry{Rank: store.AnswerData, Set: rrset.New(host, wire.TypeAAAA, 60, string(two.AsSlice())), TTL: 60, Expires: now.After(60)}, now)
	zone := rrset.MustName("example.com.")
	stores.Delegations.Put(&store.Delegation{
		Zone: zone, DS: rrset.New(zone, rrset.TypeDS, 60, "\x00\x01\x08\x02"), Expires: now.After(60),
		Hosts: []store.Host{{Name: rrset.MustName("ns1.example.com."), Addrs: []netip.Addr{one}}, {Name: host}, {Name: rrset.MustName("ns3.example.net.")}},
	}, now)
	v := stores.Servers.Get(netip.AddrPortFrom(one, 53), func() any { return nil })
	v.Replied(20*time.Millisecond, true)
	v.Silent(now, v.Wait())
	v.SetLame(rrset.MustName("b.example.com."), false, now.After(60))
	v.SetLame(rrset.MustName("a.example.com."), true, now.After(60))
	v.SetLame(rrset.MustName("c.example.com."), true, now) // is over
	v.RefusesOptions(now.After(60))
	v.Lost(false, time.Second)
	v.Lost(false, time.Second)
	v.Heard(true, 20*time.Millisecond, now)
	known := status.Server{Address: "192.0.2.1:53", State: "alive", RTT: 20, Timeouts: 1, Bare: true, TCPOnly: true, Lame: []string{"a.example.com.", "b.example.com."}}

	got, ok := r.DelegationStatus([]byte(rrset.MustName("www.example.com.")))
	inZone := known
	inZone.Host = "ns1.example.com."
	want := status.Delegation{Zone: "example.com.", From: "parent", TTL: 60, DS: true, Servers: []status.Server{
		inZone, {Host: "ns2.example.net.", Address: "[2001:db8::2]:53", State: "unknown"}, {Host: "ns3.example.net.", State: "unknown"},
	}}
	if got.TTL == 59 { // a second has ended
		got.TTL = 60
	}
	if !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
	if got, ok := r.DelegationStatus([]byte(rrset.MustName("com."))); !ok || got.From != "hints" || got.Zone != "." || len(got.Servers) < 13 {
		t.Errorf("without a delegation: %+v", got)
	}
	if _, ok := r.DelegationStatus([]byte(rrset.MustName("www.example.org."))); ok {
		t.Error("it is for a name of another zone")
	}
	if got := r.ServerStatus(one); len(got) != 1 || !reflect.DeepEqual(got[0], known) {
		t.Errorf("got %+v, want %+v", got, known)
	}
	if got := r.ServerStatus(two); got != nil {
		t.Errorf("of one that was never asked: %+v", got)
	}
}
