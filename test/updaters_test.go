package test

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/zone/zonetest"

	"github.com/miekg/dns"
)

// script runs a program for updates with commands, and returns what it says.
func script(t *testing.T, path, commands string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-v")
	cmd.Stdin = strings.NewReader(commands)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestUpdatePrograms: nsupdate and knsupdate, with each kind of prerequisite.
func TestUpdatePrograms(t *testing.T) {
	for name, debian := range map[string]string{"nsupdate": "bind9-dnsutils", "knsupdate": "knot-dnsutils"} {
		t.Run(name, func(t *testing.T) {
			path := zonetest.Program(t, name, debian)
			addr := dynamic(t, t.TempDir(), "", "")
			host, port, _ := net.SplitHostPort(addr)
			head := fmt.Sprintf("server %s %s\nkey hmac-sha256:%s %s\nzone example.org.\n", host, port, updateKey, updateSecret)
			for i, tc := range []struct{ commands, refused string }{
				{"prereq nxdomain new.example.org.\nupdate add new.example.org. 60 A 192.0.2.9\nupdate add new.example.org. 60 A 192.0.2.10\nsend\n", ""},
				{"prereq nxdomain new.example.org.\nupdate add new.example.org. 60 A 192.0.2.11\nsend\n", "YXDOMAIN"},
				{"prereq yxdomain nope.example.org.\nupdate delete new.example.org.\nsend\n", "NXDOMAIN"},
				{"prereq yxrrset new.example.org. AAAA\nupdate delete new.example.org.\nsend\n", "NXRRSET"},
				{"prereq nxrrset new.example.org. A\nupdate delete new.example.org.\nsend\n", "YXRRSET"},
				{"prereq yxrrset new.example.org. A 192.0.2.9\nupdate delete new.example.org.\nsend\n", "NXRRSET"},
				{"prereq yxrrset new.example.org. A 192.0.2.10\nprereq yxrrset new.example.org. A 192.0.2.9\nupdate delete new.example.org. A 192.0.2.9\nsend\n", ""},
				{"update delete www.example.org. A\nupdate add www.example.org. 60 TXT \"a b\"\nsend\n", ""},
			} {
				out, err := script(t, path, head+tc.commands)
				if tc.refused == "" && err != nil || tc.refused != "" && !strings.Contains(out, tc.refused) {
					t.Errorf("%d: %v: %s, want %q", i, err, out, tc.refused)
				}
			}
			for name, want := range map[string]string{"new.example.org. A": "192.0.2.10", "www.example.org. TXT": `"a b"`, "www.example.org. A": ""} {
				f := strings.Fields(name)
				reply := ask(t, "tcp", addr, question(f[0], dns.StringToType[f[1]]))
				got := ""
				for _, rr := range reply.Answer {
					got += strings.TrimPrefix(rr.String(), rr.Header().String())
				}
				if got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

// TestUpdatersOfTheField sends what DHCP servers, ACME clients and external-dns send.
func TestUpdatersOfTheField(t *testing.T) {
	addr := dynamic(t, t.TempDir(), "transfer {\nto *\n}", "")
	rr := func(text string) []dns.RR {
		r, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		return []dns.RR{r}
	}
	step := func(what string, want int, fill func(m *dns.Msg)) {
		t.Helper()
		m := new(dns.Msg).SetUpdate("example.org.")
		fill(m)
		if reply := sendUpdate(t, "udp", addr, m); reply.Rcode != want {
			t.Errorf("%s: %s", what, dns.RcodeToString[reply.Rcode])
		}
	}
	const host = "pc.example.org. 600 IN "
	id, other := rr(host+"DHCID AAIBY2/AuCccgoJbsaxcQc9TUapptP69lOjxfNuVAA2kjEA="), rr(host+"DHCID AAEBOSD+XR3Os/0LozeXVqcNc7FwCfQdWL3b/NaiUDlW2No=")
	// RFC 4703 §5.3: the name is free; it is taken; it is ours; it is somebody else's; it is given back.
	step("a new client", 0, func(m *dns.Msg) {
		m.NameNotUsed(rr(host + "A 192.0.2.1"))
		m.Insert(append(rr(host+"A 192.0.2.1"), id...))
	})
	step("the same name again", dns.RcodeYXDomain, func(m *dns.Msg) {
		m.NameNotUsed(rr(host + "A 192.0.2.1"))
		m.Insert(rr(host + "A 192.0.2.2"))
	})
	step("the same client, another address", 0, func(m *dns.Msg) {
		m.NameUsed(rr(host + "A 192.0.2.1"))
		m.Used(id)
		m.RemoveRRset(rr(host + "A 192.0.2.1"))
		m.Insert(rr(host + "A 192.0.2.2"))
	})
	step("another client", dns.RcodeNXRrset, func(m *dns.Msg) {
		m.NameUsed(rr(host + "A 192.0.2.1"))
		m.Used(other)
		m.Insert(rr(host + "A 192.0.2.3"))
	})
	step("the lease ends", 0, func(m *dns.Msg) {
		m.Used(id)
		m.Remove(rr(host + "A 192.0.2.2"))
	})
	step("and the name goes", 0, func(m *dns.Msg) {
		m.Used(id)
		m.RRsetNotUsed(rr(host + "A 192.0.2.2"))
		m.RRsetNotUsed(rr(host + "AAAA ::"))
		m.RemoveName(id)
	})
	// Two challenges of ACME (RFC 8555 §8.4) at one name, and their removal one by one.
	const challenge = "_acme-challenge.example.org. 120 IN TXT "
	for _, token := range []string{"one", "two"} {
		step("challenge", 0, func(m *dns.Msg) { m.Insert(rr(challenge + token)) })
	}
	if reply := ask(t, "udp", addr, question("_acme-challenge.example.org.", dns.TypeTXT)); reply == nil || len(reply.Answer) != 2 {
		t.Errorf("challenges: %v", reply)
	}
	for _, token := range []string{"one", "two"} {
		step("challenge done", 0, func(m *dns.Msg) { m.Remove(rr(challenge + token)) })
	}
	// external-dns: batches with TTL 0, records and their registry in TXT, then a list by transfer, then exact removal.
	var batch []dns.RR
	for i := range 25 {
		batch = append(batch, rr(fmt.Sprintf("app%d.example.org. 0 IN A 192.0.2.%d", i, i))...)
		batch = append(batch, rr(fmt.Sprintf(`a-app%d.example.org. 0 IN TXT "heritage=external-dns,external-dns/owner=me"`, i))...)
	}
	before, _ := fetched(t, addr, updateKey)
	step("external-dns adds", 0, func(m *dns.Msg) { m.Insert(batch) })
	lines, _ := fetched(t, addr, updateKey)
	if len(lines) != len(before)+50 || !strings.Contains(strings.Join(lines, "\n"), "app7.example.org. 0 in a 192.0.2.7") {
		t.Errorf("%d records of %d", len(lines), len(before))
	}
	step("external-dns removes", 0, func(m *dns.Msg) { m.Remove(batch) })
	if after, _ := fetched(t, addr, updateKey); len(after) != len(before) {
		t.Errorf("%d records are left over", len(after)-len(before))
	}
}
