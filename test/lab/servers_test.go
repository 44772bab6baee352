package lab

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/resolver/clock"

	"github.com/miekg/dns"
)

// A resolver begins though most of the hints are dead, and says nothing of it while one is not (R1).
func TestDeadHints(t *testing.T) {
	l, _ := start(t, 1, 3, "")
	hints := filepath.Join(t.TempDir(), "hints")
	text := "a.root.lab. 86400 IN A 127.9.0.1\n. 86400 IN NS a.root.lab.\n"
	for i := range 6 {
		text += fmt.Sprintf(". 86400 IN NS dead%d.lab.\ndead%d.lab. 86400 IN A 127.9.254.%d\n", i, i, i+1)
	}
	if err := os.WriteFile(hints, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	log := logtest.Capture(t)
	ours := serve(t, 0, fmt.Sprintf(" recurse {\n  hints %s\n  authority_port %d\n  allow_servers 127.0.0.0/8\n  family ipv4\n }", hints, l.Port))
	for _, q := range l.Questions {
		if q.Fault != None {
			continue
		}
		if a, err := Ask(ours, q.Name, q.Type); err != nil || a.Rcode != q.Rcode || a.Addr != q.Addr {
			t.Errorf("%s %d: %v %v, want %d %s", q.Name, q.Type, a, err, q.Rcode, q.Addr)
		}
	}
	if log.Has("priming") {
		t.Errorf("logged %s", log)
	}
}

// oddity is a server of a zone with a habit, which keeps how it was asked.
type oddity struct {
	mu    sync.Mutex
	habit func(q *dns.Msg, tcp bool) []*dns.Msg
	asked []string
}

func (o *oddity) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	_, tcp := w.RemoteAddr().(*net.TCPAddr)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, map[bool]string{true: "tcp", false: "udp"}[tcp])
	for _, m := range o.habit(q, tcp) {
		_ = w.WriteMsg(m)
	}
}

// how is how it was asked since the last call.
func (o *oddity) how() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := strings.Join(o.asked, " ")
	o.asked = nil
	return all
}

func good(q *dns.Msg, cookie func(client string) string) *dns.Msg {
	m := new(dns.Msg).SetReply(q)
	m.Authoritative = true
	m.Answer = append(m.Answer, record(q.Question[0].Name+" 300 IN A 192.0.2.1"))
	m.SetEdns0(1232, true)
	if client := clientCookie(q); client != "" && cookie != nil {
		m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: cookie(client)})
	}
	return m
}

func clientCookie(q *dns.Msg) string {
	for _, o := range q.IsEdns0().Option {
		if c, ok := o.(*dns.EDNS0_COOKIE); ok {
			return c.Cookie[:16]
		}
	}
	return ""
}

const serverCookie = "00112233445566778899aabbccddeeff"

// Servers that fold letters, that want a cookie first, or take none, or whose replies have a wrong one (R15, R16), and one
// that never sees a query with a cookie.
func TestOddServers(t *testing.T) {
	right := func(client string) string { return client + serverCookie }
	for what, c := range map[string]struct {
		habit       func(q *dns.Msg, tcp bool) []*dns.Msg
		first, then string // how the first name is asked for, and a later one
	}{
		"folds letters": {func(q *dns.Msg, tcp bool) []*dns.Msg {
			if !tcp {
				q.Question[0].Name = strings.ToLower(q.Question[0].Name)
			}
			return []*dns.Msg{good(q, right)}
		}, "udp tcp", "udp"},
		"wants a cookie": {func(q *dns.Msg, _ bool) []*dns.Msg {
			m := good(q, right)
			if o := q.IsEdns0(); !strings.Contains(o.String(), serverCookie) {
				m.Rcode, m.Answer = dns.RcodeBadCookie, nil
			}
			return []*dns.Msg{m}
		}, "udp udp", "udp"},
		"wrong cookie before the right one": {func(q *dns.Msg, _ bool) []*dns.Msg {
			bad := good(q, func(string) string { return strings.Repeat("5", 16) + serverCookie })
			bad.Answer[0].(*dns.A).A = net.IPv4(203, 0, 113, 66)
			return []*dns.Msg{bad, good(q, right)}
		}, "udp", "udp"},
		"has a wrong cookie": {func(q *dns.Msg, _ bool) []*dns.Msg {
			return []*dns.Msg{good(q, func(string) string { return strings.Repeat("5", 16) + serverCookie })}
		}, "udp tcp", "udp"},
		"is behind a firewall that drops options": {func(q *dns.Msg, _ bool) []*dns.Msg {
			if len(q.IsEdns0().Option) > 0 {
				return nil
			}
			return []*dns.Msg{good(q, nil)}
		}, "udp udp", "udp"},
		"trips over options": {func(q *dns.Msg, _ bool) []*dns.Msg {
			if len(q.IsEdns0().Option) == 0 {
				m := new(dns.Msg).SetReply(q)
				m.Authoritative = true
				m.SetEdns0(1232, true)
				m.Answer = append(m.Answer, record(q.Question[0].Name+" 60 IN A 192.0.2.1"))
				return []*dns.Msg{m}
			}
			m := new(dns.Msg).SetRcode(q, dns.RcodeFormatError)
			m.SetEdns0(1232, true)
			return []*dns.Msg{m}
		}, "udp udp", "udp"},
	} {
		t.Run(what, func(t *testing.T) {
			o := &oddity{habit: c.habit}
			ours := serve(t, 0, fmt.Sprintf(" recurse {\n  stub odd %s\n  qname_minimisation off\n  allow_servers 127.0.0.0/8\n }", both(t, o)))
			for i, want := range []string{c.first, c.then} {
				a, err := Ask(ours, fmt.Sprintf("name%d-with-letters.odd.", i), dns.TypeA)
				if how := o.how(); err != nil || a.Addr != "192.0.2.1" || how != want {
					t.Errorf("name %d: %v %v after %s, want %s", i, a, err, how, want)
				}
			}
		})
	}
}

// clockFile is the file that moves the clock of this test's servers, by the seconds in it. It belongs before namespaced.
func clockFile(t *testing.T) string {
	t.Helper()
	if os.Getenv(inside) != "" {
		return os.Getenv(clock.Variable)
	}
	file := filepath.Join(t.TempDir(), "clock")
	if err := os.WriteFile(file, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(clock.Variable, file)
	return file
}

// What was secure and is kept is not served stale when its signatures are over and what comes anew is bogus (R47).
func TestBogusIsNeverStale(t *testing.T) {
	file := clockFile(t)
	if !namespaced(t, "named", "dnssec-signzone", "dnssec-keygen", "dnssec-dsfromkey") {
		return
	}
	l := buildSigned(t, chosen(t, "expired"))
	l.authorities(t)
	name := "www." + l.zoneOf(t, "", "")
	for i, mode := range []string{"verify", "verify 3s", "rfc8767", "immediate"} {
		// What is asked before must not be in the stores, which blocks of equal text share.
		ours := serve(t, 5401+i, fmt.Sprintf(" cache {\n  serve_stale 2000h %s\n }\n", mode)+l.validator("")+l.recurse(fmt.Sprint("max_ttl ", 1000+i)))
		move := func(days int) {
			t.Helper()
			if err := os.WriteFile(file, []byte(fmt.Sprint(days*86400)), 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(1100 * time.Millisecond) // it is read once a second
		}
		move(0)
		awaitSigned(t, l, ours)
		want := []string{"NOERROR 1", "NOERROR 1", "SERVFAIL 0 7", "SERVFAIL 0 7"}
		if mode == "immediate" {
			want = slices.Insert(want, 2, "NOERROR 1") // the first one, which is not waited for
		}
		for n, w := range want {
			if n == 2 {
				move(40)
			}
			got, _ := said(t, ours, name, dns.TypeA, nil)
			if got != w {
				t.Errorf("serve_stale %s, query %d: %s, want %s", mode, n, got, w)
			}
			if n == 2 && mode == "immediate" {
				time.Sleep(500 * time.Millisecond) // it was asked anew behind that
			}
		}
	}
}

// A server whose replies cannot be unpacked is not waited for, and clients hear what was wrong (RFC 8914 §4.25).
func TestMalformedReplies(t *testing.T) {
	o := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		b, err := new(dns.Msg).SetReply(q).Pack()
		if err != nil {
			panic(err)
		}
		b[7] = 1 // a record whose owner points to itself
		_, _ = w.Write(append(b, 0xc0, byte(len(b)), 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1))
	})
	ours := serve(t, 0, fmt.Sprintf(" recurse {\n  stub odd %s\n  allow_servers 127.0.0.0/8\n }", both(t, o)))
	if got, m := said(t, ours, "www.odd.", dns.TypeA, nil); got != "SERVFAIL 0 24" {
		t.Errorf("%s: %v", got, m)
	}
}
