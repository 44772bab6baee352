package updates

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"

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

// What a server that is not there leaves of its time is for those behind it: a primary that is slow is waited for.
func TestTimeIsLeft(t *testing.T) {
	packet, err := new(dns.Msg).SetUpdate("example.org.").Pack()
	if err != nil {
		t.Fatal(err)
	}
	slow := server(t, func(packet []byte) [][]byte {
		time.Sleep(Patience * 3 / 5)
		reply := slices.Clone(packet)
		reply[2] |= 0x80
		return [][]byte{reply}
	})
	f := Forwarder{Servers: []string{loopback.Addr(), slow}}
	if _, err := f.Forward(t.Context(), packet, false); err != nil {
		t.Error(err)
	}
}

// Where too many queries wait, a message that a silent server does not answer gives way, over UDP and TCP.
func TestGivesWay(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	udp := server(t, func([]byte) [][]byte { return nil })
	packet, err := new(dns.Msg).SetUpdate("example.org.").Pack()
	if err != nil {
		t.Fatal(err)
	}
	for _, tcp := range []bool{false, true} {
		f, gone := &Forwarder{Servers: []string{udp}}, make(chan error, 1)
		if tcp {
			f.Servers = []string{silent.Addr().String()}
		}
		began := time.Now()
		go func() {
			ctx := context.WithValue(context.Background(), eventloop.PlaceKey{}, eventloop.AtWork)
			_, err := f.Forward(ctx, packet, tcp)
			gone <- err
		}()
		eventually.Holds(t, "one that gives way", func() bool { return eventloop.MakeRoom(eventloop.AtWork) })
		if err := <-gone; err != eventloop.ErrGaveWay || time.Since(began) >= Patience {
			t.Error(tcp, err, time.Since(began))
		}
	}
}

// What comes on one connection reaches the server in this order, whoever is ready first. Nobody waits for longer than
// the message's context says.
func TestForwardsInOrder(t *testing.T) {
	var mu sync.Mutex
	var came []uint16
	addr := server(t, func(packet []byte) [][]byte {
		mu.Lock()
		defer mu.Unlock()
		came = append(came, binary.BigEndian.Uint16(packet))
		reply := slices.Clone(packet)
		reply[2] |= 0x80
		return [][]byte{reply}
	})
	f := Forwarder{Servers: []string{addr}}
	var o Order
	var all []*Position
	const n = 20
	for range n {
		all = append(all, o.Begin())
	}
	var wg sync.WaitGroup
	for i, at := range slices.Backward(all) {
		m := new(dns.Msg).SetUpdate("example.org.")
		m.Id = uint16(i)
		packet, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if _, err := f.Forward(WithPosition(t.Context(), at), packet, false); err != nil {
				t.Errorf("message %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	mu.Lock()
	defer mu.Unlock()
	if len(came) != n || !slices.IsSorted(came) {
		t.Errorf("they came as %v", came)
	}
	before, behind := o.Begin(), o.Begin()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Forward(WithPosition(ctx, behind), make([]byte, 12), false); !errors.Is(err, context.Canceled) || len(came) != n {
		t.Errorf("behind one that is not answered: %v, %d messages", err, len(came))
	}
	before.End()
}

// TestInCircle: a message that comes from a socket by which another one is passed on has been passed on here. One of a
// client that has the same port of the other protocol has not.
func TestInCircle(t *testing.T) {
	for _, tcp := range []bool{false, true} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		from := make(chan net.Addr, 1)
		primary := l.Addr().String()
		if tcp {
			go func() {
				if c, err := l.Accept(); err == nil {
					c.Read(make([]byte, 1)) // what is sent is sent when the socket is known
					from <- c.RemoteAddr()
				}
			}()
		} else {
			conn, err := net.ListenPacket("udp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			primary = conn.LocalAddr().String()
			go func() {
				_, addr, _ := conn.ReadFrom(make([]byte, 512))
				from <- addr
			}()
		}
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		ended.Go(func() {
			f := Forwarder{Servers: []string{primary}}
			f.Forward(ctx, make([]byte, 12), tcp)
		})
		at := netip.MustParseAddrPort((<-from).String())
		if udp := InCircle(net.UDPAddrFromAddrPort(at)); udp == tcp {
			t.Errorf("TCP %v, from UDP %v: %v", tcp, at, udp)
		}
		if got := InCircle(net.TCPAddrFromAddrPort(at)); got != tcp {
			t.Errorf("TCP %v, from TCP %v: %v", tcp, at, got)
		}
		cancel()
		ended.Wait()
	}
}
