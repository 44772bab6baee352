package secondary

import (
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/miekg/dns"
)

// TestLiteral: a Secondary that a program of others made serves and sends the zones of its File.
func TestLiteral(t *testing.T) {
	z, err := file.Parse(strings.NewReader("@ 60 SOA ns hostmaster 7 1 1 1 1\n@ 60 NS ns\nwww 60 A 192.0.2.1\n"), "example.org.", "text", -1)
	if err != nil {
		t.Fatal(err)
	}
	s := Secondary{File: file.File{Zones: file.Zones{Z: map[string]*file.Zone{"example.org.": z}, Names: []string{"example.org."}}}}
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if rcode, err := s.ServeDNS(t.Context(), rec, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)); rcode != dns.RcodeSuccess || err != nil || len(rec.Msg.Answer) != 1 {
		t.Errorf("%d, %v, %v", rcode, err, rec.Msg)
	}
	if _, err := s.Transfer("example.org.", 0); err != nil {
		t.Error(err)
	}
	if v, err := s.Version("example.org."); err != nil || v.Serial() != 7 {
		t.Error(v, err)
	}
	if _, err := (Secondary{}).Transfer("example.org.", 0); err != transfer.ErrNotAuthoritative {
		t.Error(err)
	}
	if rcode, _ := (Secondary{}).ServeDNS(t.Context(), rec, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)); rcode == dns.RcodeSuccess {
		t.Error("no zones, and no next plugin: NOERROR")
	}
}
