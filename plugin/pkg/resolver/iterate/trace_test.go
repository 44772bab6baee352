package iterate

import (
	"testing"

	"github.com/coredns/coredns/plugin/pkg/resolver/rrset"
)

// An NSEC record is left out if its next name is not in the zone whose server told it.
func TestLeadsOut(t *testing.T) {
	for next, want := range map[string]bool{"a.example.org.": false, "example.org.": false, "A.EXAMPLE.org.": false, "example.net.": true, "org.": true, "xexample.org.": true} {
		s := rrset.New(rrset.MustName("x.example.org."), rrset.TypeNSEC, 60, rrset.MustName(next)+"\x00\x01\x40")
		if got := leadsOut(s, rrset.MustName("example.org.")); got != want {
			t.Errorf("%s: %v", next, got)
		}
	}
	if !leadsOut(rrset.New("\x01x\x00", rrset.TypeNSEC, 60, "\x05abc"), rrset.Root) {
		t.Error("a name that is cut short")
	}
	if leadsOut(rrset.New("\x01x\x00", 1, 60, "\x01\x02\x03\x04"), "\x01y\x00") {
		t.Error("an A record")
	}
}
