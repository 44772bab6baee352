package test

import (
	"encoding/hex"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"

	"github.com/miekg/dns"
)

// cookieOf is the cookie of a reply, in hexadecimal.
func cookieOf(t *testing.T, m *dns.Msg) string {
	t.Helper()
	for _, o := range m.IsEdns0().Option {
		if c, ok := o.(*dns.EDNS0_COOKIE); ok {
			return c.Cookie
		}
	}
	t.Fatalf("no cookie in\n%v", m)
	return ""
}

func askWithCookie(t *testing.T, addr, cookie string) *dns.Msg {
	t.Helper()
	m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	m.SetEdns0(1232, false)
	withCookie(m, cookie)
	reply, err := dns.Exchange(m, addr)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// A reload leaves cookies good: those of the process's secret, and those of a file, which is read again while nothing is reloaded.
func TestCookiesOutliveReload(t *testing.T) {
	quiet()
	file := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(file, []byte(cookieSecret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, directive := range []string{"", "cookie {\nrequire\n}\n", "cookie {\nrequire\nsecret_file " + file + "\n}\n"} {
		_, port, _ := net.SplitHostPort(loopback.Addr()) // free over UDP and TCP
		corefile := "example.org:" + port + " {\nbind 127.0.0.1\n" + directive + "template IN A {\nanswer \"{{ .Name }} 60 IN A 192.0.2.1\"\n}\n}"
		i, udp, _ := start(t, corefile)
		first := cookieOf(t, askWithCookie(t, udp, "3132333435363738"))
		next, err := i.Restart(NewInput(corefile))
		if err != nil {
			t.Fatal(err)
		}
		r := &running{instance: next}
		m := askWithCookie(t, udp, first)
		if m.Rcode != dns.RcodeSuccess || len(m.Answer) != 1 || cookieOf(t, m) != first {
			t.Errorf("%q: after the reload\n%v", directive, m)
		}
		r.end()
	}
}

// A hit of the cache costs nothing to allocate, with a cookie as without, whatever the directive says.
func TestCookiesAllocateNothing(t *testing.T) {
	quiet()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "db"), []byte(laneZone), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, directive := range []string{"", "throttle\ncookie {\nrequire\nsecret " + cookieSecret + "\n}\n"} {
		_, udp, _ := start(t, ".:0 {\nbind 127.0.0.1\nprometheus 127.0.0.1:0\n"+directive+"cache 3600\nfile "+filepath.Join(dir, "db")+" example.org\n}")
		good := cookieOf(t, askWithCookie(t, udp, "3132333435363738"))
		conn, err := net.Dial("udp", udp)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		m.SetEdns0(1232, false)
		withCookie(m, good)
		query, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := hex.DecodeString(good)
		reply := make([]byte, 4096)
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		exchange := func() {
			if _, err := conn.Write(query); err != nil {
				t.Fatal(err)
			}
			n, err := conn.Read(reply)
			if err != nil || n < 50 || string(reply[n-24:n]) != string(raw) {
				t.Fatalf("%v: %x", err, reply[:n])
			}
		}
		if n := testing.AllocsPerRun(5000, exchange); n != 0 {
			t.Errorf("%q: %v allocations", directive, n)
		}
	}
}
