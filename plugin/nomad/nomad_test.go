package nomad

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// api is an agent's HTTP API.
type api struct {
	mu       sync.Mutex
	index    uint64
	services map[string][]instance // by namespace/service
	changed  chan struct{}         // closed at the next change
	asked    []*http.Request
	down     bool
	hasty    bool // it answers at once, whatever index is asked for
}

func newAPI(t *testing.T) (*api, string) {
	t.Helper()
	a := &api{index: 7, changed: make(chan struct{}), services: map[string][]instance{
		"default/redis": {{Address: "192.0.2.1", Port: 6379}, {Address: "192.0.2.2", Port: 6380}, {Address: "192.0.2.1", Port: 6379}, {Address: "2001:db8::1", Port: 6379}, {Address: "odd", Port: 1}},
		"default/odd":   {{Address: "odd", Port: 1}},
	}}
	s := httptest.NewServer(a)
	t.Cleanup(s.Close)
	return a, s.URL
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.asked = append(a.asked, r)
	down, hasty, changed, index := a.down, a.hasty, a.changed, a.index
	a.mu.Unlock()
	if down {
		http.Error(w, "as it\nshould", http.StatusInternalServerError)
		return
	}
	if r.URL.Path == "/v1/agent/self" {
		w.Write([]byte(`{"config":{},"member":{},"stats":{}}`))
		return
	}
	if want, _ := strconv.ParseUint(r.FormValue("index"), 10, 64); !hasty && want >= index {
		wait, _ := time.ParseDuration(r.FormValue("wait"))
		select {
		case <-changed:
		case <-time.After(wait):
		case <-r.Context().Done():
			return
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("X-Nomad-Index", strconv.FormatUint(a.index, 10))
	json.NewEncoder(w).Encode(a.services[r.FormValue("namespace")+"/"+strings.TrimPrefix(r.URL.Path, "/v1/service/")])
}

func (a *api) change(key string, all ...instance) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.index++
	a.services[key] = all
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *api) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asked)
}

func serving(t *testing.T, urls ...string) *Nomad {
	t.Helper()
	all := new(agents)
	for _, u := range urls {
		one, err := newAgent(u, "secret")
		if err != nil {
			t.Fatal(err)
		}
		all.all = append(all.all, one)
	}
	n := &Nomad{Zone: defaultZone, ttl: defaultTTL, agents: all, catalog: newCatalogue(all, "")}
	n.Next = test.NextHandler(dns.RcodeRefused, errors.New("next"))
	t.Cleanup(func() { n.catalog.stop(); all.close() })
	return n
}

func ask(n *Nomad, name string, typ uint16) (string, error) {
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	rcode, err := n.ServeDNS(context.Background(), rec, new(dns.Msg).SetQuestion(name, typ))
	if rec.Msg == nil {
		return dns.RcodeToString[rcode], err
	}
	var all []string
	for _, rr := range append(slices.Clone(rec.Msg.Answer), rec.Msg.Extra...) {
		all = append(all, strings.Join(strings.Fields(rr.String()), " "))
	}
	slices.Sort(all)
	for _, rr := range rec.Msg.Ns {
		all = append(all, "+"+dns.TypeToString[rr.Header().Rrtype]+" "+rr.Header().Name)
	}
	return dns.RcodeToString[rec.Msg.Rcode] + " " + strings.Join(all, "; "), err
}

func TestServeDNS(t *testing.T) {
	a, url := newAPI(t)
	n := serving(t, url)
	for _, tc := range []struct {
		name string
		typ  uint16
		want string
	}{
		{"redis.default.service.nomad.", dns.TypeA, "NOERROR redis.default.service.nomad. 30 IN A 192.0.2.1; redis.default.service.nomad. 30 IN A 192.0.2.2"},
		{"Redis.default.service.nomad.", dns.TypeAAAA, "NOERROR Redis.default.service.nomad. 30 IN AAAA 2001:db8::1"},
		{"redis.default.service.nomad.", dns.TypeSRV, "NOERROR redis.default.service.nomad. 30 IN A 192.0.2.1; redis.default.service.nomad. 30 IN A 192.0.2.2; redis.default.service.nomad. 30 IN AAAA 2001:db8::1; " +
			"redis.default.service.nomad. 30 IN SRV 10 10 6379 redis.default.service.nomad.; redis.default.service.nomad. 30 IN SRV 10 10 6380 redis.default.service.nomad."},
		{"redis.default.service.nomad.", dns.TypeMX, "NOERROR +SOA service.nomad."},
		{"nope.default.service.nomad.", dns.TypeA, "NXDOMAIN +SOA service.nomad."},
		{"odd.default.service.nomad.", dns.TypeA, "NXDOMAIN +SOA service.nomad."},
		{"x.redis.default.service.nomad.", dns.TypeA, "NXDOMAIN +SOA service.nomad."},
		{"service.nomad.", dns.TypeNS, "NOERROR service.nomad. 30 IN NS ns1.service.nomad."},
		{"service.nomad.", dns.TypeA, "NOERROR +SOA service.nomad."},
		{"default.service.nomad.", dns.TypeA, "REFUSED"},
		{"www.example.org.", dns.TypeA, "REFUSED"},
	} {
		if got, _ := ask(n, tc.name, tc.typ); got != tc.want {
			t.Errorf("%s %s\n%s\nwant\n%s", tc.name, dns.TypeToString[tc.typ], got, tc.want)
		}
	}
	if got, _ := ask(n, "service.nomad.", dns.TypeSOA); got != "NOERROR service.nomad. 30 IN SOA ns1.service.nomad. hostmaster.service.nomad. 7 3600 600 86400 30" {
		t.Error(got)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if h := a.asked[0].Header.Get("X-Nomad-Token"); h != "secret" {
		t.Errorf("token %q", h)
	}
}

// What answers at once when it should wait for a change is not asked again and again.
func TestHastyAgent(t *testing.T) {
	a, url := newAPI(t)
	a.hasty = true
	n := serving(t, url)
	ask(n, "redis.default.service.nomad.", dns.TypeA)
	time.Sleep(200 * time.Millisecond)
	if asked := a.count(); asked > 3 {
		t.Errorf("asked %d times", asked)
	}
}

// A service that was asked for is followed: changes are soon there, and queries ask nobody.
func TestServiceIsFollowed(t *testing.T) {
	a, url := newAPI(t)
	n := serving(t, url)
	const name = "redis.default.service.nomad."
	ask(n, name, dns.TypeA)
	for range 50 {
		ask(n, name, dns.TypeA)
	}
	if asked := a.count(); asked > 2 {
		t.Errorf("asked %d times", asked)
	}
	a.change("default/redis", instance{Address: "192.0.2.9", Port: 1})
	want := "NOERROR " + name + " 30 IN A 192.0.2.9"
	eventually.Holds(t, "the change", func() bool { got, _ := ask(n, name, dns.TypeA); return got == want })
	a.mu.Lock()
	a.down = true
	a.mu.Unlock()
	a.change("default/redis", instance{Address: "192.0.2.10", Port: 1})
	if got, err := ask(n, name, dns.TypeA); got != want && !strings.Contains(got, "192.0.2.10") {
		t.Errorf("without an agent: %s %v", got, err)
	}
	a.mu.Lock()
	a.down = false
	a.mu.Unlock()
	a.change("default/redis")
	eventually.Holds(t, "the end of the service", func() bool {
		got, _ := ask(n, name, dns.TypeA)
		return got == "NXDOMAIN +SOA service.nomad."
	})
}

func TestUnusedIsForgotten(t *testing.T) {
	_, url := newAPI(t)
	n := serving(t, url)
	n.catalog.wait, n.catalog.unused = 20*time.Millisecond, 50*time.Millisecond
	ask(n, "redis.default.service.nomad.", dns.TypeA)
	eventually.Holds(t, "the entry to go", func() bool {
		n.catalog.mu.Lock()
		defer n.catalog.mu.Unlock()
		return len(n.catalog.entries) == 0
	})
}

func TestAgents(t *testing.T) {
	out := logtest.Capture(t)
	bad, badURL := newAPI(t)
	bad.down = true
	_, url := newAPI(t)
	n := serving(t, badURL, url)
	if n.Ready() {
		t.Error("ready before any has answered")
	}
	if err := n.agents.probe(context.Background()); err != nil || !n.Ready() {
		t.Errorf("%v, ready %v", err, n.Ready())
	}
	before := bad.count()
	if got, err := ask(n, "redis.default.service.nomad.", dns.TypeAAAA); err != nil || !strings.HasPrefix(got, "NOERROR") || bad.count() != before {
		t.Errorf("%s %v", got, err)
	}
	n = serving(t, badURL, badURL)
	if err := n.agents.probe(context.Background()); err == nil {
		t.Error("no error")
	}
	if got, err := ask(n, "redis.default.service.nomad.", dns.TypeA); got != "SERVFAIL" || err == nil || !strings.Contains(err.Error(), "as it should") {
		t.Errorf("%s %v", got, err)
	}
	if want := "[WARNING] plugin/nomad: Service redis in default: " + badURL; !strings.Contains(out.String(), want) {
		t.Errorf("logged %s\nwant %s", out.String(), want)
	}
}

// Why the current agent failed is told also if another one fails in another way.
func TestFailureOfEach(t *testing.T) {
	logtest.Capture(t)
	bad, badURL := newAPI(t)
	bad.down = true
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	n := serving(t, badURL, gone.URL)
	_, err := ask(n, "redis.default.service.nomad.", dns.TypeA)
	if err == nil || !strings.Contains(err.Error(), "500 Internal Server Error: as it should; ") || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%v", err)
	}
}

// An agent that takes questions and never answers is left for another one, also by the queries that come later.
func TestSilentAgent(t *testing.T) {
	var asked atomic.Int64
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	_, url := newAPI(t)
	n := serving(t, silent.URL, url)
	for _, name := range []string{"redis.default.service.nomad.", "redis.other.service.nomad."} {
		if _, err := ask(n, name, dns.TypeA); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("the silent agent was asked %d times", asked.Load())
	}
}

// The answer to a blocking query, which was asked long ago, does not lead back to an agent that fails by now.
func TestLateAnswer(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/blocking" {
			http.Error(w, "as it should", http.StatusInternalServerError)
			return
		}
		close(asked)
		<-release
		w.Write([]byte("{}"))
	}))
	t.Cleanup(failing.Close)
	_, url := newAPI(t)
	n := serving(t, failing.URL, url)
	var self struct{}
	late := make(chan error)
	go func() {
		_, err := n.agents.get(context.Background(), time.Minute, "/blocking", neturl.Values{}, &self)
		late <- err
	}()
	<-asked
	if err := n.agents.probe(context.Background()); err != nil {
		t.Error(err)
	}
	close(release)
	if err := <-late; err != nil || n.agents.current.Load() != 1 {
		t.Errorf("%v; agent %d is asked", err, n.agents.current.Load())
	}
}

func TestUnixSocket(t *testing.T) {
	a, _ := newAPI(t)
	path := filepath.Join(loopback.Folder(t), "n.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: a}
	go s.Serve(l)
	defer s.Close()
	n := serving(t, "unix://"+path)
	if got, err := ask(n, "redis.default.service.nomad.", dns.TypeAAAA); err != nil || !strings.HasPrefix(got, "NOERROR redis") {
		t.Errorf("%s %v", got, err)
	}
}

func TestServeWire(t *testing.T) {
	n := &Nomad{Zone: defaultZone}
	for name, want := range map[string]wire.Outcome{"redis.default.service.nomad.": wire.Unpack, "www.example.org.": wire.Done} {
		b, _ := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
		var q wire.Query
		var w wire.Reply
		w.Reset(nil)
		if !q.Parse(b) || n.ServeWire(context.Background(), &w, &q) != want {
			t.Errorf("%s: not %v", name, want)
		}
	}
}

func TestReadme(t *testing.T) {
	text, err := corefile.ReadmeSyntax("README.md")
	if err != nil || text != directive.Doc().Syntax {
		t.Errorf("%v: the README has\n%s\nwant\n%s", err, text, directive.Doc().Syntax)
	}
}

func TestDirective(t *testing.T) {
	s := settings{}
	if err := directive.Parse(caddy.NewTestController("dns", "nomad Service.Test {\nADDRESS http://a http://b\naddress http://c\nfilter \"Tags not contains x\"\nToken t\nttl 60\n}"), &s); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%+v", s); got != "{zone:service.test. addresses:[http://a http://b http://c] filter:Tags not contains x token:t ttl:60}" {
		t.Error(got)
	}
	s = settings{}
	if err := directive.Parse(caddy.NewTestController("dns", "nomad ä.test"), &s); err != nil || s.zone != `\195\164.test.` { // as queries have it
		t.Errorf("zone %s, %v", s.zone, err)
	}
	for text, want := range map[string]string{
		"nomad {\naddress\n}":         "at least one address is required",
		"nomad {\nfilter\n}":          "exactly one filter is required",
		"nomad {\ntoken a b\n}":       "exactly one token is required",
		"nomad ser..vice":             `invalid zone "ser..vice"`,
		"nomad {\nttl\n}":             "exactly one ttl value is required",
		"nomad {\nttl x\n}":           "error parsing ttl: strconv.Atoi",
		"nomad {\nttl 3601\n}":        "ttl must be in range [0, 3600]: 3601",
		"nomad {\nnope\n}":            "unknown property 'nope'",
		"nomad {\naddress ftp://a\n}": "want http://HOST:PORT",
	} {
		if err := setup(caddy.NewTestController("dns", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if err := setup(caddy.NewTestController("dns", "nomad")); err != nil {
		t.Error(err)
	}
}
