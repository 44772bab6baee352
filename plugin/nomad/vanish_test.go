package nomad

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"

	"github.com/miekg/dns"
)

// relay hands connections on to an address, until lose has all octets of those that there are vanish without a sign.
func relay(t *testing.T, to string) (addr string, lose func()) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var lost atomic.Int64 // so many times
	hand := func(to, from net.Conn) {
		b, then := make([]byte, 4096), lost.Load()
		for n, err := from.Read(b); err == nil; n, err = from.Read(b) {
			if lost.Load() != then {
				io.Copy(io.Discard, from)
				return
			}
			to.Write(b[:n])
		}
		to.Close()
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			agent, err := net.Dial("tcp", to)
			if err != nil {
				c.Close()
				continue
			}
			t.Cleanup(func() {
				c.Close()
				agent.Close()
			})
			go hand(agent, c)
			go hand(c, agent)
		}
	}()
	return l.Addr().String(), func() { lost.Add(1) }
}

// TestConnectionVanishes: of HTTP/2 all queries share a connection. They do not go on to fail when it is dead and does
// not tell so, as behind a firewall that has forgotten it.
func TestConnectionVanishes(t *testing.T) {
	before := pings
	defer func() { pings = before }()
	pings = http.HTTP2Config{SendPingTimeout: 500 * time.Millisecond, PingTimeout: time.Second}
	a, _ := newAPI(t)
	s := httptest.NewUnstartedServer(a)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	addr, lose := relay(t, s.Listener.Addr().String())
	t.Setenv("NOMAD_SKIP_VERIFY", "true")
	n := serving(t, "https://"+addr)
	answered := func() bool {
		got, _ := ask(n, "none.default.service.nomad.", dns.TypeA)
		return strings.HasPrefix(got, "NXDOMAIN")
	}
	eventually.Holds(t, "an answer", answered)
	if a.asked[0].ProtoMajor != 2 {
		t.Fatal("not over HTTP/2")
	}
	lose()
	eventually.Holds(t, "an answer over another connection", answered)
	if most := before.SendPingTimeout + before.PingTimeout; most <= 0 || most > time.Minute {
		t.Errorf("a dead connection is given up after %v", most)
	}
}

// TestIdleConnectionsVanish: without HTTP/2 there may be many connections that nobody uses at the moment, all of them
// dead. One query finds that out for all.
func TestIdleConnectionsVanish(t *testing.T) {
	const many = 8
	a, _ := newAPI(t)
	var come sync.WaitGroup // all of the first queries, which need a connection each
	come.Add(many)
	var first atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first.Add(1) <= many {
			come.Done()
			come.Wait()
		}
		a.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	addr, lose := relay(t, s.Listener.Addr().String())
	n := serving(t, "http://"+addr)
	answered := func(name string) bool {
		got, _ := ask(n, name+".default.service.nomad.", dns.TypeA)
		return strings.HasPrefix(got, "NXDOMAIN")
	}
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			if !answered("none" + strconv.Itoa(i)) {
				t.Error("no answer at first")
			}
		})
	}
	wg.Wait()
	lose()
	if answered("none") {
		t.Fatal("the connections are not lost")
	}
	if !answered("none") {
		t.Error("another query was sent over a dead connection")
	}
}
