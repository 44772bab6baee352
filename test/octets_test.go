package test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
)

var updateOctets = flag.Bool("update-octets", false, "write testdata/octets.txt anew, from the replies of this build")

// octetChains are the chains whose replies are compared, one a listener. What they answer depends on nothing but the query.
var octetChains = []string{
	"file DIR/db.example.org example.org",
	"cache 30 {\nkeepttl\n}\nfile DIR/db.example.org example.org",
	"minimal\nheader {\nresponse set ra\n}\nfile DIR/db.example.org example.org",
	"hosts {\n192.0.2.3 www.example.org web.example.org\n2001:db8::3 www.example.org\n}",
	"nsid here\nbufsize 700\nany\nchaos v a\nlocal\nfile DIR/db.example.org example.org",
	"rewrite name suffix .example.net .example.org answer auto\nrewrite ttl exact www.example.org 7\nfile DIR/db.example.org example.org",
	"acl example.org {\nblock type MX\nfilter type TXT\nallow\n}\ntemplate IN A example.org {\nederror 15 \"not here\"\nanswer \"{{ .Name }} 60 IN A 192.0.2.77\"\n}",
	"cookie {\nsecret " + cookieSecret + "\nrequire\n}\nfile DIR/db.example.org example.org",
	"metadata\nfile DIR/db.example.org example.org", // all in the message lane
	"dns64 {\nallow_ipv4\n}\nfile DIR/db.example.org example.org",
}

// octetQuery is a packet.
type octetQuery struct {
	packet    []byte
	odd       bool // no proper query, of which HTTP, QUIC and gRPC tell in their own ways
	keepalive bool // it has an option that DNS over QUIC forbids
}

func octetQueries(t *testing.T) (all []octetQuery) {
	for i, m := range corpus(7, 220) {
		keepalive := false
		if opt := m.IsEdns0(); opt != nil {
			switch i % 5 {
			case 0:
				opt.Option = append(opt.Option, &dns.EDNS0_PADDING{Padding: make([]byte, i%40)})
			case 1:
				keepalive = true
				opt.Option = append(opt.Option, &dns.EDNS0_TCP_KEEPALIVE{Code: dns.EDNS0TCPKEEPALIVE})
			case 2:
				opt.Option = append(opt.Option, &dns.EDNS0_LOCAL{Code: 65001, Data: []byte{byte(i)}})
			}
		}
		m.Id = uint16(i)
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, octetQuery{b, false, keepalive})
		odd := slices.Clone(b)
		switch i % 20 {
		case 3:
			odd = odd[:len(b)-1]
		case 5:
			odd[2] |= 0x28 // opcode 5
		case 7:
			odd[5] = 2 // questions
		case 9:
			odd[len(b)-1] ^= 3
		default:
			continue
		}
		all = append(all, octetQuery{odd, true, keepalive})
	}
	return all
}

// octetServers starts a listener of each kind for each chain. A client connects when it is its turn: a server closes connections that ask nothing.
func octetServers(t *testing.T) map[string]func() clients.Client {
	dir := t.TempDir()
	certificates(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "db.example.org"), []byte(laneZone), 0o600); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{"udp": "dns", "dns": "dns", "tls": "tls", "https/2": "https", "https/1": "https", "https3": "https3", "quic": "quic", "grpc": "grpc"}
	var corefile strings.Builder
	ports := map[string]int{}
	for n, chain := range octetChains {
		for _, scheme := range []string{"dns", "tls", "https", "https3", "quic", "grpc"} {
			port := loopback.Port()
			ports[fmt.Sprint(n, scheme)] = port
			fmt.Fprintf(&corefile, "%s://.:%d ", scheme, port)
		}
		fmt.Fprintf(&corefile, "{\nbind 127.0.0.1\ntls DIR/cert.pem DIR/key.pem\n%s\n}\n", chain)
	}
	start(t, strings.ReplaceAll(corefile.String(), "DIR", dir))
	all := map[string]func() clients.Client{}
	for n := range octetChains {
		for kind, scheme := range kinds {
			addr := fmt.Sprintf("127.0.0.1:%d", ports[fmt.Sprint(n, scheme)])
			all[fmt.Sprintf("%d %s", n, kind)] = func() clients.Client {
				if kind == "udp" {
					return clients.UDPClient{Addr: addr}
				}
				return clients.Connect(t, kind, addr)
			}
		}
	}
	return all
}

// steady is a reply without what depends on the time: the server's part of a cookie.
func steady(b []byte) []byte {
	b = slices.Clone(b)
	const cookie = "\x00\x0a\x00\x18" // the option with both parts
	if i := bytes.LastIndex(b, []byte(cookie)); i >= 0 && i+28 <= len(b) {
		clear(b[i+12 : i+28])
	}
	return b
}

// The replies are the same, octet for octet, as those that were recorded, over each transport. Who changes a reply on purpose writes them
// anew with -update-octets, and tells why.
func TestOctets(t *testing.T) {
	file := filepath.Join("testdata", "octets.txt")
	recorded := map[string]string{}
	if text, err := os.ReadFile(file); err == nil {
		lines := bufio.NewScanner(bytes.NewReader(text))
		for lines.Scan() {
			key, hashes, _ := strings.Cut(lines.Text(), ": ")
			recorded[key] = hashes
		}
	} else if !*updateOctets {
		t.Fatal(err)
	}
	queries := octetQueries(t)
	var out []string
	servers := octetServers(t)
	for _, key := range slices.Sorted(maps.Keys(servers)) { // the first one fills a cache that they share
		c := servers[key]()
		_, kind, _ := strings.Cut(key, " ")
		framed := kind == "udp" || kind == "dns" || kind == "tls"
		want := strings.Fields(recorded[key])
		var hashes []string
		wrong := 0
		for i, q := range queries {
			hash := "-" // not asked
			if framed || !q.odd && !(q.keepalive && kind == "quic") {
				b := q.packet
				if !framed && kind != "grpc" { // which have no use for an id
					b = append([]byte{0, 0}, b[2:]...)
				}
				reply, err := c.Raw(b)
				if err != nil {
					t.Fatalf("%s, query %d (%x): %v", key, i, b, err)
				}
				sum := sha256.Sum256(steady(reply))
				hash = hex.EncodeToString(sum[:4])
				if i < len(want) && want[i] != hash && !*updateOctets {
					if wrong++; wrong == 1 {
						t.Errorf("%s, query %d (%x): the reply %x is another one than was recorded", key, i, b, reply)
					}
				}
			}
			hashes = append(hashes, hash)
		}
		if wrong > 0 || len(want) != len(hashes) && !*updateOctets {
			t.Errorf("%s: %d of %d replies differ", key, wrong, len(hashes))
		}
		out = append(out, key+": "+strings.Join(hashes, " ")+"\n")
	}
	if *updateOctets {
		if err := os.WriteFile(file, []byte(strings.Join(out, "")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
