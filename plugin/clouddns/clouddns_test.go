package clouddns

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
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
		"www.example.org. A":      "NOERROR 192.0.2.1 192.0.2.2",
		"alias.example.org. A":    "NOERROR 192.0.2.1 192.0.2.2 www.example.org.",
		"near.example.org. A":     "NOERROR 192.0.2.7",
		"weighted.example.org. A": "NOERROR 192.0.2.9",
		"odd.example.org. A":      "NOERROR 192.0.2.3",
		"text.example.org. TXT":   `NOERROR "a b" "c"`,
		"nope.example.org. A":     "NXDOMAIN",
		"x.fall.example.org. A":   "nothing",
		"www.example.com. A":      "nothing",
	})
}

func TestStartFails(t *testing.T) {
	err := setup(caddy.NewTestController("dns", "clouddns example.org.:p:other {\ncredentials none\nendpoint "+provider(t)+"\n}"))
	if err == nil || !strings.Contains(err.Error(), "failed to create plugin: ") || !strings.Contains(err.Error(), "as it should") {
		t.Error(err)
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
		"clouddns ::":                                                `invalid zone "::"`,
		"clouddns example.org":                                       `invalid zone "example.org"`,
		"clouddns example.org.:p:":                                   `invalid zone "example.org.:p:"`,
		"clouddns example.org:p:z example.org.:p:z":                  `conflict zone "example.org.:p:z"`,
		"clouddns a:p:z {\ncredentials\n}":                           "usage: credentials",
		"clouddns a:p:z {\ncredentials nowhere.json\n}":              `invalid credentials file "nowhere.json"`,
		"clouddns a:p:z {\ncredentials " + file("a", "{}"):           "missing `type` field in credential",
		"clouddns a:p:z {\ncredentials " + file("b", `{"type":"x"}`): `unknown credential type: x`,
		"clouddns a:p:z {\nwat\n}":                                   `unknown property "wat"`,
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
