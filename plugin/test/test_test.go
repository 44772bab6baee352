package test_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

func TestSortAndCheck(t *testing.T) {
	a1, a2 := "www.example.org. 5 IN A 192.0.2.1", "www.example.org. 5 IN A 192.0.2.2"
	for _, tc := range []struct {
		name      string
		got, want []dns.RR
		err       string
	}{
		{"same", rrs(a1, a2), rrs(a1, a2), ""},
		{"other order", rrs(a1, a2), rrs(a2, a1), ""},
		{"any TTL", rrs(a1), rrs("www.example.org. 303 IN A 192.0.2.1"), ""},
		{"any TTL of one", rrs(a1, "www.example.org. 7 IN AAAA 2001:db8::1"), rrs("www.example.org. 303 IN AAAA 2001:db8::1", a1), ""},
		{"other TTL", rrs(a1), rrs("www.example.org. 6 IN A 192.0.2.1"), "expected"},
		{"other address", rrs(a1), rrs(a2), "expected"},
		{"other owner", rrs(a1), rrs("WWW.example.org. 5 IN A 192.0.2.1"), "expected"},
		{"other type", rrs(a1), rrs("www.example.org. 5 IN TXT 192.0.2.1"), "expected"},
		{"other class", rrs(a1), rrs("www.example.org. 5 CH A 192.0.2.1"), "expected"},
		{"fewer", rrs(a1), rrs(a1, a2), "holds 1 records, expected 2"},
		{"other text", rrs(`www.example.org. 5 IN TXT "a" "b"`), rrs(`www.example.org. 5 IN TXT "a b"`), "expected"},
		{"serial", rrs("example.org. 5 IN SOA ns.example.org. host.example.org. 1 1 1 1 1"), rrs("example.org. 5 IN SOA ns.example.org. host.example.org. 2 1 1 1 1"), ""},
		{"primary", rrs("example.org. 5 IN SOA ns.example.org. host.example.org. 1 1 1 1 1"), rrs("example.org. 5 IN SOA ns2.example.org. host.example.org. 1 1 1 1 1"), "expected"},
		{"signature", rrs(sig("A 13 3", "example.org.", "b2s=")), rrs(sig("A 13 3", "example.org.", "bm8=")), ""},
		{"signer", rrs(sig("A 13 3", "example.org.", "b2s=")), rrs(sig("A 13 3", "example.net.", "b2s=")), "expected"},
		{"type covered", rrs(sig("A 13 3", "example.org.", "b2s=")), rrs(sig("MX 13 3", "example.org.", "b2s=")), "expected"},
		{"opt", []dns.RR{test.OPT(4096, true)}, []dns.RR{test.OPT(4096, true)}, ""},
		{"opt size", []dns.RR{test.OPT(4096, true)}, []dns.RR{test.OPT(1232, true)}, "expected"},
		{"opt do", []dns.RR{test.OPT(4096, true)}, []dns.RR{test.OPT(4096, false)}, "expected"},
	} {
		for section, c := range map[string]test.Case{"answer": {Answer: tc.want}, "authority": {Ns: tc.want}, "additional": {Extra: tc.want}} {
			m := new(dns.Msg)
			switch section {
			case "answer":
				m.Answer = append(m.Answer, tc.got...)
			case "authority":
				m.Ns = append(m.Ns, tc.got...)
			case "additional":
				m.Extra = append(m.Extra, tc.got...)
			}
			err := test.SortAndCheck(m, c)
			if (err == nil) != (tc.err == "") || err != nil && !(strings.Contains(err.Error(), tc.err) && strings.Contains(err.Error(), section)) {
				t.Errorf("%s, %s: got error %v, want %q", tc.name, section, err, tc.err)
			}
		}
	}
	if err := test.SortAndCheck(new(dns.Msg), test.Case{Rcode: dns.RcodeNameError}); err == nil || !strings.Contains(err.Error(), "NXDOMAIN") {
		t.Errorf("other rcode: got error %v", err)
	}
}

func TestSectionKeepsOrder(t *testing.T) {
	tc := test.Case{Answer: rrs("a.example.org. 5 IN A 192.0.2.1", "b.example.org. 5 IN A 192.0.2.1")}
	if err := test.Section(tc, test.Answer, tc.Answer); err != nil {
		t.Error(err)
	}
	if test.Section(tc, test.Answer, []dns.RR{tc.Answer[1], tc.Answer[0]}) == nil {
		t.Error("records in another order pass")
	}
	if test.Section(tc, test.Ns, tc.Answer) == nil {
		t.Error("records of another section pass")
	}
}

func TestCNAMEOrder(t *testing.T) {
	good := rrs("a.example.org. 5 IN CNAME b.example.org.", "b.example.org. 5 IN A 192.0.2.1")
	if err := test.CNAMEOrder(&dns.Msg{Answer: good}); err != nil {
		t.Error(err)
	}
	if test.CNAMEOrder(&dns.Msg{Answer: []dns.RR{good[1], good[0]}}) == nil {
		t.Error("a target before its alias passes")
	}
}

func TestCaseMsg(t *testing.T) {
	m := test.Case{Qname: "www.example.org", Qtype: dns.TypeMX}.Msg()
	if m.Question[0] != (dns.Question{Name: "www.example.org.", Qtype: dns.TypeMX, Qclass: dns.ClassINET}) || m.IsEdns0() != nil || !m.RecursionDesired {
		t.Errorf("got %v", m)
	}
	if o := (test.Case{Do: true}).Msg().IsEdns0(); o == nil || !o.Do() || o.UDPSize() != 4096 {
		t.Errorf("got OPT %v", o)
	}
}

func TestWriters(t *testing.T) {
	for _, tc := range []struct {
		w             dns.ResponseWriter
		remote, local string
		network       string
	}{
		{&test.ResponseWriter{}, "10.240.0.1:40212", "127.0.0.1:53", "udp"},
		{&test.ResponseWriter{TCP: true}, "10.240.0.1:40212", "127.0.0.1:53", "tcp"},
		{&test.ResponseWriter{RemoteIP: "fe80::1", Zone: "eth0"}, "[fe80::1%eth0]:40212", "127.0.0.1:53", "udp"},
		{&test.ResponseWriter6{}, "[fe80::42:ff:feca:4c65]:40212", "[::1]:53", "udp"},
		{&test.ResponseWriter6{ResponseWriter: test.ResponseWriter{TCP: true}}, "[fe80::42:ff:feca:4c65]:40212", "[::1]:53", "tcp"},
	} {
		if r := tc.w.RemoteAddr(); r.String() != tc.remote || r.Network() != tc.network {
			t.Errorf("remote %s %s, want %s %s", r.Network(), r, tc.network, tc.remote)
		}
		if l := tc.w.LocalAddr(); l.String() != tc.local || l.Network() != tc.network {
			t.Errorf("local %s, want %s", l, tc.local)
		}
	}
}

func TestHandlers(t *testing.T) {
	boom := errors.New("boom")
	if rc, err := test.NextHandler(3, boom).ServeDNS(t.Context(), nil, nil); rc != 3 || err != boom {
		t.Errorf("got %d, %v", rc, err)
	}
	w := &keeper{}
	rc, err := test.ErrorHandler().ServeDNS(t.Context(), w, test.Case{Qname: "example.org.", Qtype: dns.TypeA}.Msg())
	if rc != dns.RcodeServerFailure || err != nil || w.m == nil || w.m.Rcode != dns.RcodeServerFailure {
		t.Errorf("got %d, %v, reply %v", rc, err, w.m)
	}
}

type keeper struct {
	test.ResponseWriter
	m *dns.Msg
}

func (k *keeper) WriteMsg(m *dns.Msg) error { k.m = m; return nil }

func TestScrape(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`# HELP requests Some requests.
# TYPE requests counter
requests{server="a",zone="x."} 3
requests{server="b",zone="x."} 4
# TYPE size histogram
size_bucket{le="1"} 1
size_bucket{le="+Inf"} 2
size_sum 7
size_count 2
# TYPE wait summary
wait{quantile="0.5"} 0.25
wait_sum 1.5
wait_count 3
`))
	}))
	defer srv.Close()
	mfs := test.Scrape(srv.URL)
	if v, labels := test.MetricValue("requests", mfs); v != "3" || labels["server"] != "a" {
		t.Errorf("got %s %v", v, labels)
	}
	if v, labels := test.MetricValueLabel("requests", "b", mfs); v != "4" || labels["server"] != "b" {
		t.Errorf("got %s %v", v, labels)
	}
	if v, _ := test.MetricValue("size", mfs); v != "2" {
		t.Errorf("got %s", v)
	}
	if v, labels := test.MetricValue("nothing", mfs); v != "" || labels != nil {
		t.Errorf("got %s %v", v, labels)
	}
	shown := map[string]string{
		"size": `{"buckets":{"+Inf":"2","1":"1"},"count":"2","sum":"7"}`,
		"wait": `{"quantiles":{"0.5":"0.25"},"count":"3","sum":"1.5"}`,
	}
	for _, mf := range mfs {
		if want := shown[mf.Name]; want != "" {
			if got, err := json.Marshal(mf.Metrics[0]); err != nil || string(got) != want {
				t.Errorf("%s: got %s, %v", mf.Name, got, err)
			}
		}
	}
	if v := reflect.ValueOf(mfs[1].Metrics[0]).FieldByName("Buckets"); !v.IsValid() || v.Interface().(map[string]string)["+Inf"] != "2" {
		t.Errorf("%s has no field Buckets: %v", mfs[1].Name, mfs[1].Metrics[0])
	}
	addr := strings.TrimPrefix(srv.URL, "http://")
	for label, want := range map[string]int{"": 7, "x.": 7, "b": 4, "none": -1} {
		if got := test.ScrapeMetricAsInt(addr, "requests", label, -1); got != want {
			t.Errorf("label %q: %d, want %d", label, got, want)
		}
	}
	if test.Scrape("http://127.0.0.1:1/") != nil {
		t.Error("nothing there, but metrics")
	}
}

func TestFiles(t *testing.T) {
	name, remove, err := test.TempFile(t.TempDir(), "content")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(name); err != nil || string(b) != "content" {
		t.Errorf("got %q, %v", b, err)
	}
	remove()
	if _, err := os.Stat(name); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}

	dir, err := test.WritePEMFiles(t)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "127.0.0.1"}); err != nil {
		t.Error(err)
	}
}

// rrs is records of any type.
func rrs(texts ...string) (out []dns.RR) {
	for _, text := range texts {
		rr, err := dns.NewRR(text)
		if err != nil {
			panic(err)
		}
		out = append(out, rr)
	}
	return out
}

// sig is an RRSIG record.
func sig(covers, signer, signature string) string {
	return "www.example.org. 5 IN RRSIG " + covers + " 5 20300101000000 20200101000000 1 " + signer + " " + signature
}
