package program

import (
	"net"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// An operator sees at which servers a query would begin, and what is known of them.
func TestControlRecurse(t *testing.T) {
	up, _ := upstream(t)
	host, _, _ := net.SplitHostPort(up)
	s := serve(t, ".:PORT {\nbind 127.0.0.1\ncontrol ctl.sock\nrecurse {\nstub example.org "+up+"\n}\n}\n")
	zone := func(name string) []string {
		return strings.Split(strings.TrimSpace(s.must("recurse", "zone", name)), "\n")
	}
	if got := zone("www.example.org"); len(got) != 3 || got[0] != "zone example.org., from stub" || !strings.HasPrefix(got[2], up+" ") || !strings.Contains(got[2], " unknown ") {
		t.Errorf("before it was asked:\n%s", strings.Join(got, "\n"))
	}
	if _, errs, status := s.ctl("recurse", "server", host); status == 0 || !strings.Contains(errs, "nothing is known") {
		t.Errorf("status %d, %q", status, errs)
	}
	if r := s.ask("udp", "www.example.org.", dns.TypeA); len(r.Answer) != 1 {
		t.Fatalf("got %v", r)
	}
	if got := zone("www.example.org"); len(got) != 3 || !strings.Contains(got[2], " alive ") || !strings.Contains(got[2], "ms ") {
		t.Errorf("after it was asked:\n%s", strings.Join(got, "\n"))
	}
	if got := s.must("recurse", "server", host); !strings.Contains(got, up+" ") || !strings.Contains(got, " alive ") {
		t.Errorf("the server is\n%s", got)
	}
	if got := zone("www.example.net"); got[0] != "zone ., from hints" || len(got) < 15 || !strings.Contains(strings.Join(got, "\n"), "a.root-servers.net.") {
		t.Errorf("the root is\n%s", strings.Join(got, "\n"))
	}
	for _, wrong := range [][]string{{"recurse"}, {"recurse", "zone"}, {"recurse", "zone", "a..b"}, {"recurse", "server"}, {"recurse", "server", "a"}, {"recurse", "x"}} {
		if _, errs, status := s.ctl(wrong...); status == 0 || errs == "" {
			t.Errorf("ctl %v: status %d, %q", wrong, status, errs)
		}
	}
}
