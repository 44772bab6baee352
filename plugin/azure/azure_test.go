package azure

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/file/mirror/mirrortest"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/test"

	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/dns/armdns"
	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// provider speaks the API of Azure DNS, and hands out tokens. It returns a file that describes it as an environment.
func provider(t *testing.T) (s *httptest.Server, file string) {
	t.Helper()
	const zone = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/"
	mux := http.NewServeMux()
	s = httptest.NewTLSServer(mux)
	t.Cleanup(s.Close)
	say := func(path, text string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, zone) && r.Header.Get("Authorization") != "Bearer token" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			if r.FormValue("page") == "2" {
				text := `{"value":[{"properties":{"fqdn":"second.example.org.","TTL":60,"ARecords":[{"ipv4Address":"192.0.2.2"}]}}]}`
				fmt.Fprint(w, text)
				return
			}
			fmt.Fprint(w, strings.NewReplacer("URL", s.URL, "LONG", strings.Repeat("x", 300)).Replace(text))
		})
	}
	say("/t/v2.0/.well-known/openid-configuration", `{"token_endpoint":"URL/t/oauth2/v2.0/token","authorization_endpoint":"URL/t/oauth2/v2.0/authorize","issuer":"URL/t/v2.0"}`)
	say("/t/oauth2/v2.0/token", `{"token_type":"Bearer","expires_in":3600,"access_token":"token"}`)
	say(zone+"dnsZones/example.org/all", `{"nextLink":"URL`+zone+`dnsZones/example.org/all?page=2","value":[
		{"properties":{"fqdn":"example.org.","TTL":300,"SOARecord":{"host":"ns1.example.net","email":"host.example.net","serialNumber":1,"refreshTime":2,"retryTime":3,"expireTime":4,"minimumTTL":5}}},
		{"properties":{"fqdn":"example.org.","TTL":300,"NSRecords":[{"nsdname":"ns1.example.net"}]}},
		{"properties":{"fqdn":"www.example.org.","TTL":60,"ARecords":[{"ipv4Address":"192.0.2.1"},{"ipv4Address":"odd"},{}]}},
		{"properties":{"fqdn":"www.example.org.","TTL":60,"AAAARecords":[{"ipv6Address":"2001:db8::1"}]}},
		{"properties":{"fqdn":"mail.example.org.","TTL":60,"MXRecords":[{"exchange":"mx.example.net","preference":7}]}},
		{"properties":{"fqdn":"text.example.org.","TTL":60,"TXTRecords":[{"value":["a \"b\"","c"]}]}},
		{"properties":{"fqdn":"none.example.org.","TTL":60,"TXTRecords":[{"value":[]}]}},
		{"properties":{"fqdn":"long.example.org.","TTL":60,"TXTRecords":[{"value":["LONG"]}]}},
		{"properties":{"fqdn":"nowhere.example.org.","TTL":60,"CNAMERecord":{"cname":""}}},
		{"properties":{"fqdn":"caa.example.org.","TTL":60,"caaRecords":[{"flags":0,"tag":"issue","value":"example.net"}]}},
		{"properties":{"fqdn":"alias.example.org.","TTL":60,"CNAMERecord":{"cname":"www.example.org"}}},
		{"properties":{"fqdn":"child.example.org.","TTL":60,"CNAMERecord":{"cname":"app.dyn.example.org"}}},
		{"properties":{"fqdn":"9.2.0.192.example.org.","TTL":60,"PTRRecords":[{"ptrdname":"www.example.org"}]}},
		{"properties":{"fqdn":"_s._tcp.example.org.","TTL":60,"SRVRecords":[{"port":1,"priority":2,"weight":3,"target":"www.example.org"}]}},
		{}]}`)
	say(zone+"privateDnsZones/in.example/ALL", `{"value":[
		{"properties":{"fqdn":"in.example.","ttl":300,"soaRecord":{"host":"ns1.in.example","email":"host.in.example","serialNumber":1,"refreshTime":2,"retryTime":3,"expireTime":4,"minimumTtl":5}}},
		{"properties":{"fqdn":"a.in.example.","ttl":60,"aRecords":[{"ipv4Address":"10.0.0.1"}]}},
		{"properties":{"fqdn":"a.in.example.","ttl":60,"aaaaRecords":[{"ipv6Address":"2001:db8::10"}]}},
		{"properties":{"fqdn":"m.in.example.","ttl":60,"mxRecords":[{"exchange":"a.in.example","preference":7}]}},
		{"properties":{"fqdn":"p.in.example.","ttl":60,"ptrRecords":[{"ptrdname":"a.in.example"}]}},
		{"properties":{"fqdn":"s.in.example.","ttl":60,"srvRecords":[{"port":1,"priority":2,"weight":3,"target":"a.in.example"}]}},
		{"properties":{"fqdn":"c.in.example.","ttl":60,"cnameRecord":{"cname":"a.in.example"}}},
		{"properties":{"fqdn":"t.in.example.","ttl":60,"txtRecords":[{"value":["x"]}]}}]}`)
	return s, cloudAt(t, s.URL, s.URL+"/")
}

// cloudAt makes what is served at a URL the cloud of one's own, and returns the file that describes it.
func cloudAt(t *testing.T, url, audience string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "environment.json")
	text := fmt.Sprintf(`{"activeDirectoryEndpoint":"%[1]s/","resourceManagerEndpoint":"%[1]s/","tokenAudience":%[2]q}`, url, audience)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AZURE_ENVIRONMENT_FILEPATH", file)
	return file
}

const account = "tenant t\nclient c\nsecret x\nsubscription s\nenvironment azurestackcloud\n"

func TestServer(t *testing.T) {
	s, _ := provider(t)
	all := newSettings()
	all.transport = s.Client()
	c := caddy.NewTestController("dns", "azure g:example.org {\n"+account+"fallthrough fall.example.org\n}\nazure g:in.example {\naccess private\n}")
	if err := all.setup(c); err != nil {
		t.Fatal(err)
	}
	h := dnsserver.GetConfig(c).Plugin[0](test.NextHandler(dns.RcodeRefused, nil)).(*Azure)
	mirrortest.Answers(t, h, map[string]string{
		"www.example.org. A":         "NOERROR 192.0.2.1",
		"www.example.org. AAAA":      "NOERROR 2001:db8::1",
		"second.example.org. A":      "NOERROR 192.0.2.2",
		"mail.example.org. MX":       "NOERROR 7 mx.example.net.",
		"text.example.org. TXT":      `NOERROR "a \"b\"" "c"`,
		"none.example.org. TXT":      `NOERROR ""`,
		"long.example.org. TXT":      fmt.Sprintf("NOERROR %q %q", strings.Repeat("x", 255), strings.Repeat("x", 45)),
		"nowhere.example.org. A":     "NXDOMAIN",
		"caa.example.org. CAA":       `NOERROR 0 issue "example.net"`,
		"alias.example.org. A":       "NOERROR 192.0.2.1 www.example.org.",
		"_s._tcp.example.org. SRV":   "NOERROR 2 3 1 www.example.org.",
		"example.org. SOA":           "NOERROR ns1.example.net. host.example.net. 1 2 3 4 5",
		"a.in.example. A":            "NOERROR 10.0.0.1",
		"t.in.example. TXT":          `NOERROR "x"`,
		"a.in.example. AAAA":         "NOERROR 2001:db8::10",
		"m.in.example. MX":           "NOERROR 7 a.in.example.",
		"p.in.example. PTR":          "NOERROR a.in.example.",
		"s.in.example. SRV":          "NOERROR 2 3 1 a.in.example.",
		"c.in.example. A":            "NOERROR 10.0.0.1 a.in.example.",
		"in.example. SOA":            "NOERROR ns1.in.example. host.in.example. 1 2 3 4 5",
		"9.2.0.192.example.org. PTR": "NOERROR www.example.org.",
		"nope.example.org. A":        "NXDOMAIN",
		"x.fall.example.org. A":      "nothing",
	})
	mirrortest.Served(t, dnsserver.GetConfig(c), map[string]string{
		"www.example.org. A":      "NOERROR 192.0.2.1",
		"nope.example.org. A":     "NXDOMAIN",
		"a.in.example. A":         "NOERROR 10.0.0.1",
		"child.example.org. A":    "NOERROR 192.0.2.42 app.dyn.example.org.",
		"child.example.org. AAAA": "NOERROR app.dyn.example.org.",
	}, []string{"www.example.org. A", "nope.example.org. A", "a.in.example. A"})
}

// A cloud of one's own may be one of plain HTTP, with the endpoint for tokens that Azure's older tools ask.
func TestOwnCloud(t *testing.T) {
	const soa = `{"properties":{"fqdn":"example.org.","TTL":300,"SOARecord":{"host":"ns1.example.net","email":"h.example.net","serialNumber":1,"refreshTime":2,"retryTime":3,"expireTime":4,"minimumTTL":5}}}`
	for reply, want := range map[string]string{
		`{"token_type":"Bearer","expires_in":"3599","expires_on":"4102444800","access_token":"token"}`: "",
		`{"token_type":"Bearer","expires_in":3599,"access_token":"token"}`:                             "",
		`{"access_token":"token"}`: "",
		`{}`:                       ": HTTP status 200",
		`no JSON`:                  ": HTTP status 200",
		`{"error":"invalid_client","error_description":"The secret has expired."}`: ": HTTP status 401: invalid_client: The secret has expired.",
	} {
		var requests atomic.Int64
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.Method == http.MethodPost && r.URL.Path == "/t/oauth2/token":
				if r.FormValue("grant_type") != "client_credentials" || r.FormValue("client_id") != "c" || r.FormValue("client_secret") != "x" || r.FormValue("resource") != "the audience" {
					t.Errorf("asked for a token with %v", r.Form)
				}
				if strings.Contains(reply, "error") {
					w.WriteHeader(http.StatusUnauthorized)
				}
				fmt.Fprint(w, reply)
			case r.URL.Path == "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/dnsZones/example.org/all" && r.Header.Get("Authorization") == "Bearer token":
				requests.Add(1)
				fmt.Fprint(w, `{"value":[`+soa+`,{"properties":{"fqdn":"www.example.org.","TTL":60,"ARecords":[{"ipv4Address":"192.0.2.1"}]}}]}`)
			default:
				w.WriteHeader(http.StatusNotFound)
			}
		}))
		t.Cleanup(s.Close)
		cloudAt(t, s.URL, "the audience")
		c := caddy.NewTestController("dns", "azure g:example.org {\n"+account+"}")
		err := setup(c)
		if want != "" {
			if err == nil || !strings.HasSuffix(err.Error(), "no token from "+s.Listener.Addr().String()+want) || requests.Load() > 0 {
				t.Errorf("%s: %v after %d requests", reply, err, requests.Load())
			}
			continue
		}
		if err != nil || requests.Load() != 1 {
			t.Fatalf("%s: %v after %d requests", reply, err, requests.Load())
		}
		h := dnsserver.GetConfig(c).Plugin[0](test.NextHandler(dns.RcodeRefused, nil)).(*Azure)
		mirrortest.Answers(t, h, map[string]string{"www.example.org. A": "NOERROR 192.0.2.1"})
	}
}

// The account may be told by the environment, as Azure's own tools have it told, so that it need not stand in the Corefile. What the
// directive says goes before.
func TestAccountOfEnvironment(t *testing.T) {
	s, _ := provider(t)
	for name, value := range map[string]string{"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_CLIENT_SECRET": "x", "AZURE_SUBSCRIPTION_ID": "other"} {
		t.Setenv(name, value)
	}
	all := newSettings()
	all.transport = s.Client()
	if err := all.setup(caddy.NewTestController("dns", "azure g:example.org {\nsubscription s\nenvironment azurestackcloud\n}")); err != nil {
		t.Error(err)
	}
}

// Without a secret the server is what the machine that it runs on is.
func TestManagedIdentity(t *testing.T) {
	s, _ := provider(t)
	var asked atomic.Int64
	identity := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("X-IDENTITY-HEADER") != "h" || r.FormValue("client_id") != "c" || r.FormValue("resource") == "" {
			w.WriteHeader(http.StatusBadRequest)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"token","expires_on":"4102444800","resource":"x","token_type":"Bearer"}`)
	}))
	t.Cleanup(identity.Close)
	t.Setenv("IDENTITY_ENDPOINT", identity.URL)
	t.Setenv("IDENTITY_HEADER", "h")
	all := newSettings()
	all.transport = s.Client()
	c := caddy.NewTestController("dns", "azure g:example.org {\nsubscription s\nclient c\nenvironment azurestackcloud\n}")
	if err := all.setup(c); err != nil {
		t.Fatal(err)
	}
	if asked.Load() == 0 {
		t.Error("no token was asked for")
	}
	h := dnsserver.GetConfig(c).Plugin[0](test.NextHandler(dns.RcodeRefused, nil)).(*Azure)
	mirrortest.Answers(t, h, map[string]string{"www.example.org. A": "NOERROR 192.0.2.1"})
}

// refused is a transport to where nobody listens.
type refused struct{ asked atomic.Int64 }

func (r *refused) Do(*http.Request) (*http.Response, error) {
	r.asked.Add(1)
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
}

// A machine that has no identity is told at once, and why, not after a minute of trying.
func TestNoIdentity(t *testing.T) {
	var at refused
	all := newSettings()
	all.transport = &at
	err := all.setup(caddy.NewTestController("dns", "azure g:example.org {\nsubscription s\n}"))
	if err == nil || !strings.Contains(err.Error(), "listing record sets: ManagedIdentityCredential: dial tcp: connect: connection refused") {
		t.Error(err)
	}
	if n := at.asked.Load(); n != 1 {
		t.Errorf("%d attempts", n)
	}
}

func TestStartFails(t *testing.T) {
	s, _ := provider(t)
	all := newSettings()
	all.transport = s.Client()
	if err := all.setup(caddy.NewTestController("dns", "azure g:other.example {\n"+account+"}")); err == nil || !strings.Contains(err.Error(), "other.example. (g/other.example): listing record sets: HTTP status 404") {
		t.Error(err)
	}
	if err := setup(caddy.NewTestController("dns", "azure")); err == nil || !strings.Contains(err.Error(), "no zones") {
		t.Error(err)
	}
}

// A page that something on the way made is not the end of the list, nor is one that leads to itself: the zone stays as
// it was.
func TestPagesThatAreNone(t *testing.T) {
	for _, second := range []string{"", "{}", "null", `{"value":null}`, `{"value":[]}`, `{"nextLink":"SELF","value":[]}`, `{"nextLink":"BACK","value":[]}`} {
		asked := 0
		var s *httptest.Server
		s = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case strings.HasSuffix(r.URL.Path, "openid-configuration"):
				fmt.Fprintf(w, `{"token_endpoint":"%[1]s/token","authorization_endpoint":"%[1]s/authorize","issuer":"%[1]s/t/v2.0"}`, s.URL)
			case r.URL.Path == "/token":
				fmt.Fprint(w, `{"token_type":"Bearer","expires_in":3600,"access_token":"token"}`)
			case r.FormValue("page") == "":
				fmt.Fprintf(w, `{"nextLink":"%s%s?page=2","value":[{"properties":{"fqdn":"example.org.","TTL":300,"SOARecord":{"host":"a","email":"b"}}}]}`, s.URL, r.URL.Path)
			case asked > 100:
				fmt.Fprint(w, `{"value":[]}`)
			default:
				asked++
				back := map[string]string{"2": "3", "3": "2"}[r.FormValue("page")]
				fmt.Fprint(w, strings.NewReplacer("SELF", s.URL+r.URL.Path+"?page=2", "BACK", s.URL+r.URL.Path+"?page="+back).Replace(second))
			}
		}))
		t.Cleanup(s.Close)
		all := newSettings()
		all.transport, all.own, all.tenant, all.client, all.secret, all.subscription = s.Client(), true, "t", "c", "x", "s"
		all.cloud = configuration(s.URL+"/", s.URL+"/", s.URL+"/")
		all.access = map[string]string{"g/example.org": privateAccess}
		public, private, err := all.clients()
		if err != nil {
			t.Fatal(err)
		}
		_, errPublic := fetchPublic(t.Context(), public, "g", "example.org", t.Logf)
		_, errPrivate := fetchPrivate(t.Context(), private, "g", "example.org", t.Logf)
		if want := second == `{"value":[]}`; (errPublic == nil) != want || (errPrivate == nil) != want {
			t.Errorf("%q: %v, %v", second, errPublic, errPrivate)
		}
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"azure g:a..b":                  `invalid resource group/zone: "g:a..b"`,
		"azure :":                       `invalid resource group/zone: ":"`,
		"azure g:z g:z":                 `conflicting zone: "z"`,
		"azure g:z {\ntenant\n}":        "usage: tenant TENANT_ID",
		"azure g:z {\naccess foo\n}":    "invalid access value: can be public/private, found: foo",
		"azure g:z {\nenvironment x\n}": `cannot set azure environment: "autorest/azure: There is no cloud environment matching the name \"X\""`,
		"azure g:z {\nfoo\n}":           `unknown property: "foo"`,
	} {
		if err := setup(caddy.NewTestController("dns", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for _, name := range []string{"AZUREPUBLICCLOUD", "azurechinacloud", "AZUREUSGOVERNMENTCLOUD", "AZUREGERMANCLOUD"} {
		if c, err := cloudNamed(name); err != nil || c.ActiveDirectoryAuthorityHost == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv("AZURE_ENVIRONMENT_FILEPATH", "")
	if _, err := cloudNamed(stack); err == nil {
		t.Error("no error")
	}
}

func TestReadme(t *testing.T) {
	text, err := corefile.ReadmeSyntax("README.md")
	if err != nil || text != directive.Doc().Syntax {
		t.Errorf("%v: the README has\n%s\nwant\n%s", err, text, directive.Doc().Syntax)
	}
}

// A secret that has expired is told of in one line, at the start and later, and not with the whole reply.
func TestNoToken(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":"invalid_client","error_description":"AADSTS7000222: The secret is expired.\r\nTrace ID: 1"}`: ": invalid_client: AADSTS7000222: The secret is expired.; Trace ID: 1",
		"<html>\n<body>by the proxy": "",
	} {
		var s *httptest.Server
		s = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "openid-configuration") {
				fmt.Fprintf(w, `{"token_endpoint":"%[1]s/token","authorization_endpoint":"%[1]s/authorize","issuer":"%[1]s/t/v2.0"}`, s.URL)
				return
			}
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, body)
		}))
		t.Cleanup(s.Close)
		all := newSettings()
		all.transport, all.cloud, all.own = s.Client(), configuration(s.URL+"/", s.URL+"/", s.URL+"/"), true
		err := all.setup(caddy.NewTestController("dns", "azure g:example.org {\ntenant t\nclient c\nsecret x\nsubscription s\n}"))
		want = "plugin/azure: example.org. (g/example.org): listing record sets: no token from " + s.Listener.Addr().String() + ": HTTP status 401" + want
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// The API has values as they are; in the records of github.com/miekg/dns a backslash begins an escape.
func TestValueOfCAA(t *testing.T) {
	tag, value := "iodef", `a "b" \c`
	all := records(&armdns.RecordSetProperties{CaaRecords: []*armdns.CaaRecord{{Tag: &tag, Value: &value}}}, t.Logf)
	b := make([]byte, 64)
	n, err := dns.PackRR(all[0], b, 0, nil, false)
	if err != nil || !bytes.HasSuffix(b[:n], []byte(value)) {
		t.Errorf("%q, %v", b[:n], err)
	}
}

// A record without the name that it is about is left out: to the root it would say that there is no such service.
func TestNoTarget(t *testing.T) {
	owner, root, preference := "x.example.org.", ".", int32(0)
	var said []string
	all := records(&armdns.RecordSetProperties{
		Fqdn:       &owner,
		MxRecords:  []*armdns.MxRecord{{Preference: &preference}, nil, {Exchange: &root, Preference: &preference}},
		SrvRecords: []*armdns.SrvRecord{{}}, PtrRecords: []*armdns.PtrRecord{{}}, NsRecords: []*armdns.NsRecord{{}},
	}, func(format string, args ...any) { said = append(said, fmt.Sprintf(format, args...)) })
	if len(all) != 1 || all[0].(*dns.MX).Mx != "." {
		t.Errorf("got %v, want the one that says of itself that there is no mail", all)
	}
	if len(said) != 5 || said[0] != "Failed to process record set x.example.org.: a record names no target" {
		t.Errorf("said %q", said)
	}
}
