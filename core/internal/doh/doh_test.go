package doh

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/core/internal/unsent"
	"github.com/coredns/coredns/plugin/metrics/vars"
	"github.com/coredns/coredns/plugin/pkg/doh"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/test/clients"
)

// inURL is the target of a GET request for b.
func inURL(b []byte) string { return "/dns-query?dns=" + base64.RawURLEncoding.EncodeToString(b) }

func TestResponses(t *testing.T) {
	s := serve(t, serviceFor(t, new(coretest.Lane)), tlsConfig(t))
	post := func(name string) string { return string(coretest.Packed(t, coretest.Query(name))) }
	good := []byte(post("www."))
	reply := coretest.Query("www.")
	reply.Response = true
	notify := coretest.Query("www.").SetNotify("www.")
	const binary = doh.MimeType
	bad := told{400, plainText, "", "invalid request\n"}
	for _, tc := range []struct {
		name, method, target, body string
		want                       told
	}{
		{"GET", "GET", inURL(good), "", told{200, binary, "max-age=60", ""}},
		{"POST", "POST", "/dns-query", string(good), told{200, binary, "max-age=60", ""}},
		{"POST with a parameter", "POST", "/dns-query?a=b", string(good), told{200, binary, "max-age=60", ""}},
		{"message lane", "POST", "/dns-query", post("unpack."), told{200, binary, "max-age=60", ""}},
		{"parked", "POST", "/dns-query", post("park."), told{200, binary, "max-age=60", ""}},
		{"error", "POST", "/dns-query", post("fail."), told{200, binary, "max-age=5", ""}},
		{"NOTIFY", "POST", "/dns-query", string(coretest.Packed(t, notify)), told{200, binary, "max-age=5", ""}},
		{"other path", "GET", "/", "", told{404, plainText, "", "\n"}},
		{"longer path", "GET", "/dns-query/" + inURL(good)[10:], "", told{404, plainText, "", "\n"}},
		{"POST to another path", "POST", "/other", string(good), told{404, plainText, "", "\n"}},
		{"no parameter", "GET", "/dns-query", "", bad},
		{"two", "GET", inURL(good) + "&dns=AAAA", "", bad},
		{"padding", "GET", inURL(good[:13]) + "=", "", bad},
		{"not base64", "GET", "/dns-query?dns=!", "", bad},
		{"short", "GET", inURL(good[:11]), "", bad},
		{"cut", "POST", "/dns-query", string(good[:20]), bad},
		{"empty", "POST", "/dns-query", "", bad},
		{"a reply", "POST", "/dns-query", string(coretest.Packed(t, reply)), bad},
		{"too long", "POST", "/dns-query", strings.Repeat("x", 70000), bad},
		{"HEAD", "HEAD", inURL(good), "", told{400, plainText, "", ""}},
		{"PUT", "PUT", "/dns-query", string(good), bad},
		{"DELETE", "DELETE", "/dns-query", "", bad},
		{"nothing written", "POST", "/dns-query", post("drop."), told{500, plainText, "", "No response\n"}},
	} {
		for _, version := range []int{1, 2} {
			c := clients.DialHTTP(t, s.addr, "", version)
			before := s.responses(tc.want.status)
			got, body := get(t, c, tc.method, tc.target, tc.body)
			if got != tc.want {
				t.Errorf("%s, HTTP/%d: got %+v, want %+v", tc.name, version, got, tc.want)
			}
			if n := s.responses(tc.want.status) - before; n != 1 {
				t.Errorf("%s, HTTP/%d: counted %d times", tc.name, version, n)
			}
			if got.kind == binary {
				if m := new(dns.Msg); m.Unpack(body) != nil || !m.Response {
					t.Errorf("%s, HTTP/%d: %x", tc.name, version, body)
				}
			}
			c.Close()
		}
	}
}

// TestLongest asks with messages as long as they can be.
func TestLongest(t *testing.T) {
	s := serve(t, serviceFor(t, new(coretest.Lane)), tlsConfig(t))
	m := coretest.Query("www.").SetEdns0(1232, false)
	m.IsEdns0().Option = []dns.EDNS0{&dns.EDNS0_PADDING{Padding: make([]byte, 65535-37)}}
	for m.Len() > 65535 {
		p := m.IsEdns0().Option[0].(*dns.EDNS0_PADDING)
		p.Padding = p.Padding[1:]
	}
	for _, version := range []int{1, 2} {
		for _, method := range []string{"GET", "POST"} {
			r, err := clients.DialHTTP(t, s.addr, method, version).Ask(m)
			if err != nil || len(r.Answer) != 1 {
				t.Errorf("%s of %d octets, HTTP/%d: %v", method, m.Len(), version, err)
			}
		}
	}
}

func TestQueryBytes(t *testing.T) {
	of := serviceFor(t, new(coretest.Lane))
	of.QueryBytes = 100
	s := serve(t, of, tlsConfig(t))
	long := coretest.Query(strings.Repeat("a.", 60))
	for _, version := range []int{1, 2} {
		for _, method := range []string{"GET", "POST"} {
			before := coretest.Limited(of, "query_bytes")
			c := clients.DialHTTP(t, s.addr, method, version)
			_, err := c.Ask(long)
			if n := coretest.Limited(of, "query_bytes") - before; err == nil || n != 1 {
				t.Errorf("%s, HTTP/%d: %v, counted %d", method, version, err, n)
			}
			if _, err := c.Ask(coretest.Query("www.")); err != nil {
				t.Errorf("%s, HTTP/%d: %v", method, version, err)
			}
		}
	}
}

func TestHeaderBytes(t *testing.T) {
	of := serviceFor(t, new(coretest.Lane))
	of.HeaderBytes = 1000
	s := serve(t, of, tlsConfig(t))
	for _, version := range []int{1, 2} {
		c := clients.DialHTTP(t, s.addr, "", version)
		before := coretest.Limited(of, "header_bytes")
		if got, _ := get(t, c, "GET", "/dns-query?"+strings.Repeat("x=y&", 150), ""); got.status != 400 {
			t.Errorf("HTTP/%d: %+v", version, got)
		}
		got, _ := get(t, c, "GET", "/dns-query?"+strings.Repeat("x=y&", 240), "")
		if n := coretest.Limited(of, "header_bytes") - before; got.status != 431 || n != 1 {
			t.Errorf("HTTP/%d: %+v, counted %d", version, got, n)
		}
	}
}

// TestRequest looks at the request that validators and plugins see.
func TestRequest(t *testing.T) {
	type seen struct {
		host, uri, path, method, agent, remote string
		tls                                    bool
		version                                int
	}
	describe := func(r *http.Request) seen {
		encrypted := r.TLS != nil && r.TLS.HandshakeComplete
		return seen{r.Host, r.RequestURI, r.URL.Path, r.Method, r.UserAgent(), r.RemoteAddr, encrypted, r.ProtoMajor}
	}
	got := make(chan seen, 10)
	of := serviceFor(t, coretest.Handler(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		req, _ := ctx.Value(RequestKey{}).(*http.Request)
		s := describe(req)
		if s.remote != w.RemoteAddr().String() {
			t.Errorf("the writer's client is %v, the request's %s", w.RemoteAddr(), s.remote)
		}
		if ours, ok := w.(interface{ Request() *http.Request }); ok && ours.Request() != req {
			t.Error("the writer's request is another one")
		}
		got <- s
		return coretest.Echo(ctx, w, r)
	}))
	settings(of).Valid = func(r *http.Request) bool {
		got <- describe(r)
		return r.URL.Path == "/other"
	}
	s := serve(t, of, tlsConfig(t))
	for _, version := range []int{1, 2} {
		c := clients.DialHTTP(t, s.addr, "", version)
		body := bytes.NewReader(coretest.Packed(t, coretest.Query("www.")))
		req, err := http.NewRequest("POST", c.URL+"/other?x=y", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("User-Agent", "test")
		resp, err := c.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := doh.ResponseToMsg(resp); err != nil {
			t.Errorf("HTTP/%d: %v", version, err)
		}
		for _, who := range []string{"validator", "plugin"} {
			g := <-got
			g.remote = ""
			if want := (seen{s.addr, "/other?x=y", "/other", "POST", "test", "", true, version}); g != want {
				t.Errorf("HTTP/%d: the %s sees %+v, want %+v", version, who, g, want)
			}
		}
		if got, _ := get(t, c, "GET", "/dns-query", ""); got.status != 404 {
			t.Errorf("HTTP/%d: %+v", version, got)
		}
		<-got
	}
}

// TestAnswerWithoutSocket has requests answered that others have received.
func TestAnswerWithoutSocket(t *testing.T) {
	of := serviceFor(t, coretest.Who{})
	of.Label = "https://192.0.2.9:443"
	for _, tc := range []struct {
		udp    bool
		remote string
		want   string
	}{
		{false, "198.51.100.1:1234", "198.51.100.1"},
		{true, "198.51.100.1:1234", "198.51.100.1"},
	} {
		for _, name := range []string{"wire.", "unpack."} {
			r := httptest.NewRequest("POST", "/dns-query", bytes.NewReader(coretest.Packed(t, coretest.Query(name))))
			r.RemoteAddr = tc.remote
			w := httptest.NewRecorder()
			Answer(of, w, r, tc.udp)
			m := new(dns.Msg)
			if w.Code != 200 || m.Unpack(w.Body.Bytes()) != nil || coretest.Describe(m) != "NOERROR "+tc.want {
				t.Errorf("UDP %v, %s: %d, %v", tc.udp, name, w.Code, m)
			}
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	if got := localAddr(of, r).String(); got != "192.0.2.9:443" {
		t.Errorf("it was sent to %s", got)
	}
	r.RemoteAddr, of.Label = "nonsense", "nonsense"
	for _, a := range []fmt.Stringer{remoteAddr(r, true), remoteAddr(r, false), localAddr(of, r)} {
		if got := a.String(); got != ":0" {
			t.Errorf("got %s", got)
		}
	}
}

// TestTooMuchUnsent has replies that the process has no room for: their connections end.
func TestTooMuchUnsent(t *testing.T) {
	for _, version := range []int{1, 2} {
		of := serviceFor(t, new(coretest.Lane))
		s := serve(t, of, tlsConfig(t))
		c := clients.DialHTTP(t, s.addr, "POST", version)
		if _, err := c.Ask(coretest.Query("www.")); err != nil {
			t.Errorf("HTTP/%d: %v", version, err)
		}
		unsent.SetMax(1)
		_, err := c.Ask(coretest.Query("long."))
		unsent.SetMax(memory.MaxUnsent)
		if n := coretest.Limited(of, "in_flight_bytes"); err == nil || n == 0 {
			t.Errorf("HTTP/%d: %v, counted %d", version, err, n)
		}
		if _, err := c.Ask(coretest.Query("www.")); err != nil { // on another connection
			t.Errorf("HTTP/%d: %v", version, err)
		}
		s.end()
	}
	if n := unsent.Octets(); n != 0 {
		t.Errorf("%d octets are left in the ledger", n)
	}
}

func TestConnections(t *testing.T) {
	for _, version := range []int{1, 2} {
		g := coretest.NewGate(t)
		of := serviceFor(t, g)
		of.Connections = 4
		s := serve(t, of, tlsConfig(t))
		busy := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := clients.DialHTTP(t, s.addr, "POST", version).Ask(coretest.Query("slow."))
				busy <- err
			}()
		}
		g.Holds(t, 2)
		for range 6 {
			coretest.Dial(t, s.addr) // not even a handshake
		}
		if _, err := clients.DialHTTP(t, s.addr, "POST", version).Ask(coretest.Query("www.")); err != nil {
			t.Errorf("HTTP/%d: %v", version, err)
		}
		g.Open()
		for range 2 {
			if err := <-busy; err != nil {
				t.Errorf("HTTP/%d: a connection at work was closed: %v", version, err)
			}
		}
	}
}

// TestStops has a server stop while requests are at work.
func TestStops(t *testing.T) {
	for _, version := range []int{1, 2} {
		g := coretest.NewGate(t)
		s := serve(t, serviceFor(t, g), tlsConfig(t))
		c := clients.DialHTTP(t, s.addr, "POST", version)
		if _, err := c.Ask(coretest.Query("www.")); err != nil {
			t.Fatal(err)
		}
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
			t.Errorf("HTTP/%d: %v", version, err)
		}
	}
}

// TestPlain serves without TLS, as behind a proxy.
func TestPlain(t *testing.T) {
	s := serve(t, serviceFor(t, new(coretest.Lane)), nil)
	c := clients.DialHTTP(t, s.addr, "GET", 1)
	c.URL = strings.Replace(c.URL, "https", "http", 1)
	if r, err := c.Ask(coretest.Query("www.")); err != nil || len(r.Answer) != 1 {
		t.Errorf("got %v, %v", r, err)
	}
	if err := s.end(); err != nil { // it closes the connection, which is idle, and then who served it does, too
		t.Error(err)
	}
}

// A panic of the function that validates requests costs one request, over each version of HTTP.
func TestValidatorPanics(t *testing.T) {
	log.SetOutput(io.Discard)
	defer log.SetOutput(os.Stderr)
	panics := func() *service.Service {
		of := serviceFor(t, coretest.Handler(coretest.Echo))
		settings(of).Valid = func(r *http.Request) bool {
			if r.URL.RawQuery == "panic" {
				panic("as asked")
			}
			return true
		}
		return of
	}
	addr := serve(t, panics(), tlsConfig(t)).addr
	overQUIC, _ := serve3(t, panics())
	addr3 := overQUIC.addr
	for version, c := range map[int]*clients.HTTPClient{
		1: clients.DialHTTP(t, addr, http.MethodPost, 1), 2: clients.DialHTTP(t, addr, http.MethodPost, 2), 3: clients.DialHTTP3(t, addr3, http.MethodPost),
	} {
		before := testutil.ToFloat64(vars.Panic)
		resp, err := c.Client.Post(c.URL+"/dns-query?panic", doh.MimeType, bytes.NewReader(coretest.Packed(t, coretest.Query("www."))))
		if err != nil {
			t.Errorf("HTTP/%d: %v", version, err)
			continue
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if n := testutil.ToFloat64(vars.Panic) - before; resp.StatusCode != http.StatusInternalServerError || n != 1 {
			t.Errorf("HTTP/%d: status %d, counted %v panics", version, resp.StatusCode, n)
		}
		if r, err := c.Ask(coretest.Query("www.")); err != nil || len(r.Answer) != 1 || c.Dials() != 1 {
			t.Errorf("HTTP/%d: afterwards %v, %v, on connection %d", version, r, err, c.Dials())
		}
	}
}

// A message that is no proper query is counted, over each version of HTTP; an UPDATE gets NOTIMP where a block takes
// some over other transports.
func TestNoQuery(t *testing.T) {
	for _, takes := range []bool{false, true} {
		fresh := func() *service.Service {
			s := serviceFor(t, coretest.Handler(coretest.Echo))
			if takes {
				s.Opcodes = 1 << dns.OpcodeUpdate
			}
			return s
		}
		overTCP, overQUIC := fresh(), fresh()
		addr := serve(t, overTCP, tlsConfig(t)).addr
		addr3, _ := serve3(t, overQUIC)
		for version, c := range map[int]*clients.HTTPClient{
			1: clients.DialHTTP(t, addr, http.MethodPost, 1), 2: clients.DialHTTP(t, addr, http.MethodPost, 2), 3: clients.DialHTTP3(t, addr3.addr, http.MethodPost),
		} {
			label := overTCP.Label
			if version == 3 {
				label = overQUIC.Label
			}
			cut := coretest.Packed(t, coretest.Query("www."))
			cut = cut[:len(cut)-1]
			for rcode, packet := range map[string][]byte{"FORMERR": cut, "NOTIMP": coretest.Packed(t, new(dns.Msg).SetUpdate("example.org."))} {
				counted := func() float64 {
					return testutil.ToFloat64(vars.ResponseRcode.WithLabelValues(label, vars.Dropped, "", rcode, ""))
				}
				before := counted()
				resp, err := c.Client.Post(c.URL+doh.Path, doh.MimeType, bytes.NewReader(packet))
				if err != nil {
					t.Fatalf("HTTP/%d: %v", version, err)
				}
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				want := http.StatusBadRequest
				if takes && rcode == "NOTIMP" {
					want = http.StatusOK
					if m := new(dns.Msg); m.Unpack(body) != nil || m.Rcode != dns.RcodeNotImplemented || m.Opcode != dns.OpcodeUpdate {
						t.Errorf("HTTP/%d: %x", version, body)
					}
				}
				if resp.StatusCode != want {
					t.Errorf("HTTP/%d, %s: status %d, want %d", version, rcode, resp.StatusCode, want)
				}
				if n := counted() - before; n != 1 {
					t.Errorf("HTTP/%d, %s: counted %v times", version, rcode, n)
				}
			}
		}
	}
}
