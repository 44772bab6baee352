package program

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

const updateSecret = "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="

// update sends an UPDATE that adds a record, signed by the key k., and is the reply's code.
func (s *server) update(record string) string {
	s.t.Helper()
	rr, err := dns.NewRR(record)
	if err != nil {
		s.t.Fatal(err)
	}
	m := new(dns.Msg).SetUpdate("example.org.")
	m.Insert([]dns.RR{rr})
	m.SetTsig("k.", dns.HmacSHA256, 300, time.Now().Unix())
	c := dns.Client{Timeout: 5 * time.Second, TsigSecret: map[string]string{"k.": updateSecret}}
	reply, _, err := c.Exchange(m, s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	return dns.RcodeToString[reply.Rcode]
}

// A frozen zone refuses updates, and is served; what is exported is the zone as it is.
func TestControlZone(t *testing.T) {
	dir := t.TempDir()
	seed := filepath.Join(dir, "db.example.org")
	write(t, seed, "$ORIGIN example.org.\n@ 60 SOA ns hostmaster 7 7200 3600 1209600 60\n@ 60 NS ns\nns 60 A 192.0.2.53\n")
	s := serve(t, `example.org:PORT {
		bind 127.0.0.1
		control ctl.sock
		tsig {
			secret k. `+updateSecret+`
		}
		dynupdate {
			file `+seed+`
			allow k. * *
		}
	}
	fixed.example:PORT {
		bind 127.0.0.1
		file `+seed+` fixed.example
	}`)
	for _, step := range []struct{ ctl, record, rcode, state string }{
		{"", "a.example.org. 60 A 192.0.2.1", "NOERROR", "ok 8"},
		{"freeze", "b.example.org. 60 A 192.0.2.1", "REFUSED", "frozen 8"},
		{"thaw", "c.example.org. 60 A 192.0.2.1", "NOERROR", "ok 9"},
	} {
		if step.ctl != "" {
			s.must("zone", step.ctl, "Example.org")
		}
		if rcode := s.update(step.record); rcode != step.rcode {
			t.Errorf("after %q: %s, want %s", step.ctl, rcode, step.rcode)
		}
		if m := s.ask("udp", "a.example.org.", dns.TypeA); len(m.Answer) != 1 {
			t.Errorf("after %q the zone is not served: %v", step.ctl, m)
		}
		if out := strings.Join(strings.Fields(s.must("zones", "example.org")), " "); !strings.Contains(out, "example.org. dynupdate "+step.state) {
			t.Errorf("after %q the zone is %q, want %q", step.ctl, out, step.state)
		}
	}
	var got []string
	p := dns.NewZoneParser(strings.NewReader(s.must("zone", "export", "example.org")), "", "")
	for rr, ok := p.Next(); ok; rr, ok = p.Next() {
		got = append(got, strings.Join(strings.Fields(rr.String()), " "))
	}
	want := "example.org. 60 IN SOA ns.example.org. hostmaster.example.org. 9 7200 3600 1209600 60\n" +
		"example.org. 60 IN NS ns.example.org.\na.example.org. 60 IN A 192.0.2.1\nc.example.org. 60 IN A 192.0.2.1\nns.example.org. 60 IN A 192.0.2.53"
	if err := p.Err(); err != nil || strings.Join(got, "\n") != want {
		t.Errorf("exported is (%v)\n%s\nwant\n%s", err, strings.Join(got, "\n"), want)
	}
	if out := s.must("zone", "export", "fixed.example"); !strings.HasPrefix(out, "fixed.example.\t60\tIN\tSOA\tns.example.org.") {
		t.Errorf("the zone of file is exported as\n%s", out)
	}
	for _, tc := range [][2]string{{"freeze fixed.example", "no zone fixed.example. that clients may change"}, {"export nope.example", "no zone nope.example."},
		{"freeze", "the zone is missing"}, {"freeze a..b", "name must be a zone"}, {"thaw a b", "too many arguments: b"}} {
		if _, errs, status := s.ctl(append([]string{"zone"}, strings.Fields(tc[0])...)...); status == 0 || !strings.Contains(errs, tc[1]) {
			t.Errorf("zone %s: status %d, %q", tc[0], status, errs)
		}
	}
}
