package route53

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/file/mirror"
	"github.com/coredns/coredns/plugin/file/mirror/mirrortest"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/test"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/route53"
	"github.com/aws/aws-sdk-go-v2/service/route53/types"
	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// provider speaks the API of Route 53: two pages a zone.
type provider struct {
	mu     sync.Mutex
	asked  []string
	signed []string // Authorization headers
	fail   int      // so many requests are refused for being too many
}

const set = `<ResourceRecordSet><Name>%s</Name><Type>%s</Type>%s</ResourceRecordSet>`

func values(ttl int, all ...string) string {
	var b strings.Builder
	for _, v := range all {
		fmt.Fprintf(&b, "<ResourceRecord><Value>%s</Value></ResourceRecord>", v)
	}
	return fmt.Sprintf("<TTL>%d</TTL><ResourceRecords>%s</ResourceRecords>", ttl, b.String())
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, r.URL.String())
	p.signed = append(p.signed, r.Header.Get("Authorization"))
	if p.fail > 0 {
		p.fail--
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `<ErrorResponse xmlns="https://route53.amazonaws.com/doc/2013-04-01/"><Error><Type>Sender</Type><Code>Throttling</Code><Message>Rate exceeded</Message></Error></ErrorResponse>`)
		return
	}
	const ns = ` xmlns="https://route53.amazonaws.com/doc/2013-04-01/"`
	switch {
	case r.URL.Path == "/2013-04-01/hostedzonesbyname":
		fmt.Fprintf(w, `<ListHostedZonesByNameResponse%s><HostedZones/><IsTruncated>false</IsTruncated><MaxItems>100</MaxItems></ListHostedZonesByNameResponse>`, ns)
	case r.URL.Path != "/2013-04-01/hostedzone/Z1/rrset":
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `<ErrorResponse%s><Error><Type>Sender</Type><Code>NoSuchHostedZone</Code><Message>none</Message></Error></ErrorResponse>`, ns)
	case r.FormValue("name") == "":
		fmt.Fprintf(w, `<ListResourceRecordSetsResponse%s><ResourceRecordSets>%s%s%s%s</ResourceRecordSets><IsTruncated>true</IsTruncated><NextRecordName>w.example.org.</NextRecordName><NextRecordType>A</NextRecordType><MaxItems>1000</MaxItems></ListResourceRecordSetsResponse>`, ns,
			fmt.Sprintf(set, "example.org.", "SOA", values(900, "ns1.example.net. host.example.net. 1 7200 900 1209600 86400")),
			fmt.Sprintf(set, "example.org.", "NS", values(900, "ns1.example.net.")),
			fmt.Sprintf(set, `\052.wild.example.org.`, "A", values(60, "192.0.2.7")),
			fmt.Sprintf(set, `a\137b.example.org.`, "TXT", values(60, `&quot;back\\slash&quot;`)))
	default:
		alias := `<AliasTarget><HostedZoneId>%s</HostedZoneId><DNSName>%s</DNSName><EvaluateTargetHealth>false</EvaluateTargetHealth></AliasTarget>`
		fmt.Fprintf(w, `<ListResourceRecordSetsResponse%s><ResourceRecordSets>%s%s%s%s%s%s</ResourceRecordSets><IsTruncated>false</IsTruncated><MaxItems>1000</MaxItems></ListResourceRecordSetsResponse>`, ns,
			fmt.Sprintf(set, "www.example.org.", "A", values(60, "192.0.2.1", "192.0.2.2")),
			fmt.Sprintf(set, "alias.example.org.", "A", fmt.Sprintf(alias, "Z1", "www.example.org.")),
			fmt.Sprintf(set, "balancer.example.org.", "A", fmt.Sprintf(alias, "Z35", "lb.example.net.")),
			fmt.Sprintf(set, "loop.example.org.", "A", fmt.Sprintf(alias, "Z1", "loop.example.org.")),
			fmt.Sprintf(set, "child.example.org.", "CNAME", values(60, "app.dyn.example.org")),
			fmt.Sprintf(set, "odd.example.org.", "A", values(60, "nonsense", "192.0.2.3")))
	}
}

// environment is that of an account of the test.
func environment(t *testing.T, p *provider) string {
	t.Helper()
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	for k, v := range map[string]string{
		"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": t.TempDir() + "/none", "AWS_SHARED_CREDENTIALS_FILE": t.TempDir() + "/none",
	} {
		t.Setenv(k, v)
	}
	return s.URL
}

func TestServer(t *testing.T) {
	p := &provider{fail: 1}
	url := environment(t, p)
	c := caddy.NewTestController("dns", "route53 Example.org:Z1 {\naws_endpoint "+url+"\nrefresh 1h\nfallthrough fall.example.org\n}")
	began := time.Now()
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	t.Logf("read in %v", time.Since(began))
	h := dnsserver.GetConfig(c).Plugin[0](test.NextHandler(dns.RcodeRefused, nil)).(*Route53)
	if !h.Ready() || h.Fall.Zones[0] != "fall.example.org." {
		t.Errorf("ready %v, %v", h.Ready(), h.Fall)
	}
	if n := len(p.asked); n != 4 { // one refused, one for the zone, two pages
		t.Errorf("asked %d times: %q", n, p.asked)
	}
	mirrortest.Answers(t, h, map[string]string{
		"www.example.org. A":        "NOERROR 192.0.2.1 192.0.2.2",
		"alias.example.org. A":      "NOERROR 192.0.2.1 192.0.2.2",
		"x.wild.example.org. A":     "NOERROR 192.0.2.7",
		"a_b.example.org. TXT":      `NOERROR "back\\slash"`,
		"odd.example.org. A":        "NOERROR 192.0.2.3",
		"balancer.example.org. TXT": "NOERROR",
		"loop.example.org. A":       "NXDOMAIN",
		"www.example.org. MX":       "NOERROR",
		"www.example.com. A":        "nothing",
		"x.fall.example.org. A":     "nothing",
	})
	mirrortest.Served(t, dnsserver.GetConfig(c), map[string]string{
		"www.example.org. A":      "NOERROR 192.0.2.1 192.0.2.2",
		"nope.example.org. A":     "NXDOMAIN",
		"balancer.example.org. A": "NOERROR 192.0.2.99",
		"child.example.org. A":    "NOERROR 192.0.2.42 app.dyn.example.org.",
		"child.example.org. AAAA": "NOERROR app.dyn.example.org.",
		"x.fall.example.org. A":   "SERVFAIL", // there is no next plugin
	}, []string{"www.example.org. A", "nope.example.org. A", "x.fall.example.org. A"})
}

// Requests are signed with the key of the directive, or that of its profile, and name the zone.
func TestCredentials(t *testing.T) {
	p := new(provider)
	url := environment(t, p)
	file := t.TempDir() + "/shared"
	if err := os.WriteFile(file, []byte("[profile me]\nregion = eu-west-1\n[me]\naws_access_key_id = of_profile\naws_secret_access_key = b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for option, want := range map[string]string{
		"": "Credential=a/", "aws_access_key of_directive b": "Credential=of_directive/", "credentials me " + file: "Credential=of_profile/",
	} {
		if strings.HasPrefix(option, "credentials") { // the environment goes before profiles
			t.Setenv("AWS_ACCESS_KEY_ID", "")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "")
		} else {
			t.Setenv("AWS_ACCESS_KEY_ID", "a")
			t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
		}
		p.signed = nil
		c := caddy.NewTestController("dns", "route53 example.org:Z1 {\naws_endpoint "+url+"\nrefresh 1h\n"+option+"\n}")
		if err := setup(c); err != nil {
			t.Errorf("%q: %v", option, err)
			continue
		}
		if len(p.signed) != 3 || slices.ContainsFunc(p.signed, func(s string) bool { return !strings.Contains(s, want) }) {
			t.Errorf("%q: %q", option, p.signed)
		}
	}
}

// silent is an API that never answers.
type silent struct{ api }

func (silent) ListHostedZonesByName(ctx context.Context, _ *route53.ListHostedZonesByNameInput, _ ...func(*route53.Options)) (*route53.ListHostedZonesByNameOutput, error) {
	if _, ok := ctx.Deadline(); !ok {
		return nil, nil // a test does not wait for the end of time
	}
	return nil, context.DeadlineExceeded
}

// An API that never answers does not hold the start up for ever, nor a reload.
func TestSilentAPI(t *testing.T) {
	if _, err := New(t.Context(), silent{}, map[string][]string{"example.org.": {"Z1"}}, time.Minute); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// patient is an API that notes how long it may take.
type patient struct {
	api
	ends []time.Time
}

func (p *patient) ListHostedZonesByName(ctx context.Context, _ *route53.ListHostedZonesByNameInput, _ ...func(*route53.Options)) (*route53.ListHostedZonesByNameOutput, error) {
	end, _ := ctx.Deadline()
	p.ends = append(p.ends, end)
	for !time.Now().After(end.Add(-firstTime)) { // the clock may be a coarse one
	}
	return nil, nil
}

// Of hundreds of zones each has its own time: AWS lets nobody ask more than five times a second.
func TestManyZones(t *testing.T) {
	p := new(patient)
	if _, err := New(t.Context(), p, map[string][]string{"example.org.": {"Z1", "Z2"}, "example.net.": {"Z3"}}, time.Minute); err != nil {
		t.Fatal(err)
	}
	if len(p.ends) != 3 || !p.ends[1].After(p.ends[0]) || !p.ends[2].After(p.ends[1]) {
		t.Errorf("the zones may be asked for until %v", p.ends)
	}
}

func TestStartFails(t *testing.T) {
	url := environment(t, new(provider))
	err := setup(caddy.NewTestController("dns", "route53 example.org:Z2 {\naws_access_key a b\naws_endpoint "+url+"\n}"))
	if err == nil || !strings.Contains(err.Error(), "failed to initialize route53 plugin: ") || !strings.Contains(err.Error(), "NoSuchHostedZone") {
		t.Error(err)
	}
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"route53 a..b:Z1":                               `invalid zone "a..b:Z1"`,
		"route53 :":                                     `invalid zone ":"`,
		"route53 example.org":                           `invalid zone "example.org"`,
		"route53 example.org:1 example.org.:1":          `conflict zone "example.org.:1"`,
		"route53 example.org:1 {\naws_access_key a\n}":  "invalid access key: '[a]'",
		"route53 example.org:1 {\ncredentials\n}":       "usage: credentials",
		"route53 example.org:1 {\ncredentials a b c\n}": "usage: credentials",
		"route53 example.org:1 {\nrefresh foo\n}":       "Unable to parse duration: ",
		"route53 example.org:1 {\nrefresh 0\n}":         `refresh interval must be greater than 0: "0"`,
		"route53 example.org:1 {\nrefresh -1m\n}":       "refresh interval must be greater than 0",
		"route53 example.org:1 {\naws_endpoint\n}":      "usage: aws_endpoint",
		"route53 example.org:1 {\nwat\n}":               `unknown property "wat"`,
		"route53 example.org:1 {\nupstream a\nwat\n}":   `unknown property "wat"`, // upstream is of old and does nothing
	} {
		if err := setup(caddy.NewTestController("dns", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Many weighted aliases that lead in a circle are no work for hours.
func TestCircleOfAliases(t *testing.T) {
	var sets []types.ResourceRecordSet
	for i := range 40 {
		for from, to := range map[string]string{"a.example.org.": "b.example.org.", "b.example.org.": "a.example.org."} {
			sets = append(sets, types.ResourceRecordSet{Name: aws.String(from), Type: types.RRTypeA, SetIdentifier: aws.String(fmt.Sprint(i)),
				AliasTarget: &types.AliasTarget{DNSName: aws.String(to), HostedZoneId: aws.String("Z1")}})
		}
	}
	warnings := 0
	l := listing{id: "Z1", warn: func(string, ...any) { warnings++ }}
	l.add(sets)
	if all := l.all(); len(all) > 0 || warnings == 0 {
		t.Errorf("%d records, %d warnings", len(all), warnings)
	}
}

func TestName(t *testing.T) {
	for text, want := range map[string]string{
		"www.example.org": "www.example.org.", `\052.a.`: "*.a.", `a\137b.`: "a_b.", `a\040b.`: `a\032b.`, `a\056b.`: `a\046b.`, `a\9.`: `a\9.`, `\05`: `\05.`,
	} {
		if got := name(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// Octets in texts are octal, as in names, where master files have them decimal.
func TestTexts(t *testing.T) {
	for text, want := range map[string]string{
		`"\344\052" "\040"`: "\xe4*| ", `"a\\052 \"q\" \9"`: `a\052 "q" 9`, `"052"`: "052", `"\377"`: "\xff",
	} {
		all := recordsOf("a.", types.ResourceRecordSet{Type: types.RRTypeTxt, ResourceRecords: []types.ResourceRecord{{Value: aws.String(text)}}}, t.Logf)
		if len(all) != 1 {
			t.Errorf("%s: no record", text)
			continue
		}
		b := make([]byte, dns.Len(all[0])+10)
		n, err := dns.PackRR(all[0], b, 0, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for data := b[len("\x01a\x00")+10 : n]; len(data) > 0; data = data[1+data[0]:] {
			got = append(got, string(data[1:1+data[0]]))
		}
		if s := strings.Join(got, "|"); s != want {
			t.Errorf("%s: %q, want %q", text, s, want)
		}
	}
	if got := value(types.RRTypeCname, `a\052.`); got != `a\052.` {
		t.Error(got)
	}
}

func TestReadme(t *testing.T) {
	text, err := corefile.ReadmeSyntax("README.md")
	if err != nil || text != directive.Doc().Syntax {
		t.Errorf("%v: the README has\n%s\nwant\n%s", err, text, directive.Doc().Syntax)
	}
}

// A page that something on the way made, or cut, is not the end of the list: the zone stays as it was.
func TestPagesThatAreNone(t *testing.T) {
	const ns = ` xmlns="https://route53.amazonaws.com/doc/2013-04-01/"`
	first := fmt.Sprintf(`<ListResourceRecordSetsResponse%s><ResourceRecordSets>%s</ResourceRecordSets><IsTruncated>true</IsTruncated><NextRecordName>w.example.org.</NextRecordName><NextRecordType>A</NextRecordType><MaxItems>1000</MaxItems></ListResourceRecordSetsResponse>`, ns,
		fmt.Sprintf(set, "example.org.", "SOA", values(900, "ns1.example.net. host.example.net. 1 7200 900 1209600 86400")))
	for _, page := range []string{
		"", " \n", "<html><body>Please log in</body></html>", "{}",
		fmt.Sprintf(`<ListResourceRecordSetsResponse%s><ResourceRecordSets></ResourceRecordSets>`, ns),
		fmt.Sprintf(`<ListResourceRecordSetsResponse%s></ListResourceRecordSetsResponse>`, ns),
		first, // which leads to itself
		strings.Replace(first, ">w.", ">BACK.", 1),
	} {
		asked := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked++; r.FormValue("name") == "" {
				fmt.Fprint(w, first)
				return
			}
			back := "w"
			if strings.HasPrefix(r.FormValue("name"), "w.") {
				back = "v"
			}
			next := strings.Replace(page, "BACK", back, 1)
			if asked > 100 {
				next = strings.Replace(next, "true", "false", 1)
			}
			fmt.Fprint(w, next)
		}))
		t.Cleanup(s.Close)
		environment(t, new(provider))
		c, err := (&settings{endpoint: s.URL}).client(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if all, err := fetch(t.Context(), c, mirror.Hosted{Zone: "example.org.", ID: "Z1"}, t.Logf); err == nil {
			t.Errorf("%q: %d records", page, len(all))
		}
	}
}

// What the SDK logs is a line of the server's log.
func TestLinesOfTheSDK(t *testing.T) {
	environment(t, new(provider))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(s.Close)
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", s.URL)
	out := logtest.Capture(t)
	if _, err := new(settings).client(t.Context()); err == nil {
		t.Error("there is a region")
	}
	if want := "[WARNING] plugin/route53: falling back to IMDSv1"; !strings.Contains(out.String(), want) {
		t.Errorf("logged %q, want %q", out.String(), want)
	}
}

// Many sets of one name that lead to many of another one, and those further on, are many millions of ways: each target
// counts once.
func TestManyWaysOfAliases(t *testing.T) {
	l := listing{id: "Z1", warn: t.Logf}
	const weights, names = 30, 6
	for at := range names {
		var sets []types.ResourceRecordSet
		for w := range weights {
			s := types.ResourceRecordSet{Name: aws.String(fmt.Sprintf("N%d.example.org.", at)), Type: types.RRTypeA, SetIdentifier: aws.String(fmt.Sprint(w)), TTL: aws.Int64(60)}
			if at == names-1 {
				s.ResourceRecords = []types.ResourceRecord{{Value: aws.String(fmt.Sprintf("192.0.2.%d", w))}}
			} else {
				s.AliasTarget = &types.AliasTarget{DNSName: aws.String(fmt.Sprintf("n%d.example.org.", at+1)), HostedZoneId: aws.String("Z1")}
			}
			sets = append(sets, s)
		}
		l.add(sets)
	}
	owners := map[string]map[string]bool{}
	all := l.all()
	for _, rr := range all {
		owner := rr.Header().Name
		if owners[owner] == nil {
			owners[owner] = map[string]bool{}
		}
		owners[owner][rr.(*dns.A).A.String()] = true
	}
	for at := range names {
		if n := len(owners[fmt.Sprintf("N%d.example.org.", at)]); n != weights {
			t.Errorf("name %d has %d addresses, want %d", at, n, weights)
		}
	}
	if most := weights * weights * names; len(all) > most {
		t.Errorf("%d records, want %d at most", len(all), most)
	}
}
