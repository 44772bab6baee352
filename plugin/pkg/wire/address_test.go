package wire

import (
	"net"
	"net/netip"
	"reflect"
	"testing"
)

func TestAddrScratch(t *testing.T) {
	var room AddrScratch
	for _, text := range []string{"192.0.2.1:53", "[2001:db8::1]:4711", "[fe80::1%lo]:1", "[::ffff:192.0.2.1]:2", ""} {
		a, _ := netip.ParseAddrPort(text)
		for p, want := range map[Proto]net.Addr{UDP: net.UDPAddrFromAddrPort(a), TCP: net.TCPAddrFromAddrPort(a)} {
			if got := room.Set(p, a); !reflect.DeepEqual(got, want) {
				t.Errorf("%s over %s: got %#v, want %#v", text, p, got, want)
			}
			peer := Peer{Proto: p, Client: a, Local: a}
			if !reflect.DeepEqual(peer.RemoteAddr(), want) || !reflect.DeepEqual(peer.LocalAddr(), want) {
				t.Errorf("%s over %s: %v and %v", text, p, peer.RemoteAddr(), peer.LocalAddr())
			}
		}
	}
}
