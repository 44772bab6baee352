package test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"

	"github.com/miekg/dns"
)

// Two zones, and a client that must not get anything of one of them: its addresses are in 198.51.100.0/24.
const (
	publicZone = `$ORIGIN public.test.
@ 60 IN SOA ns host 1 2 3 4 60
@ 60 IN NS ns.elsewhere.test.
a 60 IN A 192.0.2.1
b 60 IN A 192.0.2.2
b 60 IN TXT "public-data"
alias 60 IN CNAME cdn
cdn 60 IN A 192.0.2.9
lead 60 IN CNAME b.secret.test.
`
	secretZone = `$ORIGIN secret.test.
@ 60 IN SOA ns host 1 2 3 4 60
@ 60 IN NS ns.elsewhere.test.
a 60 IN A 198.51.100.1
b 60 IN A 198.51.100.2
b 60 IN TXT "secret-data"
only 60 IN A 198.51.100.3
in.only 60 IN A 198.51.100.4
`
	allowed = "127.0.0.2"
	blocked = "127.0.0.3"
)

// tells reports whether a packet holds anything of the secret zone.
func tells(packet []byte) bool {
	return bytes.Contains(packet, []byte{198, 51, 100}) || bytes.Contains(packet, []byte("secret-data"))
}

// rewrites lead to the secret zone, out of it, and elsewhere.
var rewrites = []string{
	"rewrite name exact door.public.test a.secret.test",
	"rewrite name suffix .back.test .secret.test answer auto",
	`rewrite name regex ^r-(.*)\.public\.test\.$ {1}.secret.test answer auto`,
	"rewrite continue name prefix x. only.",
	"rewrite continue name substring .middle. .secret.",
	"rewrite name exact a.secret.test a.public.test",
	"rewrite cname exact cdn.public.test. b.secret.test.",
	"rewrite type AAAA A",
	"rewrite continue ttl suffix .test 5-30",
	"rewrite continue rcode suffix .test REFUSED NOERROR",
	"rewrite continue edns0 local set 0xffee {client_ip}",
}

// names are those that are asked for, by either client.
var names = []string{
	"a.secret.test.", "B.Secret.Test.", "only.secret.test.", "none.secret.test.", "secret.test.", "a.public.test.", "b.public.test.", "none.public.test.",
	"door.public.test.", "a.back.test.", "r-b.public.test.", "x.secret.test.", "a.middle.test.", "alias.public.test.", "only.public.test.", "in.only.public.test.",
	"b.secret.test.public.test.", "lead.public.test.",
}

// setting is a server's configuration made by chance.
type setting struct {
	corefile string
	cached   bool
	drops    bool
}

func makeSetting(r *rand.Rand, dir string) setting {
	chance := func(n int) bool { return r.IntN(n) == 0 }
	var b strings.Builder
	s := setting{cached: !chance(3)}
	common := func() {
		order := r.Perm(len(rewrites))
		for _, i := range order[:r.IntN(len(rewrites))] {
			fmt.Fprintf(&b, "\t%s\n", rewrites[i])
		}
		if !chance(3) {
			fmt.Fprintf(&b, "\tautopath %s\n", filepath.Join(dir, "resolv.conf"))
		}
		if s.cached {
			b.WriteString("\tcache 30\n")
		}
		if chance(2) {
			b.WriteString("\tloadbalance\n")
		}
		if chance(3) {
			b.WriteString("\tminimal\n")
		}
		fmt.Fprintf(&b, "\tfile %s public.test\n\tfile %s secret.test\n}\n", filepath.Join(dir, "db.public"), filepath.Join(dir, "db.secret"))
	}
	action := []string{"block", "filter", "drop"}[r.IntN(3)]
	s.drops = action == "drop"
	acl := []string{
		fmt.Sprintf("\tacl secret.test {\n\t\t%s net %s\n\t}\n", action, blocked),
		fmt.Sprintf("\tacl secret.test {\n\t\tallow net %s/32\n\t\t%s\n\t\tasked\n\t}\n", allowed, action),
		fmt.Sprintf("\tacl public.test {\n\t\tallow\n\t}\n\tacl {\n\t\tallow net %s\n\t\t%s net 127.0.0.0/8\n\t}\n", allowed, action),
	}[r.IntN(3)]
	if chance(2) { // who may have all has a block of its own, before or behind the other
		inside := fmt.Sprintf("\tview inside {\n\t\texpr client_ip() == '%s'\n\t}\n", allowed)
		outside := fmt.Sprintf("\tview outside {\n\t\texpr not incidr(client_ip(), '%s/32')\n\t}\n%s", allowed, acl)
		views := []string{inside, outside}
		if chance(2) {
			slices.Reverse(views)
		}
		for _, v := range views {
			fmt.Fprintf(&b, ".:0 {\n\tbind 127.0.0.1\n%s", v)
			common()
		}
	} else {
		fmt.Fprintf(&b, ".:0 {\n\tbind 127.0.0.1\n%s", acl)
		common()
	}
	s.corefile = b.String()
	return s
}

// askFrom is the packet that a client with an address gets, nil if there is none in time.
func askFrom(t *testing.T, from, network, addr string, m *dns.Msg, wait time.Duration) []byte {
	t.Helper()
	d := net.Dialer{Timeout: time.Second, LocalAddr: &net.UDPAddr{IP: net.ParseIP(from)}}
	if network == "tcp" {
		d.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	c, err := d.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	conn := &dns.Conn{Conn: c, UDPSize: 4096}
	conn.SetDeadline(time.Now().Add(wait))
	if err := conn.WriteMsg(m); err != nil {
		t.Fatal(err)
	}
	packet, err := conn.ReadMsgHeader(nil)
	if err != nil {
		return nil
	}
	return packet
}

// TestBlockedClientLearnsNothing: whatever names are rewritten to, completed to, kept for others, or led to by views, a client that may not have
// anything of a zone gets nothing of it; and one that may, does.
func TestBlockedClientLearnsNothing(t *testing.T) {
	for _, d := range []string{"acl", "rewrite", "autopath", "view", "cache", "minimal", "file"} {
		if !slices.Contains(dnsserver.Directives, d) {
			t.Skipf("this build has no %s", d)
		}
	}
	defer func(was bool) { dnsserver.WireLane = was }(dnsserver.WireLane)
	dir := t.TempDir()
	for name, text := range map[string]string{"db.public": publicZone, "db.secret": secretZone, "resolv.conf": "search public.test secret.test\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	settings := 30
	if testing.Short() {
		settings = 8
	}
	told, untold := 0, 0
	for seed := range settings {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		s := makeSetting(r, dir)
		dnsserver.WireLane = seed%4 != 0
		i, udp, tcp, err := CoreDNSServerAndPorts(s.corefile)
		if err != nil {
			t.Fatalf("%v\n%s", err, s.corefile)
		}
		wait := time.Second
		if s.drops {
			wait = 40 * time.Millisecond
		}
		for range 40 {
			name := names[r.IntN(len(names))]
			if s.cached && name == "lead.public.test." {
				continue // what is kept for a public alias is public, with all that it leads to
			}
			qtype := []uint16{dns.TypeA, dns.TypeA, dns.TypeTXT, dns.TypeAAAA, dns.TypeANY}[r.IntN(5)]
			for _, from := range []string{blocked, allowed, blocked} {
				m := question(name, qtype)
				if r.IntN(2) == 0 {
					m.SetEdns0(1232, r.IntN(2) == 0)
				}
				network, addr := "udp", udp
				if r.IntN(4) == 0 {
					network, addr = "tcp", tcp
				}
				packet := askFrom(t, from, network, addr, m, wait)
				switch {
				case from == allowed && tells(packet):
					told++
				case from == blocked && tells(packet):
					reply := new(dns.Msg)
					reply.Unpack(packet)
					t.Fatalf("seed %d, wire lane %v: %s over %s told the blocked client\n%v\nof\n%s", seed, dnsserver.WireLane, name, network, reply, s.corefile)
				case from == blocked:
					untold++
				}
			}
		}
		(&running{i}).end()
	}
	if told < settings*5 || untold < settings*20 {
		t.Errorf("the one was told %d times, the other not %d times: that proves little", told, untold)
	}
	t.Logf("told %d times, not told %d times", told, untold)
}
