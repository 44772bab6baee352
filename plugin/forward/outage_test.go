//go:build unix

package forward

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// mortal is an upstream over UDP at an address that stays its own while it is dead.
type mortal struct {
	addr  string
	asked atomic.Int64
	conn  net.PacketConn
	ended chan struct{}
}

func (m *mortal) live(t *testing.T) {
	t.Helper()
	conn, err := net.ListenPacket("udp", m.addr)
	if err != nil {
		t.Fatal(err)
	}
	m.conn, m.ended = conn, make(chan struct{})
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m.asked.Add(1)
		says("192.0.2.1")(w, r)
	})}
	go func() {
		server.ActivateAndServe()
		close(m.ended)
	}()
}

// die returns when nobody takes datagrams any more: a socket is closed when the first Close of it returns, not when the server's own
// Shutdown does.
func (m *mortal) die() {
	m.conn.Close()
	<-m.ended
}

func born(t *testing.T) *mortal {
	t.Helper()
	m := &mortal{addr: loopback.Addr()}
	m.live(t)
	t.Cleanup(m.die)
	return m
}

// spent is the processor time of this process.
func spent(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// One of two upstreams is killed under load: no query fails, and but for those that were under way all are quick. Then the other
// one is killed, too: all fail at once and are told why, without burning the processor; and when one is back, it is used within a
// probe interval.
func TestUpstreamsDieUnderLoad(t *testing.T) {
	bothLanes(t, func(t *testing.T, ask func(*Forward, string) string) {
		a, b := born(t), born(t)
		const interval = 200 * time.Millisecond
		f := configured(t, fmt.Sprintf("forward . %s %s {\nhealth_check %s\nfailfast_all_unhealthy_upstreams\nede\n}", a.addr, b.addr, interval))
		const askers = 20
		var asked, slow atomic.Int64
		var wg sync.WaitGroup
		const enough = 500
		begin := time.Now()
		goesOn := func() bool { // on a busy machine that many take longer
			d := time.Since(begin)
			return d < 800*time.Millisecond || d < 20*time.Second && asked.Load() < enough
		}
		for range askers {
			wg.Go(func() {
				for goesOn() {
					began := time.Now()
					if got := ask(f, "www.example.org."); got != "192.0.2.1" {
						t.Error(got)
					}
					asked.Add(1)
					if time.Since(began) > 150*time.Millisecond {
						slow.Add(1)
					}
					time.Sleep(4 * time.Millisecond) // 5,000 a second in all
				}
			})
		}
		time.Sleep(200 * time.Millisecond)
		a.die()
		wg.Wait()
		if n := slow.Load(); n > 3*askers { // a pause of the machine makes each asker slow once
			t.Errorf("%d of %d queries took more than 150 ms", n, asked.Load())
		}
		if n := asked.Load(); n < enough {
			t.Errorf("%d queries only", n)
		}

		b.die()
		began := time.Now()
		if got := ask(f, "www.example.org."); !strings.HasPrefix(got, "SERVFAIL") || time.Since(began) > time.Second {
			t.Errorf("%s after %v", got, time.Since(began))
		}
		_, _, err := askA(f, "www.example.org.")
		if code, text, ok := told(err); !ok || code != dns.ExtendedErrorCodeNetworkError && code != dns.ExtendedErrorCodeNoReachableAuthority ||
			!strings.Contains(text, a.addr) && !strings.Contains(text, b.addr) {
			t.Errorf("told %d %q, %v", code, text, err)
		}
		eventually.Holds(t, "both are down", func() bool { return strings.Contains(ask(f, "www.example.org."), "no healthy proxies") })
		before := spent(t)
		for range 50 { // 100 queries a second
			ask(f, "www.example.org.")
			time.Sleep(10 * time.Millisecond)
		}
		if cpu := spent(t) - before; cpu > 200*time.Millisecond {
			t.Errorf("half a second of outage cost %v of processor time", cpu)
		}
		a.live(t)
		began = time.Now()
		eventually.Holds(t, "it is used again", func() bool { return ask(f, "www.example.org.") == "192.0.2.1" })
		if took := time.Since(began); took > interval+3*time.Second {
			t.Errorf("it took %v to use an upstream again", took)
		}
	})
}

// A healthy upstream sees the queries that clients asked, and no other one, however busy it is; and none when nobody asks.
func TestOnlyClientsQueriesAreSent(t *testing.T) {
	for _, network := range []string{"udp", "tcp"} {
		var seen, odd atomic.Int64
		addr := patient(t, network, func(w dns.ResponseWriter, r *dns.Msg) {
			seen.Add(1)
			if !strings.HasPrefix(r.Question[0].Name, "client") {
				odd.Add(1)
			}
			says("192.0.2.1")(w, r)
		})
		options := " {\nhealth_check 10ms\n"
		if network == "tcp" {
			options += "force_tcp\n"
		}
		f := configured(t, "forward . "+addr+options+"}")
		const askers, each = 16, 250
		var wg sync.WaitGroup
		for i := range askers {
			wg.Go(func() {
				for j := range each {
					name := fmt.Sprintf("client%d-%d.example.org.", i, j)
					lane := func() string { return answered(f, name) }
					if j%2 == 0 {
						lane = func() string { return answeredWire(t, f, name) }
					}
					if got := lane(); got != "192.0.2.1" {
						t.Error(got)
					}
				}
			})
		}
		wg.Wait()
		time.Sleep(300 * time.Millisecond) // many probe intervals
		if n := seen.Load(); n != askers*each || odd.Load() != 0 {
			t.Errorf("%s: the upstream saw %d queries of %d, %d of nobody", network, n, askers*each, odd.Load())
		}
	}
}

// Four queries on one connection of a client, of which the upstream lets three wait: the fourth is answered at once, the others
// together.
func TestSlowQueriesHoldNobody(t *testing.T) {
	for _, option := range []string{"", " {\nforce_tcp\n}", " {\nprefer_udp\n}"} {
		var slow atomic.Int64
		quickIsDone := make(chan struct{})
		f := configured(t, "forward . "+upstream(t, func(w dns.ResponseWriter, r *dns.Msg) {
			if strings.HasPrefix(r.Question[0].Name, "slow") {
				slow.Add(1)
				<-quickIsDone
			}
			says("192.0.2.1")(w, r)
		})+option)
		conn := dialServer(t, f)
		for i, name := range []string{"slow1.", "slow2.", "slow3.", "quick."} {
			r := new(dns.Msg).SetQuestion(name+"example.org.", dns.TypeA)
			r.Id = uint16(i)
			b, _ := r.Pack()
			if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...)); err != nil {
				t.Fatal(err)
			}
		}
		conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		for i := range 4 {
			var n [2]byte
			if _, err := io.ReadFull(conn, n[:]); err != nil {
				t.Fatal(option, i, err)
			}
			b := make([]byte, binary.BigEndian.Uint16(n[:]))
			if _, err := io.ReadFull(conn, b); err != nil {
				t.Fatal(option, i, err)
			}
			m := new(dns.Msg)
			if err := m.Unpack(b); err != nil || len(m.Answer) != 1 {
				t.Fatal(option, i, m, err)
			}
			if quick := m.Id == 3; quick != (i == 0) {
				t.Errorf("%s: reply %d is to query %d", option, i, m.Id)
			}
			if i == 0 {
				eventually.Holds(t, "the upstream has all of the slow ones", func() bool { return slow.Load() >= 3 })
				close(quickIsDone)
			}
		}
	}
}

// dialServer is a connection to a server whose only plugin is f.
func dialServer(t *testing.T, f *Forward) net.Conn {
	t.Helper()
	cfg := &dnsserver.Config{Zone: ".", Transport: "dns", ListenHosts: []string{"127.0.0.1"}, Port: "0"}
	cfg.AddPlugin(func(plugin.Handler) plugin.Handler { return f })
	s, err := dnsserver.NewServer("dns://127.0.0.1:0", []*dnsserver.Config{cfg})
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		s.Serve(l)
		close(done)
	}()
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		s.Stop()
		<-done
	})
	return conn
}

// Of one upstream over QUIC or HTTP/3 nothing is heard. The handshake that a query's first attempt began, and did not see the end
// of, is not the end of the second one, too: that has its time, in which the upstream may be back.
func TestLastAttemptOutlivesAnEarlierHandshake(t *testing.T) {
	for _, protocol := range []string{"quic", "https3"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			silent, err := net.ListenPacket("udp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer silent.Close()
			bothLanes(t, func(t *testing.T, ask func(*Forward, string) string) {
				f := configured(t, fmt.Sprintf("forward . %s://%s {\nread_timeout 1500ms\n}", protocol, silent.LocalAddr()))
				began := time.Now()
				if got := ask(f, "www.example.org."); !strings.HasPrefix(got, "SERVFAIL") || time.Since(began) < 2900*time.Millisecond {
					t.Errorf("%s after %v", got, time.Since(began))
				}
			})
		})
	}
}
