package afxdp

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
)

// A socket for one address is found, one that is connected or has all addresses is not.
func TestBound(t *testing.T) {
	for _, tc := range []struct {
		listen string
		want   bool
	}{{"127.0.0.71:0", true}, {"[::1]:0", true}, {":0", false}, {"0.0.0.0:0", false}} {
		c, err := net.ListenPacket("udp", tc.listen)
		if tc.listen[0] == '[' && errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Logf("%s not asked for: no IPv6 on loopback, sysctl net.ipv6.conf.lo.disable_ipv6=0", tc.listen)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		a := c.LocalAddr().(*net.UDPAddr).AddrPort()
		if got := bound(a.Port())[a.Addr().Unmap()]; got != tc.want {
			t.Errorf("%s: got %v, want %v", tc.listen, got, tc.want)
		}
	}
	c, err := net.Dial("udp", "127.0.0.71:53")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := bound(c.LocalAddr().(*net.UDPAddr).AddrPort().Port()); len(got) > 0 {
		t.Errorf("a client is taken for a server: %v", got)
	}
}

func FuzzBoundAt(f *testing.F) {
	f.Add("  142: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000     0")
	f.Add("  142: 00000000000000000000000001000000:0035 00000000000000000000000000000000:0000 07")
	f.Fuzz(func(t *testing.T, line string) {
		if a, ok := boundAt(line, 53); ok && !a.IsValid() {
			t.Errorf("%q: %v, %v", line, a, ok)
		}
	})
}

func TestBoundAt(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the lines are of a machine with the other order of octets")
	}
	for line, want := range map[string]string{
		"  142: 0100007F:0035 00000000:0000 07 00000000:00000000":                                                 "127.0.0.1",
		"  142: 00000000000000000000000001000000:0035 00000000000000000000000000000000:0000 07 00000000:00000000": "::1",
		"  142: 0100007F:0036 00000000:0000 07":                                                                   "",
		"  142: 0100007F:0035 0200007F:0035 01":                                                                   "",
		"  142: 00000000:0035 00000000:0000 07":                                                                   "",
		"   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid":                      "",
	} {
		var a netip.Addr
		if want != "" {
			a = netip.MustParseAddr(want)
		}
		if got, ok := boundAt(line, 53); ok != (want != "") || ok && got != a {
			t.Errorf("%q: got %v, %v", line, got, ok)
		}
	}
}
