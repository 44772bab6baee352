package test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// corpZone has aliases to names of dyn.corp.test, of which it has nothing: that is for others to serve.
const corpZone = `$ORIGIN corp.test.
$TTL 300
@	IN SOA ns hostmaster 1 7200 3600 1209600 60
@	IN NS ns
ns	IN A 192.0.2.1
app	IN CNAME app.dyn
chain	IN CNAME app
*.wild	IN CNAME app.dyn
d	IN DNAME dyn
gone	IN CNAME gone.dyn
text	IN CNAME text.dyn
lost	IN CNAME missing
ping	IN CNAME ping.dyn
host	IN A 192.0.2.7
*.any	IN A 192.0.2.8
star	IN CNAME x.any
`

// dynZone is the child. Its apex has another minimum, so that its SOA record is known by its TTL.
const dynZone = `$ORIGIN dyn.corp.test.
$TTL 100
@	IN SOA ns hostmaster 2 7200 3600 1209600 40
@	IN NS ns
ns	IN A 192.0.2.2
app	IN A 192.0.2.42
text	IN TXT x
ping	IN CNAME ping.corp.test.
`

// aliasWorld is a folder with both zones, one file each, and folders of one zone for auto.
func aliasWorld(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{"db.corp": corpZone, "db.dyn": dynZone, "corp/db.corp.test": corpZone, "dyn/db.dyn.corp.test": dynZone} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// bothLanes runs f with the wire lane and without it.
func bothLanes(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	old := dnsserver.WireLane
	defer func() { dnsserver.WireLane = old }()
	for _, on := range []bool{true, false} {
		dnsserver.WireLane = on
		t.Run(fmt.Sprintf("wire=%t", on), f)
	}
}

// brief is a reply as "RCODE aa | answers | authority", sorted, with owner, TTL and type of SOA records alone.
func brief(m *dns.Msg) string {
	if m == nil {
		return "nothing"
	}
	section := func(rrs []dns.RR) string {
		var all []string
		for _, rr := range rrs {
			text := strings.Join(strings.Fields(rr.String()), " ")
			if soa, ok := rr.(*dns.SOA); ok {
				text = fmt.Sprintf("%s %d SOA", soa.Hdr.Name, soa.Hdr.Ttl)
			}
			all = append(all, strings.Replace(text, " IN ", " ", 1))
		}
		slices.Sort(all)
		return strings.Join(all, "; ")
	}
	out := dns.RcodeToString[m.Rcode]
	if m.Authoritative {
		out += " aa"
	}
	return out + " | " + section(m.Answer) + " | " + section(m.Ns)
}

// sources is lines that serve corpZone, by who does. FALL may be fallthrough.
func sources(t *testing.T, dir string) map[string]string {
	t.Helper()
	_, _, primary := start(t, "corp.test:0 {\nbind 127.0.0.1\nfile "+dir+"/db.corp\ntransfer {\nto *\n}\n}")
	awsAccount(t, dir)
	return map[string]string{
		"file":      "file " + dir + "/db.corp corp.test {\nFALL\n}",
		"auto":      "auto corp.test {\ndirectory " + dir + "/corp\nFALL\n}",
		"secondary": "secondary corp.test {\ntransfer from " + primary + "\nFALL\n}",
		"route53":   "route53 corp.test.:Z1 {\naws_endpoint " + route53API(t, corpZone) + "\nFALL\n}",
		"clouddns":  "clouddns corp.test.:p:z {\ncredentials none\nendpoint " + cloudDNSAPI(t, corpZone) + "\nFALL\n}",
	}
}

// awsAccount sets the environment of somebody who has an account of AWS. dir has nothing of it.
func awsAccount(t *testing.T, dir string) {
	t.Helper()
	for name, value := range map[string]string{"AWS_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": dir + "/none", "AWS_SHARED_CREDENTIALS_FILE": dir + "/none"} {
		t.Setenv(name, value)
	}
}

// recordsOf is the records of a zone file, by owner and type.
func recordsOf(t *testing.T, text string) (sets map[[2]string][]dns.RR, keys [][2]string) {
	t.Helper()
	sets = map[[2]string][]dns.RR{}
	zp := dns.NewZoneParser(strings.NewReader(text), "", "")
	for rr, ok := zp.Next(); ok; rr, ok = zp.Next() {
		k := [2]string{rr.Header().Name, dns.TypeToString[rr.Header().Rrtype]}
		if sets[k] == nil {
			keys = append(keys, k)
		}
		sets[k] = append(sets[k], rr)
	}
	if err := zp.Err(); err != nil {
		t.Fatal(err)
	}
	return sets, keys
}

func dataOf(rr dns.RR) string { return strings.TrimPrefix(rr.String(), rr.Header().String()) }

// route53API speaks that of Route 53, with one zone.
func route53API(t *testing.T, zone string) string {
	t.Helper()
	return changingRoute53API(t, func() string { return zone })
}

// changingRoute53API is route53API with a zone that may be another one each time.
func changingRoute53API(t *testing.T, zone func() string) string {
	t.Helper()
	const ns = ` xmlns="https://route53.amazonaws.com/doc/2013-04-01/"`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/2013-04-01/hostedzonesbyname" {
			fmt.Fprintf(w, `<ListHostedZonesByNameResponse%s><HostedZones/><IsTruncated>false</IsTruncated><MaxItems>100</MaxItems></ListHostedZonesByNameResponse>`, ns)
			return
		}
		var b strings.Builder
		sets, keys := recordsOf(t, zone())
		for _, k := range keys {
			fmt.Fprintf(&b, "<ResourceRecordSet><Name>%s</Name><Type>%s</Type><TTL>%d</TTL><ResourceRecords>", strings.Replace(k[0], "*", `\052`, 1), k[1], sets[k][0].Header().Ttl)
			for _, rr := range sets[k] {
				fmt.Fprintf(&b, "<ResourceRecord><Value>%s</Value></ResourceRecord>", dataOf(rr))
			}
			b.WriteString("</ResourceRecords></ResourceRecordSet>")
		}
		fmt.Fprintf(w, `<ListResourceRecordSetsResponse%s><ResourceRecordSets>%s</ResourceRecordSets><IsTruncated>false</IsTruncated><MaxItems>1000</MaxItems></ListResourceRecordSetsResponse>`, ns, b.String())
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// cloudDNSAPI speaks that of Cloud DNS, with one zone.
func cloudDNSAPI(t *testing.T, zone string) string {
	t.Helper()
	var all []string
	sets, keys := recordsOf(t, zone)
	for _, k := range keys {
		var data []string
		for _, rr := range sets[k] {
			data = append(data, fmt.Sprintf("%q", dataOf(rr)))
		}
		all = append(all, fmt.Sprintf(`{"name":%q,"type":%q,"ttl":%d,"rrdatas":[%s]}`, k[0], k[1], sets[k][0].Header().Ttl, strings.Join(data, ",")))
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasSuffix(r.URL.Path, "/rrsets") {
			fmt.Fprint(w, `{"name":"z","dnsName":"corp.test."}`)
			return
		}
		fmt.Fprintf(w, `{"rrsets":[%s]}`, strings.Join(all, ","))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// served waits until a zone is answered for: secondary zones come after the start.
func served(t *testing.T, addr, name string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if m := ask(t, "udp", addr, question(name, dns.TypeSOA)); m != nil && m.Rcode == dns.RcodeSuccess {
			return
		}
	}
	t.Fatalf("in vain waited for %s", name)
}

// An alias to a name that its own zone does not have is answered with what others of the server have there, whoever
// serves the zone and whoever has the name.
func TestAliasIntoAChild(t *testing.T) {
	dir := aliasWorld(t)
	upstream := loopback.Addr() // over both networks
	_, port, _ := net.SplitHostPort(upstream)
	start(t, ".:"+port+" {\nbind 127.0.0.1\nfile "+dir+"/db.dyn dyn.corp.test\n}")
	const head = "{\nbind 127.0.0.1\nlanespy\n"
	const hosts = "hosts {\n192.0.2.42 app.dyn.corp.test\nfallthrough\n}"
	const template = "template IN A dyn.corp.test {\nmatch ^app[.]\nanswer \"{{ .Name }} 100 IN A 192.0.2.42\"\nfallthrough\n}"
	targets := map[string]struct{ same, other string }{ // what stands in the same block, and another block
		"file elsewhere":    {"", "dyn.corp.test:0 " + head + "file " + dir + "/db.dyn\n}"},
		"forward elsewhere": {"", "dyn.corp.test:0 " + head + "forward . " + upstream + "\n}"},
		"cache and forward": {"", "dyn.corp.test:0 " + head + "cache\nforward . " + upstream + "\n}"},
		"file here":         {"file " + dir + "/db.dyn dyn.corp.test", ""},
		"auto here":         {"auto dyn.corp.test {\ndirectory " + dir + "/dyn\n}", ""},
		"hosts here":        {hosts, ""},
		"template here":     {template, ""},
		"rewrite here":      {"rewrite name exact app.dyn.corp.test answer.corp.test\nhosts {\n192.0.2.42 answer.corp.test\nfallthrough\n}", ""},
	}
	queries := map[string][]string{
		"app.corp.test.":    {"app.corp.test. 300 CNAME app.dyn.corp.test."},
		"chain.corp.test.":  {"app.corp.test. 300 CNAME app.dyn.corp.test.", "chain.corp.test. 300 CNAME app.corp.test."},
		"x.wild.corp.test.": {"x.wild.corp.test. 300 CNAME app.dyn.corp.test."},
		"app.d.corp.test.":  {"app.d.corp.test. 300 CNAME app.dyn.corp.test.", "d.corp.test. 300 DNAME dyn.corp.test."},
	}
	for source, lines := range sources(t, dir) {
		for target, where := range targets {
			t.Run(source+", "+target, func(t *testing.T) {
				fall := "" // plugins that come later in the chain get what earlier ones pass on
				if target == "auto here" || target == "file here" {
					fall = "fallthrough"
				}
				bothLanes(t, func(t *testing.T) {
					_, udp, tcp := start(t, ".:0 "+head+strings.ReplaceAll(lines, "FALL", fall)+"\n"+where.same+"\n}\n"+where.other)
					served(t, udp, "corp.test.")
					for name, aliases := range queries {
						for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
							got := brief(ask(t, network, addr, question(name, dns.TypeA)))
							if !same(got, aliases) {
								t.Errorf("%s over %s: %s", name, network, got)
							}
						}
					}
				})
			})
		}
	}
}

// same reports whether a reply has the aliases and the address behind them, and the NS records of the zone that was
// asked.
func same(got string, aliases []string) bool {
	for _, ttl := range []string{"100", "3600"} { // of the zone, and of hosts
		want := append(slices.Clone(aliases), "app.dyn.corp.test. "+ttl+" A 192.0.2.42")
		slices.Sort(want)
		if got == "NOERROR aa | "+strings.Join(want, "; ")+" | corp.test. 300 NS ns.corp.test." {
			return true
		}
	}
	return false
}
