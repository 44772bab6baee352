package advice

import (
	"net/netip"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
)

// Who told something last of what lies in a zone is one of its servers: those of a zone above may serve it, too, and those of
// a zone below need not.
func TestAs(t *testing.T) {
	above, at, below := netip.MustParseAddrPort("192.0.2.1:53"), netip.MustParseAddrPort("192.0.2.2:53"), netip.MustParseAddrPort("192.0.2.3:53")
	org, zone, sub := rrset.MustName("org."), rrset.MustName("example.org."), rrset.MustName("sub.example.org.")
	www := rrset.MustName("www.sub.example.org.")
	s := &Source{}
	if s.As(zone).IsValid() || (*Source)(nil).As(zone).IsValid() {
		t.Error("nobody has told anything")
	}
	s.Add(Teller{Zone: org, Server: above, Name: www})
	if got := s.As(zone); got != above {
		t.Errorf("%v, want who serves a zone above", got)
	}
	s.Add(Teller{Zone: zone, Server: at, Name: www})
	s.Add(Teller{Zone: sub, Server: below, Name: www})
	s.Add(Teller{Zone: org, Server: above, Name: rrset.MustName("other.org.")})
	if got := s.As(zone); got != at {
		t.Errorf("%v, want who has told it as of the zone", got)
	}
	if got := s.As(sub); got != below {
		t.Errorf("%v, want who has told it as of the zone below", got)
	}
}
