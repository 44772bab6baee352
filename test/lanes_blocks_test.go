package test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// blockMaker makes server blocks that nobody would write: of any plugins, with any options, from a seed.
type blockMaker struct {
	*rand.Rand
	dir      string // has the zone
	upstream string
	key      string // of the zone, its file without what it ends in
}

// one is one of its arguments.
func (b *blockMaker) one(all ...string) string { return all[b.IntN(len(all))] }

// some is each of its arguments or not, in their order, a line each.
func (b *blockMaker) some(all ...string) string {
	text := ""
	for _, s := range all {
		if b.IntN(2) == 0 {
			text += s + "\n"
		}
	}
	return text
}

// upTo calls f at least once, and at most n times.
func (b *blockMaker) upTo(n int, f func() string) string {
	text := ""
	for range 1 + b.IntN(n) {
		text += f() + "\n"
	}
	return text
}

func (b *blockMaker) zone() string {
	return b.one("example.org", "example.org", "example.net", "www.example.org", "sub.example.org", ".", "org")
}

func (b *blockMaker) name() string {
	return b.one("www", "web", "chain", "mail", "many", "x.wild", "nope", "x", "ns1", "child", "old", "x.sub") + "." + b.one("example.org", "example.net", "example.org")
}

func (b *blockMaker) qtype() string {
	return b.one("A", "AAAA", "MX", "TXT", "NS", "SOA", "CNAME", "SRV", "ANY", "HINFO", "DS")
}

func (b *blockMaker) rcode() string {
	return b.one("NOERROR", "NXDOMAIN", "SERVFAIL", "REFUSED", "NOTIMP")
}

// match is how names are matched, and with what.
func (b *blockMaker) match() string {
	switch b.IntN(5) {
	case 0:
		return "exact " + b.name()
	case 1:
		return "prefix " + b.one("www.", "w", "x.", "m")
	case 2:
		return "suffix " + b.one(".example.org", "org", ".wild.example.org", ".example.net.")
	case 3:
		return "substring " + b.one("example", "w", "ild.exa", "nope")
	}
	return "regex " + b.one(`(.*)\.example\.org\.`, `^(w..)\.(.*)$`, `(x|y)\.(.*)`, `.*`, `^([a-z]+)\.example\.(net|org)\.$`)
}

func (b *blockMaker) renaming() string {
	switch b.IntN(5) {
	case 0:
		return "name exact " + b.name() + " " + b.name() + b.one("", " answer auto")
	case 1:
		return "name prefix " + b.one("www. web.", "x. www.", "w ww", "ma mai") + b.one("", " answer auto")
	case 2:
		return "name suffix " + b.one(".example.net .example.org", "example.net example.org", ".org .net", ".example.org. .wild.example.org.") +
			b.one("", " answer auto", ` answer name (.*)\.example\.org {1}.example.net`)
	case 3:
		return "name substring " + b.one("nope www", "example.net example.org", "w ww", ".e .sub.e") + b.one("", " answer auto")
	}
	return "name regex " + b.one(`(.*)\.example\.net {1}.example.org`, `^(w.*)\.example\.org$ x.{1}.wild.example.org`, `^([^.]*)\.(.*)$ {1}.{2}`, `x\.(.*) www.example.org`) +
		b.one("", " answer auto", ` answer name (.*)\.example\.org {1}.example.net`, ` answer value (.*)\.example\.org {1}.example.net`,
			` answer name (.*)\.example\.org {1}.example.net answer value www\.example\.org target.example.com`)
}

func (b *blockMaker) rule() string {
	field := ""
	switch b.IntN(8) {
	case 0, 1, 2:
		field = b.renaming()
	case 3:
		field = "type " + b.qtype() + " " + b.qtype()
	case 4:
		field = "ttl " + b.match() + " " + b.one("7", "10-60", "100-", "-50", "0")
	case 5:
		field = "rcode " + b.match() + " " + b.rcode() + " " + b.rcode()
	case 6:
		field = "cname " + b.match() + " " + b.name()
	case 7:
		field = "edns0 " + b.one("local set 0xffee 0xabcd", "local append 0xffee 0x01", "local replace 0xffee 0x02", "local set 0xffee {qname}", "local unset 0xffee",
			"nsid set", "nsid unset", "nsid append", "subnet set 24 56", "subnet append 16 48", "subnet unset", "subnet replace 8 32")
		if !strings.Contains(field, "unset") {
			field += b.one("", " revert")
		}
	}
	return "rewrite " + b.one("", "stop ", "continue ", "continue ") + field
}

func (b *blockMaker) record() string {
	return b.one("{{ .Name }} 60 IN A 192.0.2.77", "{{ .Name }} 60 IN {{ .Type }} x", "{{ .Name }} 30 IN TXT \\\"{{ .Name }}\\\"", "{{ .Name }} IN CNAME www.example.org.",
		"{{ .Name }} 60 IN CNAME nope.example.com.", "{{ .Zone }} 60 IN SOA ns.{{ .Zone }} host.{{ .Zone }} 1 2 3 4 5", "{{ .Name }} 60 IN MX 10 {{ .Match }}x.", "", "{{ .Name }} 60 IN AAAA 2001:db8::{{ len .Name }}",
		"{{ .Zone }} 60 IN NS ns1.{{ .Zone }}")
}

func (b *blockMaker) template() string {
	text := "template " + b.one("IN", "IN", "ANY", "CH") + " " + b.one(b.qtype(), "ANY") + " " + b.one("", b.zone()) + " {\n"
	if b.IntN(2) == 0 {
		text += "match " + b.one(`^x[.]`, `(?P<first>[^.]*)[.]example[.]org[.]$`, `www`, `nope`, `^([a-z]+)[.](.*)$`) + "\n"
	}
	if b.IntN(5) == 0 {
		text += `expr "` + b.one("name() contains 'w'", "type() == 'A'", "do()", "bufsize() > 1000", "size() < 60", "proto() == 'tcp'", "size() % 2 == 0") + "\"\n"
	}
	for range b.IntN(3) {
		text += b.one("answer", "answer", "additional", "authority") + ` "` + b.record() + "\"\n"
	}
	text += b.some("rcode "+b.rcode(), "ederror "+b.one("15 \"not here\"", "29", "4 made"), "fallthrough "+b.one("", b.zone()), "fallthrough")
	return text + "}"
}

func (b *blockMaker) ttls() string { return b.one("", " 30", " 3600 5", " 60 10") }

func (b *blockMaker) cache() string {
	return "cache " + b.one("", "30", "3600", "60 example.org", "example.net") + " {\n" + b.some("success "+b.one("1000", "4", "100000")+b.ttls(), "denial 1000"+b.ttls(),
		"servfail "+b.one("0", "5s", "1m"), "disable "+b.one("success", "denial")+" "+b.one("", b.zone()), "ecs strip", "keepttl", "ignore_soa_minimum",
		"serve_stale "+b.one("", "1h immediate 3s", "1h verify 1s"), "failures") + "}"
}

// conditions are those of a view.
func (b *blockMaker) conditions() string {
	return b.upTo(2, func() string {
		return "expr " + b.one("type() == 'A'", "name() endsWith 'example.org.'", "bufsize() <= 1232", "do()", "proto() == 'udp'", "incidr(client_ip(), '127.0.0.0/8')", "name() in ['www.example.org.', 'x.example.org.']",
			"not (type() in ['MX', 'TXT'])", "size() > 40", "size() % 3 == 0", "opcode() == 0", "name() matches '^w.*'", "class() == 'IN' and len(name()) > 15", "metadata('forward/upstream') == ''")
	})
}

// directives are those of one block.
func (b *blockMaker) directives() string {
	file := "file " + filepath.Join(b.dir, "db.example.org") + " example.org"
	var text strings.Builder
	may := func(odds int, s string) {
		if b.IntN(odds) == 0 {
			text.WriteString(s + "\n")
		}
	}
	may(6, "metadata")
	may(6, "cancel")
	may(4, "bufsize "+b.one("512", "700", "1232", "4096"))
	may(5, "nsid "+b.one("here", "a b"))
	may(4, "cookie {\nsecret "+cookieSecret+"\n"+b.one("", "require\n")+"}")
	may(8, "local")
	may(5, "dns64 {\n"+b.some("prefix "+b.one("64:ff9b::/96", "2001:db8:64::/48"), "translate_all", "translate_ptr")+"allow_ipv4\n}")
	may(4, "acl "+b.one("", b.zone())+" {\n"+b.upTo(3, func() string {
		return b.one("allow", "block", "filter") + b.one("", " type "+b.qtype(), " type "+b.qtype()+" "+b.qtype()) + b.one("", " net 127.0.0.0/8", " net 10.0.0.0/8", " net *")
	})+b.some("asked", "soa 30")+"}")
	may(6, "any")
	may(6, "chaos v me")
	may(4, "loadbalance"+b.one("", " round_robin", " {\nprefer 192.0.2.4/30 2001:db8::/32\n}"))
	may(2, b.cache())
	may(2, b.upTo(4, b.rule))
	may(4, "tsig {\nsecret k. AAAA\n"+b.some("require "+b.one("TXT", "all", "A MX", "none"), "require_opcode "+b.one("NOTIFY", "QUERY", "none"))+"}")
	may(5, "header {\n"+b.upTo(3, func() string {
		return b.one("query", "response") + " " + b.one("set", "clear") + " " + b.one("aa", "ra", "rd", "aa ra")
	})+"}")
	may(4, "minimal")
	may(3, b.upTo(2, b.template))
	may(3, "hosts "+filepath.Join(b.dir, "none")+" "+b.one("", b.zone())+" {\n192.0.2.30 app.dyn.example.org www.example.org\n2001:db8::5 nope.example.org\n127.0.0.3 x.example.net\n"+
		b.some("ttl "+b.one("1", "77"), "no_reverse")+b.one("", "fallthrough "+b.one("", b.zone()), "fallthrough", "fallthrough\nfallthrough_unsupported")+"\n}")
	may(4, "dnssec example.org {\nkey file "+b.key+"\n"+b.some("cache_capacity 3")+"}")
	may(2, file+b.one("", " {\nfallthrough\n}"))
	may(6, "dynupdate example.org {\nfile "+filepath.Join(b.dir, "db.example.org")+"\nallow key. * *\n}")
	may(6, "forward example.net 127.0.0.1:1 {\nmax_fails 0\n"+b.some("ede", "max_connect_attempts 1")+"}")
	// Not case_randomization: names in data have its letters, too, so that dnssec signs some sets once more, and not hedge,
	// which goes by the time.
	may(2, "forward "+b.one(".", ".", "org")+" "+b.upstream+" {\n"+b.some("prefer_udp", "force_tcp", "max_fails 3", "ede", "next "+b.one("NXDOMAIN", "REFUSED"), "max_concurrent 1000", "except "+b.zone())+"}")
	may(6, "whoami")
	return text.String()
}

// lines are those of a block, and now and then of one more behind it.
func (b *blockMaker) lines() string {
	if b.IntN(4) > 0 {
		return b.directives()
	}
	return "view one {\n" + b.conditions() + "}\n" + b.directives() + "}\n.:0 {\nbind 127.0.0.1\nlanespy\nlog\nerrors\n" + b.directives()
}

// oddities makes some queries of a corpus odd.
func (b *blockMaker) oddities(queries []*dns.Msg) {
	for _, m := range queries {
		switch b.IntN(40) {
		case 0:
			m.Question[0].Qclass = []uint16{dns.ClassCHAOS, dns.ClassANY, dns.ClassNONE, 77}[b.IntN(4)]
		case 1:
			m.Opcode = dns.OpcodeNotify
		case 2:
			if opt := m.IsEdns0(); opt != nil {
				opt.SetVersion(1)
			}
		case 3, 4:
			if opt := m.IsEdns0(); opt != nil {
				opt.Option = append(opt.Option, &dns.EDNS0_LOCAL{Code: 0xffee, Data: []byte("here")}, &dns.EDNS0_PADDING{Padding: make([]byte, 5)})
			}
		case 5:
			m.Zero = true
		case 8, 9:
			m.SetTsig(b.one("k.", "k.", "K.", "other."), b.one(dns.HmacSHA256, dns.HmacSHA256, dns.HmacSHA512), 300, time.Now().Unix()-int64(b.IntN(2)*b.IntN(1000)))
		case 6:
			m.Question[0].Name = b.one("version.bind.", "id.server.", "hostname.bind.", ".", "localhost.", "x.localhost.", "5.2.0.192.in-addr.arpa.", "30.2.0.192.in-addr.arpa.", "1.0.0.127.in-addr.arpa.",
				"example.com.", "org.", strings.Repeat("a.", 120)+"example.org.", "a\\000b.example.org.", "a\\.b.example.org.")
		case 7:
			m.Question[0].Qtype = []uint16{dns.TypePTR, dns.TypeHTTPS, dns.TypeRRSIG, dns.TypeOPT, dns.TypeTSIG, dns.TypeNSEC, dns.TypeKEY, 0, 65535, dns.TypeDNAME}[b.IntN(10)]
		}
	}
}

// blocksAgree compares the lanes of the block of a seed, and returns the share of the queries that the wire lane answered.
func blocksAgree(t *testing.T, seed uint64) float64 {
	dir, upstream, _ := laneWorld(t, 1)
	_, key := writeZoneKey(t, dir)
	b := &blockMaker{rand.New(rand.NewPCG(seed, 2)), dir, upstream, key}
	queries := corpus(seed, 250)
	b.oddities(queries)
	c := laneCase{name: fmt.Sprint("block ", seed), lines: b.lines()}
	f := &failing{T: t}
	share := compareLanes(t, f, c, queries)
	if f.any {
		t.Logf("block %d:\n%s", seed, c.lines)
	}
	return share
}

// failing knows whether something was wrong.
type failing struct {
	*testing.T
	any bool
}

func (f *failing) Errorf(format string, args ...any) {
	f.any = true
	f.T.Errorf(format, args...)
}

// Blocks of any kind do the same in both lanes, and most of what they are asked is answered in the wire lane.
func TestLanesOfBlocks(t *testing.T) {
	sum := 0.0
	for seed := range uint64(blocksTested) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { sum += blocksAgree(t, seed) })
	}
	if sum < blocksTested/2 {
		t.Errorf("the wire lane answered %.2f of the queries", sum/blocksTested)
	}
}

// FuzzBlocks is the same for long runs.
func FuzzBlocks(f *testing.F) {
	f.Add(uint64(blocksTested))
	f.Fuzz(func(t *testing.T, seed uint64) { blocksAgree(t, seed) })
}

const blocksTested = 10 // by TestLanesOfBlocks
