package secondary

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
)

// TestWentBack: a primary whose serial goes back is told of once, and has its zone fetched when it is newer again.
func TestWentBack(t *testing.T) {
	out := logtest.Capture(t)
	p := newPrimary(t)
	p.set("example.org.", text(7, "1 1 1000", "a A 192.0.2.7"))
	s := begin(t, "secondary example.org {\ntransfer from "+p.addr+"\n}")
	becomes(t, s, "a.example.org.", "192.0.2.7")
	p.set("example.org.", text(5, "1 1 1000", "a A 192.0.2.5"))
	want := "Zone example.org. is not fetched: " + p.addr + " has serial 5, and we have 7, which is newer"
	for range 3 {
		notify(t, s, "example.org.", "127.0.0.1")
		out.Await(t, want)
		time.Sleep(100 * time.Millisecond)
	}
	if got := ask(t, s, "a.example.org."); got != "192.0.2.7" || strings.Count(out.String(), want) != 1 {
		t.Errorf("%s is served, and logged is %s", got, out)
	}
	p.set("example.org.", text(8, "1 1 1000", "a A 192.0.2.8"))
	notify(t, s, "example.org.", "127.0.0.1")
	becomes(t, s, "a.example.org.", "192.0.2.8")
}

// TestWentBackExpired: of a zone that has expired any version is taken, and stored.
func TestWentBackExpired(t *testing.T) {
	logtest.Capture(t)
	dir, p := t.TempDir(), newPrimary(t)
	p.set("example.org.", text(7, "1 1 2", "a A 192.0.2.7"))
	s := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from %s\nstorage %s\n}", p.addr, dir))
	becomes(t, s, "a.example.org.", "192.0.2.7")
	p.down.Store(true)
	becomes(t, s, "a.example.org.", "SERVFAIL")
	p.set("example.org.", text(5, slow, "a A 192.0.2.5"))
	p.down.Store(false)
	notify(t, s, "example.org.", "127.0.0.1")
	becomes(t, s, "a.example.org.", "192.0.2.5")
	eventually.Holds(t, "storing", func() bool { return readHead(filepath.Join(dir, "db.example.org")).serial == 5 })
}

// TestLaggingPrimaries: a version that one primary has is fetched when that one tells of it, though others that stand before it
// have not got it yet, or do not answer.
func TestLaggingPrimaries(t *testing.T) {
	out := logtest.Capture(t)
	lags, first := newPrimaryAt(t, "127.0.0.1"), newPrimaryAt(t, "127.0.0.2")
	for _, p := range []*primary{lags, first} {
		p.set("example.org.", text(1, slow, "a A 192.0.2.1"))
	}
	s := begin(t, "secondary example.org {\ntransfer from "+lags.addr+" "+first.addr+"\n}")
	becomes(t, s, "a.example.org.", "192.0.2.1")
	first.set("example.org.", text(2, slow, "a A 192.0.2.2"))
	notify(t, s, "example.org.", "127.0.0.2")
	becomes(t, s, "a.example.org.", "192.0.2.2")

	// Of two notifications at once none is forgotten. The lagging one is behind us now, which is no news.
	first.set("example.org.", text(3, slow, "a A 192.0.2.3"))
	r := s.roster.replica("example.org.")
	r.told.add(netip.MustParseAddr("127.0.0.2"))
	notify(t, s, "example.org.", "127.0.0.1")
	becomes(t, s, "a.example.org.", "192.0.2.3")
	lags.set("example.org.", text(3, slow, "a A 192.0.2.3"))
	first.set("example.org.", text(4, slow, "a A 192.0.2.4"))
	r.told.add(netip.MustParseAddr("127.0.0.2"))
	notify(t, s, "example.org.", "127.0.0.1")
	becomes(t, s, "a.example.org.", "192.0.2.4")

	// Without a notification, too, who is behind us does not speak for the others.
	idle := handler(t, "secondary", "secondary example.org {\ntransfer from "+first.addr+"\n}").(Secondary).roster.replica("example.org.")
	idle.first(t.Context())
	idle.source.primaries = []string{lags.addr, first.addr}
	first.set("example.org.", text(5, slow, "a A 192.0.2.5"))
	if _, err := idle.refresh(t.Context(), ""); err != nil || idle.zone.Current().Serial() != 5 {
		t.Errorf("%v, and version %d is served", err, idle.zone.Current().Serial())
	}
	if strings.Contains(out.String(), "is not fetched") {
		t.Errorf("logged %s", out)
	}
}

// A primary may be asked over TLS (RFC 9103): its certificate has to be good.
func TestTransferOverTLS(t *testing.T) {
	const certs = "../../test/testdata/readme/"
	p := newPrimary(t)
	p.set("example.org.", text(1, "7200 3600 10000", "a A 192.0.2.7"))
	pair, err := tls.LoadX509KeyPair(certs+"cert.pem", certs+"key.pem")
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"dot"}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var agreed atomic.Value
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if conn.(*tls.Conn).Handshake() != nil {
					return
				}
				agreed.Store(conn.(*tls.Conn).ConnectionState().NegotiatedProtocol)
				to, err := net.Dial("tcp", p.addr)
				if err != nil {
					return
				}
				defer to.Close()
				go io.Copy(to, conn)
				io.Copy(conn, to)
			}()
		}
	}()
	good := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from tls://%s\ntls %sca.pem\n}", l.Addr(), certs))
	becomes(t, good, "a.example.org.", "192.0.2.7")
	if agreed.Load() != "dot" {
		t.Errorf("agreed on %v", agreed.Load())
	}
	before := p.queries.Load()
	for _, input := range []string{"", "tls " + certs + "ca.pem\ntls_servername other.example.net\n"} {
		bad := begin(t, fmt.Sprintf("secondary example.org {\ntransfer from tls://%s\n%s}", l.Addr(), input))
		time.Sleep(100 * time.Millisecond)
		if got := ask(t, bad, "a.example.org."); got != "SERVFAIL" || p.queries.Load() != before {
			t.Errorf("%q: %s", input, got)
		}
	}
}
