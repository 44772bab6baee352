package clouddns

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/file/mirror"
	"github.com/coredns/coredns/plugin/file/mirror/mirrortest"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// provider speaks the API of Cloud DNS: two pages a zone.
func provider(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/dns/v1/projects/p/managedZones/z":
			fmt.Fprint(w, `{"name":"z","dnsName":"example.org."}`)
		case r.URL.Path == "/dns/v1/projects/p/managedZones/z/rrsets" && r.FormValue("pageToken") == "":
			fmt.Fprint(w, `{"nextPageToken":"more","rrsets":[
				{"name":"example.org.","type":"SOA","ttl":300,"rrdatas":["ns1.example.net. host.example.net. 1 2 3 4 5"]},
				{"name":"example.org.","type":"NS","ttl":300,"rrdatas":["ns1.example.net."]},
				{"name":"odd.example.org.","type":"A","ttl":60,"rrdatas":["nonsense","192.0.2.3"]}]}`)
		case r.URL.Path == "/dns/v1/projects/p/managedZones/z/rrsets":
			fmt.Fprint(w, `{"rrsets":[
				{"name":"www.example.org.","type":"A","ttl":60,"rrdatas":["192.0.2.1","192.0.2.2"]},
				{"name":"alias.example.org.","type":"CNAME","ttl":60,"rrdatas":["www.example.org"]},
				{"name":"empty.example.org.","type":"CNAME","ttl":60,"rrdatas":[""]},
				{"name":"child.example.org.","type":"CNAME","ttl":60,"rrdatas":["app.dyn.example.org"]},
				{"name":"example.org.","type":"ALIAS","ttl":60,"rrdatas":["www.example.org."]},
				{"name":"bad.example.org.","type":"ALIAS","ttl":60,"rrdatas":["a..b."]},
				{"name":"backup.example.org.","type":"A","ttl":60,"routingPolicy":{"primaryBackup":{"backupGeoTargets":{"items":[{"location":"eu","rrdatas":["192.0.2.10"]}]}}}},
				{"name":"failover.example.org.","type":"A","ttl":60,"routingPolicy":{"primaryBackup":{
					"primaryTargets":{"internalLoadBalancers":[{"ipAddress":"192.0.2.11"}],"externalEndpoints":["192.0.2.12"]},
					"backupGeoTargets":{"items":[{"location":"eu","rrdatas":["192.0.2.13"]}]}}}},
				{"name":"checked.example.org.","type":"A","ttl":60,"routingPolicy":{"geo":{"items":[
					{"location":"eu","rrdatas":["192.0.2.14"],"healthCheckedTargets":{"internalLoadBalancers":[null,{"ipAddress":"192.0.2.15"}]}}]}}},
				{"name":"balanced.example.org.","type":"A","ttl":60,"routingPolicy":{"wrr":{"items":[
					{"weight":0.5,"healthCheckedTargets":{"externalEndpoints":["192.0.2.16"]}},{"weight":1,"rrdatas":["192.0.2.17"]}]}}},
				{"name":"drained.example.org.","type":"A","ttl":60,"routingPolicy":{"wrr":{"items":[
					{"weight":0,"rrdatas":["192.0.2.18"]},{"weight":0.5,"rrdatas":["192.0.2.19"]},{"weight":1,"rrdatas":["192.0.2.20"]}]}}},
				{"name":"weightless.example.org.","type":"A","ttl":60,"routingPolicy":{"wrr":{"items":[{"rrdatas":["192.0.2.21"]},{"rrdatas":["192.0.2.22"]}]}}},
				{"name":"near.example.org.","type":"A","ttl":60,"routingPolicy":{"geo":{"items":[{"location":"eu","rrdatas":["192.0.2.7"]},{"location":"us","rrdatas":["192.0.2.8"]}]}}},
				{"name":"weighted.example.org.","type":"A","ttl":60,"routingPolicy":{"wrr":{"items":[{"weight":1,"rrdatas":["192.0.2.9"]}]}}},
				{"name":"text.example.org.","type":"TXT","ttl":60,"rrdatas":["\"a b\" \"c\""]}]}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error":{"code":404,"message":"as it should"}}`)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestServer(t *testing.T) {
	c := caddy.NewTestController("dns", "clouddns Example.org.:p:z {\ncredentials none\nendpoint "+provider(t)+"\nfallthrough fall.example.org\n}")
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	h := dnsserver.GetConfig(c).Plugin[0](test.NextHandler(dns.RcodeRefused, nil)).(*CloudDNS)
	if !h.Ready() {
		t.Error("not ready")
	}
	mirrortest.Answers(t, h, map[string]string{
		"www.example.org. A":        "NOERROR 192.0.2.1 192.0.2.2",
		"alias.example.org. A":      "NOERROR 192.0.2.1 192.0.2.2 www.example.org.",
		"near.example.org. A":       "NOERROR 192.0.2.7",
		"weighted.example.org. A":   "NOERROR 192.0.2.9",
		"backup.example.org. A":     "NOERROR 192.0.2.10",
		"failover.example.org. A":   "NOERROR 192.0.2.11 192.0.2.12",
		"checked.example.org. A":    "NOERROR 192.0.2.14 192.0.2.15",
		"drained.example.org. A":    "NOERROR 192.0.2.19",
		"weightless.example.org. A": "NOERROR 192.0.2.21",
		"balanced.example.org. A":   "NOERROR 192.0.2.16",
		"odd.example.org. A":        "NOERROR 192.0.2.3",
		"text.example.org. TXT":     `NOERROR "a b" "c"`,
		"nope.example.org. A":       "NXDOMAIN",
		"empty.example.org. CNAME":  "NXDOMAIN",
		"x.fall.example.org. A":     "nothing",
		"www.example.com. A":        "nothing",
	})
	mirrortest.Served(t, dnsserver.GetConfig(c), map[string]string{
		"example.org. A":          "NOERROR 192.0.2.1 192.0.2.2",
		"example.org. AAAA":       "NOERROR",
		"bad.example.org. A":      "NXDOMAIN",
		"www.example.org. A":      "NOERROR 192.0.2.1 192.0.2.2",
		"nope.example.org. A":     "NXDOMAIN",
		"child.example.org. A":    "NOERROR 192.0.2.42 app.dyn.example.org.",
		"child.example.org. AAAA": "NOERROR app.dyn.example.org.",
	}, []string{"www.example.org. A", "nope.example.org. A", "bad.example.org. A"})
}

// Who has an account asks for a token with its key, and shows it with each request.
func TestServiceAccount(t *testing.T) {
	var showed atomic.Int64
	backend, err := url.Parse(provider(t))
	if err != nil {
		t.Fatal(err)
	}
	zones := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer of_account" {
			showed.Add(1)
		}
		httputil.NewSingleHostReverseProxy(backend).ServeHTTP(w, r)
	}))
	t.Cleanup(zones.Close)
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("assertion") == "" {
			w.WriteHeader(http.StatusBadRequest)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"of_account","token_type":"Bearer","expires_in":3600}`)
	}))
	t.Cleanup(tokens.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`{"type":"service_account","project_id":"p","private_key_id":"1","private_key":%q,"client_email":"me@example.org","token_uri":%q}`,
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), tokens.URL)
	file := filepath.Join(t.TempDir(), "account.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := caddy.NewTestController("dns", "clouddns example.org:p:z {\ncredentials "+file+"\nendpoint "+zones.URL+"\n}")
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	if n := showed.Load(); n != 3 { // one for the zone, two pages
		t.Errorf("the token was shown %d times", n)
	}
	h := dnsserver.GetConfig(c).Plugin[0](test.NextHandler(dns.RcodeRefused, nil)).(*CloudDNS)
	mirrortest.Answers(t, h, map[string]string{"www.example.org. A": "NOERROR 192.0.2.1 192.0.2.2"})
}

// A page that something on the way made is not the end of the list: the zone stays as it was. An empty one of the API has its kind.
func TestPagesThatAreNone(t *testing.T) {
	for second, want := range map[string]bool{"": false, "{}": false, "null": false, `{"nextPageToken":"more","rrsets":[]}`: false, `{"kind":"dns#resourceRecordSetsListResponse"}`: true, `{"rrsets":[null,{},{"routingPolicy":{"wrr":{"items":[null]}}},{"routingPolicy":{"geo":{"items":[null]}}}]}`: true} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.FormValue("pageToken") == "" {
				fmt.Fprint(w, `{"nextPageToken":"more","rrsets":[{"name":"example.org.","type":"SOA","ttl":300,"rrdatas":["a. b. 1 2 3 4 5"]}]}`)
				return
			}
			fmt.Fprint(w, second)
		}))
		t.Cleanup(s.Close)
		client, err := (&settings{anonymous: true, endpoint: s.URL}).client(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fetch(t.Context(), client, mirror.Hosted{Zone: "example.org.", ID: "p:z"}, t.Logf); (err == nil) != want {
			t.Errorf("%q: %v", second, err)
		}
	}
}

// A page that leads back to a former one ends the reading.
func TestPagesInACircle(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if asked++; asked > 100 {
			fmt.Fprint(w, `{"rrsets":[]}`)
			return
		}
		fmt.Fprintf(w, `{"nextPageToken":"%d","rrsets":[{"name":"example.org.","type":"SOA","ttl":300,"rrdatas":["a. b. 1 2 3 4 5"]}]}`, asked%3)
	}))
	t.Cleanup(s.Close)
	client, err := (&settings{anonymous: true, endpoint: s.URL}).client(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fetch(t.Context(), client, mirror.Hosted{Zone: "example.org.", ID: "p:z"}, t.Logf); !errors.Is(err, errEndless) || asked != 4 {
		t.Errorf("after %d pages: %v", asked, err)
	}
}

// An API that is busy is asked again, for each page, as it wishes; one that refuses is not.
func TestBusy(t *testing.T) {
	for _, c := range []struct{ refusals, status, requests int }{{2, 429, 5}, {2, 503, 5}, {3, 429, 3}, {1, 403, 1}} {
		asked := 0
		good := provider(t)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch asked++; {
			case asked <= c.refusals:
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(c.status)
			default:
				resp, err := http.Get(good + r.URL.RequestURI())
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.Copy(w, resp.Body)
			}
		}))
		t.Cleanup(s.Close)
		ctl := caddy.NewTestController("dns", "clouddns example.org.:p:z {\ncredentials none\nendpoint "+s.URL+"\n}")
		if err := setup(ctl); (err == nil) != (asked > tries) || asked != c.requests {
			t.Errorf("%d times %d: %d requests, %v", c.refusals, c.status, asked, err)
		}
	}
}

// patient is an API that notes how long it may take.
type patient struct {
	api
	ends []time.Time
}

func (p *patient) zoneExists(ctx context.Context, _, _ string) error {
	end, _ := ctx.Deadline()
	p.ends = append(p.ends, end)
	for !time.Now().After(end.Add(-firstTime)) { // the clock may be a coarse one
	}
	return nil
}

// Of hundreds of zones each has its own time.
func TestManyZones(t *testing.T) {
	p := new(patient)
	if _, err := New(t.Context(), p, map[string][]string{"example.org.": {"p:z1", "p:z2"}, "example.net.": {"p:z3"}}, nil); err != nil {
		t.Fatal(err)
	}
	if len(p.ends) != 3 || !p.ends[1].After(p.ends[0]) || !p.ends[2].After(p.ends[1]) {
		t.Errorf("the zones may be asked for until %v", p.ends)
	}
}

func TestStartFails(t *testing.T) {
	err := setup(caddy.NewTestController("dns", "clouddns example.org.:p:other {\ncredentials none\nendpoint "+provider(t)+"\n}"))
	if err == nil || !strings.Contains(err.Error(), "failed to create plugin: ") || !strings.Contains(err.Error(), "as it should") {
		t.Error(err)
	}
}

// A page of a proxy is told of in one line.
func TestStartFailsInOneLine(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, "<html>\n<body>by the proxy")
	}))
	t.Cleanup(s.Close)
	err := setup(caddy.NewTestController("dns", "clouddns example.org.:p:z {\ncredentials none\nendpoint "+s.URL+"\n}"))
	if err == nil || !strings.HasSuffix(err.Error(), "403 with body: <html>; <body>by the proxy") {
		t.Errorf("%q", err)
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for text, want := range map[string]string{
		"clouddns a..b:p:z":                                          `invalid zone "a..b:p:z"`,
		"clouddns ::":                                                `invalid zone "::"`,
		"clouddns example.org":                                       `invalid zone "example.org"`,
		"clouddns example.org.:p:":                                   `invalid zone "example.org.:p:"`,
		"clouddns example.org:p:z example.org.:p:z":                  `conflict zone "example.org.:p:z"`,
		"clouddns a:p:z {\ncredentials\n}":                           "usage: credentials",
		"clouddns a:p:z {\ncredentials nowhere.json\n}":              `invalid credentials file "nowhere.json"`,
		"clouddns a:p:z {\ncredentials " + file("a", "{}"):           "missing `type` field in credential",
		"clouddns a:p:z {\ncredentials " + file("b", `{"type":"x"}`): `unknown credential type: x`,
		"clouddns a:p:z {\nwat\n}":                                   `unknown property "wat"`,
		"clouddns a:p:z {\nupstream a\nwat\n}":                       `unknown property "wat"`, // upstream is of old and does nothing
	} {
		if !strings.HasSuffix(text, "}") && strings.Contains(text, "{") {
			text += "\n}"
		}
		if err := setup(caddy.NewTestController("dns", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestReadme(t *testing.T) {
	text, err := corefile.ReadmeSyntax("README.md")
	if err != nil || text != directive.Doc().Syntax {
		t.Errorf("%v: the README has\n%s\nwant\n%s", err, text, directive.Doc().Syntax)
	}
}
