package recurse

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
)

// A family over which no server replies is a line of the log, once, and so is the first reply then.
func TestSilentFamilyIsTold(t *testing.T) {
	conf := defaults()
	r := conf.resolver("silent family")
	servers := &r.conf.Stores.Servers
	out := logtest.Capture(t)
	first := servers.Get(netip.MustParseAddrPort("192.0.2.1:53"), func() any { return nil })
	first.Replied(time.Millisecond, true)
	for i := range 100 {
		v := servers.Get(netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", i)), 53), func() any { return nil })
		v.Silent(r.now(), v.Wait())
	}
	servers.Get(netip.MustParseAddrPort("[2001:db8::1]:53"), func() any { return nil }).Replied(time.Millisecond, true)
	first.Replied(time.Millisecond, true)
	want := "[WARNING] plugin/recurse: No server replies over IPv6: they are asked over IPv4 first\n[INFO] plugin/recurse: Servers reply over IPv6\n"
	if got := out.String(); !strings.Contains(got, want) || strings.Count(got, "\n") != 2 {
		t.Errorf("the log has %q", got)
	}
}
