package doh

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/quicconn"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/test/clients"
)

func TestHTTP3Responses(t *testing.T) {
	of := serviceFor(t, new(coretest.Lane))
	of.Read = time.Second
	s, _ := serve3(t, of)
	c := clients.DialHTTP3(t, s.addr, "")
	post := func(name string) string { return string(coretest.Packed(t, coretest.Query(name))) }
	for _, tc := range []struct {
		method, target, body string
		status               int
	}{
		{"POST", "/dns-query", post("www."), 200},
		{"POST", "/dns-query", post("unpack."), 200},
		{"POST", "/dns-query", "x", 400},
		{"POST", "/dns-query", strings.Repeat("x", 70000), 400},
		{"POST", "/dns-query", post("drop."), 500},
		{"GET", "/", "", 404},
		{"PUT", "/dns-query", "x", 400},
		{"GET", "/dns-query?" + strings.Repeat("x", 20000), "", 431},
	} {
		before := s.responses(tc.status)
		if got, _ := get(t, c, tc.method, tc.target, tc.body); got.status != tc.status {
			t.Errorf("%s %.20s: got %+v", tc.method, tc.target, got)
		}
		if n := s.responses(tc.status) - before; n != 1 {
			t.Errorf("%s %.20s: counted %v", tc.method, tc.target, n)
		}
	}
	// A body that does not come costs its stream only.
	body, _ := io.Pipe()
	req, err := http.NewRequest("POST", c.URL+"/dns-query", body)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := c.Client.Do(req); err == nil {
		resp.Body.Close()
		if resp.StatusCode != 400 {
			t.Errorf("got %d", resp.StatusCode)
		}
	}
	if n := coretest.Limited(of, "read_time"); n != 1 {
		t.Errorf("counted %d", n)
	}
	c.Method = "GET"
	if r, err := c.Ask(coretest.Query("local.")); err != nil || coretest.Describe(r) != "NOERROR 127.0.0.1" || c.Dials() != 1 {
		t.Errorf("got %v, %v, on connection %d", r, err, c.Dials())
	}
}

// A body that is shorter than its length says is malformed (RFC 9114 §4.1.2), as it is over the other versions of HTTP.
func TestHTTP3ShortBody(t *testing.T) {
	s, _ := serve3(t, serviceFor(t, coretest.Echo))
	c := clients.DialHTTP3(t, s.addr, "POST")
	packet := coretest.Packed(t, coretest.Query("example.org."))
	for more, status := range []int{http.StatusOK, http.StatusBadRequest} {
		req, err := http.NewRequest("POST", c.URL+"/dns-query", io.NopCloser(bytes.NewReader(packet)))
		if err != nil {
			t.Fatal(err)
		}
		req.ContentLength = int64(len(packet) + more)
		resp, err := c.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("%d octets less than told: %s", more, resp.Status)
		}
	}
}

func TestHTTP3Stops(t *testing.T) {
	g := coretest.NewGate(t)
	s, _ := serve3(t, serviceFor(t, g))
	c := clients.DialHTTP3(t, s.addr, "POST")
	done := make(chan error)
	go func() {
		_, err := c.Ask(coretest.Query("slow."))
		done <- err
	}()
	g.Holds(t, 1)
	ended := coretest.Stopping(t, s.end)
	g.Open()
	ended()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A client that has begun to connect gets its answer when the server stops.
func TestHTTP3StopsWithinHandshake(t *testing.T) {
	s, _ := serve3(t, serviceFor(t, new(coretest.Lane)))
	l := coretest.NewLink(t, s.addr, coretest.FarAway, 0)
	c := clients.DialHTTP3(t, l.Addr(), "POST")
	done := make(chan error)
	go func() {
		_, err := c.Ask(coretest.Query("www."))
		done <- err
	}()
	l.Reached(t)
	ended := make(chan error, 1)
	go func() { ended <- s.end() }()
	if err := <-done; err != nil || c.Dials() != 1 {
		t.Errorf("%v, on connection %d", err, c.Dials())
	}
	c.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A request that has begun is answered when the server stops, though its query comes late: the client has been told that
// this is behind no GOAWAY, and asks nowhere else (RFC 9114 §5.2).
func TestHTTP3StopsWithinRequest(t *testing.T) {
	of := serviceFor(t, new(coretest.Lane))
	s, _ := serve3(t, of)
	c := clients.DialHTTP3(t, s.addr, "POST")
	if _, err := c.Ask(coretest.Query("www.")); err != nil {
		t.Fatal(err)
	}
	body, query := io.Pipe()
	status := make(chan string, 1)
	go func() {
		resp, err := c.Client.Post(c.URL+"/dns-query", "application/dns-message", body)
		if err != nil {
			status <- err.Error()
			return
		}
		resp.Body.Close()
		status <- resp.Status
	}()
	eventually.Holds(t, "the request has begun", of.Inflight.Busy)
	ended := coretest.Stopping(t, s.end)
	time.Sleep(4 * service.DrainTime) // nothing comes for longer than a connection without queries is kept
	query.Write(coretest.Packed(t, coretest.Query("www.")))
	query.Close()
	if got := <-status; got != "200 OK" {
		t.Errorf("got %s", got)
	}
	ended()
}

// lengthy answers with some 26,000 octets.
var lengthy = coretest.Handler(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	m := new(dns.Msg).SetReply(r)
	header := dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeTXT, Class: dns.ClassINET}
	for range 100 {
		m.Answer = append(m.Answer, &dns.TXT{Hdr: header, Txt: []string{strings.Repeat("x", 250)}})
	}
	return dns.RcodeSuccess, w.WriteMsg(m)
})

// narrow is a client of HTTP/3 that takes no more octets of a response than it has room for, which is little.
func narrow(t *testing.T) *http.Client {
	tr := &http3.Transport{
		TLSClientConfig: clients.Trusting.Clone(),
		QUICConfig:      &quic.Config{InitialStreamReceiveWindow: 1024, MaxStreamReceiveWindow: 1024},
	}
	t.Cleanup(func() { tr.Close() })
	return &http.Client{Transport: tr, Timeout: clients.AskTime}
}

// A client that does not take a response in time is counted.
func TestHTTP3WriteTime(t *testing.T) {
	of := serviceFor(t, lengthy)
	of.Write = 200 * time.Millisecond
	s, _ := serve3(t, of)
	packet := coretest.Packed(t, coretest.Query("long."))
	resp, err := narrow(t).Post("https://"+s.addr+"/dns-query", "application/dns-message", bytes.NewReader(packet))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	eventually.Holds(t, "it is counted", func() bool { return coretest.Limited(of, "write_time") == 1 })
}

// A response that its client takes slowly is sent to its end.
func TestHTTP3StopsWithinResponse(t *testing.T) {
	s, _ := serve3(t, serviceFor(t, lengthy))
	packet := coretest.Packed(t, coretest.Query("long."))
	resp, err := narrow(t).Post("https://"+s.addr+"/dns-query", "application/dns-message", bytes.NewReader(packet))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	ended := coretest.Stopping(t, s.end)
	time.Sleep(30 * service.DrainTime) // longer than requests are still taken
	if b, err := io.ReadAll(resp.Body); err != nil || int64(len(b)) != resp.ContentLength || len(b) < 25000 {
		t.Errorf("got %d octets of %d, %v", len(b), resp.ContentLength, err)
	}
	ended()
}

// A query is counted once by its server.
func TestCountsOnce(t *testing.T) {
	for version := 1; version <= 3; version++ {
		g := coretest.NewGate(t)
		of := serviceFor(t, g)
		var c *clients.HTTPClient
		if version == 3 {
			s, _ := serve3(t, of)
			c = clients.DialHTTP3(t, s.addr, "POST")
		} else {
			c = clients.DialHTTP(t, serve(t, of, tlsConfig(t)).addr, "POST", version)
		}
		done := make(chan error, 1)
		go func() {
			_, err := c.Ask(coretest.Query("slow."))
			done <- err
		}()
		g.Holds(t, 1)
		if n := of.Inflight.Count(); n != 1 {
			t.Errorf("HTTP/%d: counted %d times", version, n)
		}
		g.Open()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// The library is told some things once: with others a server begins anew.
func TestFitsHTTP(t *testing.T) {
	of := serviceFor(t, new(coretest.Lane))
	_, h := serve3(t, of)
	header := HeaderSpace(of.HeaderBytes, leastHeader)
	if !h.FitsHTTP(header, of.Idle) || h.FitsHTTP(header+1, of.Idle) || h.FitsHTTP(header, of.Idle+1) {
		t.Error("fits what it should not, or the other way round")
	}
}

// What is refused must still be read by the libraries.
func TestHeaderSpace(t *testing.T) {
	for _, tc := range [][3]int{{0, 100, 200}, {50, 100, 200}, {101, 100, 202}} {
		if got := HeaderSpace(tc[0], tc[1]); got != tc[2] {
			t.Errorf("limit %d: got %d, want %d", tc[0], got, tc[2])
		}
	}
}

// A client that is far away learns that it is to go before its connection is closed: what it has asked meanwhile it asks
// somebody else.
func TestHTTP3StopsFarFromItsClient(t *testing.T) {
	for !stopsFar(t) {
	}
}

// stopsFar reports false if the machine stood still: the server took the query that it would have refused.
func stopsFar(t *testing.T) bool {
	s, _ := serve3(t, serviceFor(t, coretest.Echo))
	l := coretest.NewLink(t, s.addr, coretest.FarAway, 0)
	c := clients.DialHTTP3(t, l.Addr(), http.MethodGet)
	if _, err := c.Ask(coretest.Query("www.")); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.end() }()
	time.Sleep(service.DrainTime / 2)
	failed := make(chan error, 1)
	go func() {
		_, err := c.Ask(coretest.Query("last."))
		failed <- err // the next connection does, too: nobody listens
	}()
	taken := false
	eventually.Holds(t, "it connects anew", func() bool {
		select {
		case err := <-failed:
			if err != nil {
				t.Fatal(err)
			}
			taken = true
		default:
		}
		return taken || c.Dials() == 2
	})
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	return !taken
}

// Nothing is kept of a connection that its client has closed, however long it might have been idle.
func TestHTTP3ConnectionIsForgotten(t *testing.T) {
	of := serviceFor(t, new(coretest.Lane))
	of.Idle = time.Hour
	gone := make(chan struct{})
	s, _ := serve3With(t, of, func(c *quicconn.Conn) {
		runtime.AddCleanup(c.Conn, func(gone chan struct{}) { close(gone) }, gone)
	})
	func() {
		c, err := quic.DialAddr(t.Context(), s.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}, ServerName: "example.org"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.AcceptUniStream(t.Context()); err != nil { // it is served
			t.Fatal(err)
		}
		c.CloseWithError(0, "")
	}()
	eventually.Holds(t, "the connection is gone", func() bool {
		runtime.GC()
		select {
		case <-gone:
			return true
		default:
			return false
		}
	})
}

// A connection ends when it has been without requests for a time, and not before.
func TestIdling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, ends := time.Now(), []time.Duration{}
		i := newIdling(time.Second, func() { ends = append(ends, time.Since(began)) })
		time.Sleep(900 * time.Millisecond)
		i.begin()
		i.begin()
		time.Sleep(5 * time.Second)
		i.end()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(ends) > 0 {
			t.Errorf("it ended with a request at work, after %v", ends)
		}
		i.end()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if len(ends) != 1 || ends[0] != 11900*time.Millisecond {
			t.Errorf("it ended after %v", ends)
		}
		i.begin()
		i.end()
		i.stop()
		never := newIdling(0, func() { t.Error("it ended without a time") })
		never.begin()
		never.end()
		never.stop()
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(ends) != 1 {
			t.Errorf("it ended when it was over, after %v", ends)
		}
	})
}

// Where too much of long queries has come, whose ends have not, one is refused; others are answered.
func TestHTTP3ManyLongQueries(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(quicconn.IncomingShare * 50_000))
	of := serviceFor(t, new(coretest.Lane))
	s, _ := serve3(t, of)
	c := clients.DialHTTP3(t, s.addr, "POST")
	if got, _ := get(t, c, "POST", "/dns-query", strings.Repeat("x", 60_000)); got.status != http.StatusServiceUnavailable || coretest.Limited(of, "waiting") != 1 {
		t.Errorf("got %+v, counted %d", got, coretest.Limited(of, "waiting"))
	}
	if r, err := c.Ask(coretest.Query("local.")); err != nil || coretest.Describe(r) != "NOERROR 127.0.0.1" {
		t.Errorf("got %v, %v", r, err)
	}
}
