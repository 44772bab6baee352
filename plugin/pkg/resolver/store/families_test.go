package store

import (
	"fmt"
	"net/netip"
	"testing"
	"time"
)

// Where no server replies over a family, unknown ones of the other go before, until one replies again. One told of it, once.
func TestSilentFamily(t *testing.T) {
	s := New(8<<20, 1000)
	said := ""
	s.Servers.OnSilence(func(six, silent bool) { said += fmt.Sprintf("six %v silent %v; ", six, silent) })
	get := func(addr string) *Server {
		return s.Servers.Get(netip.AddrPortFrom(netip.MustParseAddr(addr), 53), func() any { return nil })
	}
	behind := func(first, second string) bool { return get(second).RTT() > get(first).RTT()+400*time.Millisecond }
	silent := func(format string, n int) {
		for i := range n {
			v := get(fmt.Sprintf(format, i))
			v.Silent(now, v.Wait())
			v.Silent(now, v.Wait()) // counts once
		}
	}
	silent("2001:db8::%d", 20)
	if behind("192.0.2.200", "2001:db8::ff") || said != "" {
		t.Errorf("nobody has replied at all: %s", said)
	}
	get("192.0.2.201").Replied(time.Millisecond, true)
	silent("2001:db8::1:%d", 1)
	if !behind("192.0.2.200", "2001:db8::ff") || said != "six true silent true; " {
		t.Errorf("IPv6 is silent: %s", said)
	}
	other := New(8<<20, 1000)
	other.Servers.Inherit(&s.Servers, func(netip.AddrPort) any { return nil })
	if v := other.Servers.Get(netip.MustParseAddrPort("[2001:db8::ff]:53"), func() any { return nil }); v.RTT() < 500*time.Millisecond {
		t.Error("what is known of a family is not inherited")
	}
	silent("192.0.2.%d", 10)
	if behind("192.0.2.200", "2001:db8::ff") {
		t.Error("both are silent: one is preferred")
	}
	get("2001:db8::ff").Replied(time.Millisecond, true)
	if get("2001:db8::fe").RTT() > 400*time.Millisecond || !behind("2001:db8::fe", "192.0.2.200") {
		t.Error("a server has replied over IPv6")
	}
	get("192.0.2.201").Replied(time.Millisecond, true)
	if behind("192.0.2.200", "2001:db8::fe") || behind("2001:db8::fe", "192.0.2.200") {
		t.Error("both reply: one is preferred")
	}
	silent("2001:db8::2:%d", silentServers-1)
	if said != "six true silent true; six true silent false; " {
		t.Errorf("said: %s", said)
	}
}

// Where all servers that are known are far away, unknown ones are waited for longer, until a near one replies; and by one
// that is far beside near ones nothing changes.
func TestAllAreFar(t *testing.T) {
	s := New(8<<20, 1000)
	get := func(n int) *Server {
		return s.Servers.Get(netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), 53), func() any { return nil })
	}
	wait := func(what string, v *Server, want time.Duration) {
		t.Helper()
		if got := v.Wait(); got != want {
			t.Errorf("%s: an unknown server is waited for %v, want %v", what, got, want)
		}
	}
	wait("at first", get(100), 400*time.Millisecond)
	get(1).Replied(640*time.Millisecond, true)
	wait("one replied after 640 ms", get(100), 960*time.Millisecond)
	wait("that tells nothing of IPv6", s.Servers.Get(netip.MustParseAddrPort("[2001:db8::1]:53"), func() any { return nil }), 400*time.Millisecond)
	other := New(8<<20, 1000)
	other.Servers.Inherit(&s.Servers, func(netip.AddrPort) any { return nil })
	wait("inherited", other.Servers.Get(netip.MustParseAddrPort("192.0.2.100:53"), func() any { return nil }), 960*time.Millisecond)
	get(1).Replied(2*time.Second, true)
	if w := get(100).Wait(); w < 960*time.Millisecond || w > time.Second {
		t.Errorf("one was slow: %v", w)
	}
	get(2).Replied(10*time.Millisecond, true)
	wait("one is near", get(100), 400*time.Millisecond)
	for range 20 {
		get(1).Replied(640*time.Millisecond, true)
	}
	wait("some are near", get(100), 400*time.Millisecond)
	for range 1000 {
		get(1).Replied(2*time.Second, true)
	}
	wait("all are very far now", get(100), 1500*time.Millisecond)
	v := get(100)
	v.Silent(now, v.Wait())
	wait("and silent", v, 3*time.Second)
}
