package test

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/cookie"
	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"

	"context"
)

// The same queries, with the wire lane and without it, must get the same replies, be counted alike and leave the same lines. And the
// wire lane must have answered most of them, or all of that would prove nothing.

// lanespy is a plugin of the tests that stands above all others and counts which lane the queries took.
type lanespy struct{ next plugin.Handler }

var onWire, asMessages atomic.Int64

func init() {
	dnsserver.Directives = slices.Insert(dnsserver.Directives, 0, "lanespy")
	plugin.Register("lanespy", func(c *caddy.Controller) error {
		dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return &lanespy{next} })
		return nil
	})
}

func (l *lanespy) Name() string             { return "lanespy" }
func (l *lanespy) WireSelf() plugin.Handler { return l }

func (l *lanespy) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	asMessages.Add(1)
	return plugin.NextOrFailure(l.Name(), l.next, ctx, w, r)
}

func (l *lanespy) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	out := plugin.NextWire(l.Name(), l.next, ctx, w, q)
	if out == wire.Done {
		onWire.Add(1)
	}
	return out
}

// laneCase is a server block whose lanes are compared.
type laneCase struct {
	name  string
	lines string  // of the block
	share float64 // of the proper queries, that the wire lane must answer; 0: any, and some may leave no line of the log
	ttls  bool    // TTLs do not depend on the time
}

// laneZone is the zone of the comparisons. A record of "many" takes 99 octets, so that a reply cut to 512 or to 700 octets
// has more than 60 to spare: as many fit whether the question's name can be pointed to or not, for its case may be
// random, and whether options stand in the OPT record or not.
const laneZone = `$ORIGIN example.org.
$TTL 300
@	IN SOA ns1 hostmaster 1 7200 3600 1209600 60
@	IN NS ns1
@	IN NS ns2.example.net.
@	IN MX 10 mail
@	IN TXT "v=spf1 -all" "second"
ns1	IN A 192.0.2.1
ns1	IN AAAA 2001:db8::1
mail	IN A 192.0.2.2
www	IN A 192.0.2.3
www	IN A 192.0.2.4
www	IN A 192.0.2.5
www	IN AAAA 2001:db8::3
web	IN CNAME www
loop	IN CNAME loop
chain	IN CNAME web
child	IN CNAME app.dyn
lost	IN CNAME missing
many	IN TXT "01234567890123456789012345678901234567890123456789012345678901234567890123456789012345"
many	IN TXT "11234567890123456789012345678901234567890123456789012345678901234567890123456789012345"
many	IN TXT "21234567890123456789012345678901234567890123456789012345678901234567890123456789012345"
many	IN TXT "31234567890123456789012345678901234567890123456789012345678901234567890123456789012345"
many	IN TXT "41234567890123456789012345678901234567890123456789012345678901234567890123456789012345"
many	IN TXT "51234567890123456789012345678901234567890123456789012345678901234567890123456789012345"
many	IN TXT "61234567890123456789012345678901234567890123456789012345678901234567890123456789012345"
many	IN TXT "71234567890123456789012345678901234567890123456789012345678901234567890123456789012345"
*.wild	IN A 192.0.2.9
*.wild	IN MX 5 mail
a.deep.ent	IN A 192.0.2.10
sub	IN NS ns.sub
ns.sub	IN A 192.0.2.11
old	IN DNAME example.org.
_s._tcp	IN SRV 1 2 3 www
flock	IN CNAME herd
herd	IN TXT "1"
herd	IN TXT "2"
herd	IN TXT "3"
herd	IN TXT "4"
herd	IN TXT "5"
herd	IN TXT "6"
herd	IN TXT "7"
herd	IN TXT "8"
herd	IN TXT "9"
herd	IN TXT "10"
herd	IN TXT "11"
herd	IN TXT "12"
herd	IN TXT "13"
herd	IN TXT "14"
`

func laneCases(dir string) []laneCase {
	file := "file " + filepath.Join(dir, "db.example.org") + " example.org\n"
	return []laneCase{
		{"file", file, 0.9, true}, // what aliases lead away to is asked in the message lane
		{"dynupdate", "dynupdate example.org {\nfile " + filepath.Join(dir, "db.example.org") + "\nallow key. * *\n}\n", 0.9, true},
		{"file and a child elsewhere", "hosts {\n192.0.2.30 app.dyn.example.org\nfallthrough\n}\n" + file, 0.85, true},
		{"file behind cache", "cache 30\n" + file, 0.9, false},
		{"extended errors and networks", "cache 30\ntemplate IN TXT example.org {\nederror 15 \"not here\"\nanswer \"{{ .Name }} 60 IN TXT x\"\n}\n" + file, 0.8, false},
		{"one answer for all networks", "rewrite edns0 subnet set 24 56\ncache 30 {\necs strip\n}\nforward . UPSTREAM\n", 0.85, false},
		{"loadbalance", "loadbalance\n" + file, 0.9, true},
		{"control", "control " + filepath.Join(os.TempDir(), fmt.Sprintf("lanes%d.sock", os.Getpid())) + "\ncache 30\n" + file, 0.9, false},
		{"hosts", "hosts {\n192.0.2.3 www.example.org web.example.org\n2001:db8::3 www.example.org\nfallthrough\n}\n" + file, 0.9, true},
		{"minimal and header", "header {\nresponse set ra\n}\nminimal\n" + file, 0.9, true},
		{"rewrite", "rewrite name suffix .example.net .example.org answer auto\nrewrite ttl exact www.example.org 7\n" + file, 0.85, true},
		{"acl", "acl example.org {\nblock type MX\nfilter type TXT\nallow\n}\n" + file, 0.9, true},
		{"bufsize, nsid and cancel", "cancel\nbufsize 700\nnsid here\n" + file, 0.8, true},
		{"local, any, chaos", "local\nany\nchaos v a\n" + file, 0.9, true},
		{"template", "template IN A example.org {\nmatch ^x[.]\nanswer \"{{ .Name }} 60 IN A 192.0.2.77\"\nfallthrough\n}\n" + file, 0.9, true},
		{"templates without records, and denials", "template IN AAAA . {\nrcode NOERROR\n}\ntemplate IN ANY example.org {\nmatch ^(nx|web)\nrcode NXDOMAIN\nederror 15 \"not here\"\nauthority \"example.org. 60 IN SOA ns.example.org. admin.example.org. 1 2 3 4 5\"\nfallthrough\n}\n" + file, 0.9, true},
		{"forward", "cache 30\nforward . UPSTREAM\n", 0.85, false},
		{"forward with options, and to nobody", "forward example.net 127.0.0.1:1 {\nede\nmax_fails 0\n}\nforward . UPSTREAM {\ncase_randomization\n}\n", 0.85, true},
		{"cookie", "cookie {\nsecret " + cookieSecret + "\n}\ncache 30\n" + file, 0.9, false},
		{"cookies required", "cookie {\nsecret " + cookieSecret + "\nrequire\n}\n" + file, 0.9, true},
		{"cookie off", "cookie {\noff\n}\n" + file, 0.9, true},
		{"dns64", "dns64 {\nallow_ipv4\n}\n" + file, 0.5, true},
		{"tsig, cancel, metadata", "metadata\ncancel\ntsig {\nsecret k. AAAA\nrequire TXT\n}\n" + file, 0.6, true},
	}
}

// corpus is queries from a seed.
func corpus(seed uint64, n int) (all []*dns.Msg) {
	r := rand.New(rand.NewPCG(seed, 1))
	names := []string{
		"", "ns1.", "mail.", "www.", "web.", "loop.", "chain.", "child.", "lost.", "many.", "x.wild.", "x.y.wild.", "*.wild.", "wild.", "deep.ent.", "ent.", "a.deep.ent.",
		"sub.", "x.sub.", "ns.sub.", "x.old.", "www.old.", "old.", "_s._tcp.", "flock.", "herd.", "nope.", "x.nope.", "x.", "localhost.",
	}
	types := []uint16{
		dns.TypeA, dns.TypeA, dns.TypeA, dns.TypeAAAA, dns.TypeAAAA, dns.TypeMX, dns.TypeTXT, dns.TypeNS, dns.TypeSOA, dns.TypeCNAME, dns.TypeSRV, dns.TypeDS, dns.TypeHINFO, dns.TypeANY, 65280,
	}
	for range n {
		zone := "example.org."
		if r.IntN(12) == 0 {
			zone = "example.net."
		}
		name := []byte(names[r.IntN(len(names))] + zone)
		for i, c := range name {
			if c >= 'a' && c <= 'z' && r.IntN(4) == 0 {
				name[i] = c - 'a' + 'A'
			}
		}
		m := new(dns.Msg).SetQuestion(string(name), types[r.IntN(len(types))])
		m.RecursionDesired, m.CheckingDisabled, m.AuthenticatedData = r.IntN(3) > 0, r.IntN(8) == 0, r.IntN(8) == 0
		if r.IntN(3) > 0 {
			m.SetEdns0([]uint16{0, 100, 512, 700, 1232, 4096, 65535}[r.IntN(7)], r.IntN(3) == 0)
			switch r.IntN(12) {
			case 0:
				m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_NSID{Code: dns.EDNS0NSID})
			case 1:
				withCookie(m, "0102030405060708")
			case 4:
				withCookie(m, goodCookie())
			case 5:
				withCookie(m, "010203040506070801000000658000000102030405060708") // old and forged
			case 6:
				withCookie(m, []string{"0102030405060708", "01020304"}[len(all)%2]) // too short, now and then
			case 2, 3:
				network := net.IPv4(198, 51, byte(100+r.IntN(2)), 0).To4()
				m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_SUBNET{Code: dns.EDNS0SUBNET, Family: 1, SourceNetmask: uint8(24 + r.IntN(2)), Address: network})
			}
		}
		all = append(all, m)
	}
	return all
}

// cookieSecret is that of the chains with the directive cookie.
const cookieSecret = "e5e973e5a6b2a43f48e7dc849e37bfcf"

func withCookie(m *dns.Msg, c string) {
	m.IsEdns0().Option = append(m.IsEdns0().Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: c})
}

// goodCookie is a cookie of the tests' client that is good where cookieSecret is known.
func goodCookie() string {
	s, err := cookie.ParseSecret(cookieSecret)
	if err != nil {
		panic(err)
	}
	_, c := cookie.Keys{s}.Judge([]byte("12345678"), netip.MustParseAddr("127.0.0.1"), uint32(time.Now().Unix()))
	return hex.EncodeToString(c[:])
}

// misfits is how many queries have a cookie of a length that none may have: no chain sees them, and there is no line.
func misfits(queries []*dns.Msg) (n int) {
	for _, m := range queries {
		if opt := m.IsEdns0(); opt != nil && len(opt.Option) > 0 && strings.HasSuffix(opt.String(), "COOKIE: 01020304") {
			n++
		}
	}
	return n
}

// outcome is what came of a corpus.
type outcome struct {
	replies []string
	counts  map[string]float64
	lines   []string
	wire    float64 // the share that the wire lane answered
}

var (
	port       = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	duration   = regexp.MustCompile(`[0-9.e-]+s$`)
	whoamiPort = regexp.MustCompile(`0 0 \d+ \.$`)
	made       = regexp.MustCompile(`(cookie: [0-9a-f]{16})01000000[0-9a-f]{24}`) // a server cookie: its time, and a hash over it
)

// play asks all queries of a server with the block c, with the wire lane or without it.
func play(t *testing.T, c laneCase, queries []*dns.Msg, useWire bool) (o outcome) {
	t.Helper()
	old := dnsserver.WireLane
	dnsserver.WireLane = useWire
	defer func() { dnsserver.WireLane = old }()
	out := captureLog(t)
	metrics := loopback.Addr()
	i, err := CoreDNSServer(".:0 {\nbind 127.0.0.1\nlanespy\nprometheus " + metrics + "\nerrors\nlog . \"{type} {class} {name} {proto} {size} {>do} {>bufsize} {rcode} {>rflags} {rsize} {looked_up}\"\n" + c.lines + "}")
	if err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	r := &running{instance: i}
	udp, tcp := CoreDNSServerPorts(i, 0)
	onWire.Store(0)
	asMessages.Store(0)
	before := settled(metrics)
	client := map[string]*dns.Client{"udp": {Net: "udp", Timeout: 3 * time.Second, UDPSize: 65535}, "tcp": {Net: "tcp", Timeout: 3 * time.Second}}
	conns := map[string]*dns.Conn{}
	for network, addr := range map[string]string{"udp": udp, "tcp": tcp} {
		if conns[network], err = client[network].Dial(addr); err != nil {
			t.Fatal(err)
		}
		conns[network].Conn = overhear(conns[network].Conn)
		conns[network].TsigSecret = map[string]string{"k.": "AAAA", "K.": "AAAA", "other.": "BBBB"}
	}
	for n, m := range queries {
		network := "udp"
		if n%4 == 3 {
			network = "tcp"
		}
		m = m.Copy()
		m.Id = uint16(n)
		if sig := m.IsTsig(); sig != nil {
			sig.OrigId = m.Id
		}
		conns[network].SetDeadline(time.Now().Add(3 * time.Second))
		err := conns[network].WriteMsg(m)
		reply, err2 := conns[network].ReadMsg()
		if err = errors.Join(err, err2); reply == nil || err != nil && queries[n].IsTsig() == nil {
			t.Fatalf("%s, wire %v: %s %v: %v", c.name, useWire, network, m, err)
		}
		readByOthers(t, c.name, conns[network].Conn.(hearing).lastRead())
		o.replies = append(o.replies, canonical(reply, c.ttls)+fmt.Sprint(err))
	}
	for _, conn := range conns {
		conn.Close()
	}
	o.wire = float64(onWire.Load()) / float64(proper(queries))
	o.counts = settled(metrics)
	for name, n := range before {
		o.counts[name] -= n
	}
	r.end()
	for _, line := range strings.Split(out.String(), "\n") {
		if strings.Contains(line, " IN ") {
			o.lines = append(o.lines, duration.ReplaceAllString(port.ReplaceAllString(line, "ADDR"), "TIMEs"))
		}
	}
	sort.Strings(o.lines)
	return o
}

// canonical is a reply as text in which the order of records in a section does not show.
func canonical(m *dns.Msg, ttls bool) string {
	section := func(rrs []dns.RR) string {
		var all []string
		for _, rr := range rrs {
			rr = dns.Copy(rr)
			if !ttls && rr.Header().Rrtype != dns.TypeOPT {
				rr.Header().Ttl = 0
			}
			text := strings.ToLower(rr.String()) // cases of owners follow the question, or who asked first
			if s, ok := rr.(*dns.RRSIG); ok {
				text = fmt.Sprint("rrsig", s.TypeCovered, s.Algorithm, s.Labels, s.OrigTtl, strings.ToLower(s.Hdr.Name))
			}
			if s, ok := rr.(*dns.TSIG); ok {
				text = fmt.Sprint("tsig", s.Error, s.Algorithm, s.Fudge, s.OtherLen, s.OrigId, len(s.MAC), strings.ToLower(s.Hdr.Name))
			}
			text = whoamiPort.ReplaceAllString(text, "0 0 PORT .")
			all = append(all, made.ReplaceAllString(text, "$1 and a server cookie"))
		}
		sort.Strings(all)
		if m.Truncated {
			return fmt.Sprint(len(all))
		}
		return strings.Join(all, "\n")
	}
	return strings.Join([]string{m.MsgHdr.String(), fmt.Sprint(m.Question), section(m.Answer), section(m.Ns), section(m.Extra)}, "\n--\n")
}

// proper is how many queries the wire lane takes at all.
func proper(queries []*dns.Msg) (n int) {
	for _, m := range queries {
		var q wire.Query
		if b, err := m.Pack(); err == nil && q.Parse(b) {
			n++
		}
	}
	return n
}

// settled is counts when these do not change any more: a reply may be there before it is counted.
func settled(addr string) map[string]float64 {
	last := counts(addr)
	for range 50 {
		time.Sleep(20 * time.Millisecond)
		now := counts(addr)
		if maps.Equal(last, now) {
			break
		}
		last = now
	}
	return last
}

// counts is the counters, and the counts of histograms, that queries change.
func counts(addr string) map[string]float64 {
	all := map[string]float64{}
	for _, mf := range test.Scrape("http://" + addr + "/metrics") {
		if !strings.HasPrefix(mf.Name, "coredns_") || strings.Contains(mf.Name, "_duration_") || strings.HasPrefix(mf.Name, "coredns_proxy_") {
			continue
		}
		if mf.Type == "GAUGE" {
			continue
		}
		for _, m := range mf.Metrics {
			text := fmt.Sprint(m)
			end := strings.LastIndexByte(text, ' ')
			if n, err := strconv.ParseFloat(strings.TrimRight(text[end+1:], "}"), 64); err == nil && !strings.Contains(text, "plugin/reload") {
				all[mf.Name+" "+text[:end]] += n
			}
		}
	}
	return all
}

func TestLanesAgree(t *testing.T) {
	dir, upstream, queries := laneWorld(t, 1500)
	for _, c := range laneCases(dir) {
		c.lines = strings.ReplaceAll(c.lines, "UPSTREAM", upstream)
		compareLanes(t, t, c, queries)
	}
}

// laneWorld is a folder with the zone, a server that has it, and n queries.
func laneWorld(t *testing.T, n int) (dir, upstream string, queries []*dns.Msg) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "db.example.org"), []byte(laneZone), 0o600); err != nil {
		t.Fatal(err)
	}
	_, upstream, _ = start(t, ".:0 {\nbind 127.0.0.1\nfile "+filepath.Join(dir, "db.example.org")+" example.org\n}")
	return dir, upstream, corpus(4711, n)
}

// judge hears what is wrong.
type judge interface {
	Helper()
	Errorf(format string, args ...any)
}

// compareLanes tells j in what the lanes of a block differ. It returns the share of the queries that the wire lane answered.
func compareLanes(t *testing.T, j judge, c laneCase, queries []*dns.Msg) float64 {
	t.Helper()
	bytes, messages := play(t, c, queries, true), play(t, c, queries, false)
	if messages.wire != 0 {
		t.Fatalf("%s: the wire lane was not off", c.name)
	}
	if bytes.wire < c.share {
		j.Errorf("%s: the wire lane answered %.2f of the queries, want %.2f", c.name, bytes.wire, c.share)
	}
	differ := 0
	for i := range queries {
		if bytes.replies[i] == messages.replies[i] {
			continue
		}
		if differ++; differ <= 3 {
			j.Errorf("%s: query %d\n%v\nwire lane\n%s\nmessage lane\n%s", c.name, i, queries[i], bytes.replies[i], messages.replies[i])
		}
	}
	if differ > 0 {
		j.Errorf("%s: %d of %d replies differ", c.name, differ, len(queries))
	}
	if c.share > 0 && len(bytes.lines) < len(queries)-misfits(queries) { // inner questions have lines, too
		j.Errorf("%s: %d lines for %d queries", c.name, len(bytes.lines), len(queries))
	}
	report(j, c.name+": log", bytes.lines, messages.lines)
	report(j, c.name+": metrics", keys(bytes.counts), keys(messages.counts))
	return bytes.wire
}

// keys is what was counted, a line each.
func keys(m map[string]float64) (all []string) {
	for k, n := range m {
		if n != 0 {
			all = append(all, fmt.Sprintf("%s %v", k, n))
		}
	}
	sort.Strings(all)
	return all
}

// report tells the first lines that only one of two sorted lists has.
func report(t judge, what string, wire, messages []string) {
	t.Helper()
	told := 0
	for i, j := 0, 0; (i < len(wire) || j < len(messages)) && told < 4; {
		switch {
		case j == len(messages) || i < len(wire) && wire[i] < messages[j]:
			t.Errorf("%s: only in the wire lane: %s", what, wire[i])
			i++
			told++
		case i == len(wire) || messages[j] < wire[i]:
			t.Errorf("%s: only in the message lane: %s", what, messages[j])
			j++
			told++
		default:
			i++
			j++
		}
	}
}
