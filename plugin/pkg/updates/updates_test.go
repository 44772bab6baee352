package updates

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// server answers datagrams with what reply makes of them.
func server(t *testing.T, reply func(packet []byte) [][]byte) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		buf := make([]byte, 65535)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			for _, b := range reply(buf[:n]) {
				conn.WriteTo(b, from)
			}
		}
	}()
	return conn.LocalAddr().String()
}

// TestForward: the first server that answers decides, and only an answer to this message counts.
func TestForward(t *testing.T) {
	m := new(dns.Msg).SetUpdate("example.org.")
	packet, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	good, err := new(dns.Msg).SetRcode(m, dns.RcodeYXDomain).Pack()
	if err != nil {
		t.Fatal(err)
	}
	other := append([]byte(nil), good...)
	other[0]++
	query := append([]byte(nil), good...)
	query[2] &^= 0x78
	first := server(t, func(got []byte) [][]byte {
		if string(got) != string(packet) {
			t.Errorf("%x came, not %x", got, packet)
		}
		return [][]byte{{1, 2, 3}, other, packet, query, good}
	})
	dead, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer dead.Close()
	for name, servers := range map[string][]string{"one": {first}, "the second": {dead.LocalAddr().String(), first}} {
		f := Forwarder{Servers: servers}
		if got, err := f.Forward(context.Background(), packet, false); err != nil || string(got) != string(good) {
			t.Errorf("%s: %x, %v", name, got, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	f := Forwarder{Servers: []string{dead.LocalAddr().String()}}
	if _, err := f.Forward(ctx, packet, false); err == nil || !strings.Contains(err.Error(), "passed on to") {
		t.Errorf("%v", err)
	}
	if _, err := new(Forwarder).Forward(context.Background(), packet, false); err == nil {
		t.Error("without servers")
	}
}
