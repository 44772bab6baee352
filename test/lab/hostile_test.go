package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire/wiretest"

	"github.com/miekg/dns"
)

// hostile is a signed zone below the root that wants a validator to work.
type hostile struct {
	*pen
	name  string
	keys  []dns.RR                               // of its DNSKEY RRset
	ds    []dns.RR                               // that the root has of it
	sign  func(p *pen, set ...dns.RR) []dns.RR   // a set with its signatures
	reply func(h *hostile, name string) *dns.Msg // to a name below it
}

// newHostile is a zone with nothing wrong in it.
func newHostile(name string, algorithm uint8, bits int) *hostile {
	p := penOf(name, algorithm, bits)
	return &hostile{name: name, pen: p, keys: []dns.RR{p.key}, ds: []dns.RR{p.key.ToDS(dns.SHA256)}, sign: spoiled(0), reply: address}
}

func address(h *hostile, name string) *dns.Msg {
	return &dns.Msg{Answer: h.sign(h.pen, record(name+" 300 IN A 192.0.2.1"))}
}

// spoiled signs a set, and puts so many signatures that do not hold before the one that does.
func spoiled(n int) func(p *pen, set ...dns.RR) []dns.RR {
	return func(p *pen, set ...dns.RR) []dns.RR {
		good, all := p.sign(set, nil), set[:len(set):len(set)]
		for i := range n {
			bad := dns.Copy(good).(*dns.RRSIG)
			bad.Expiration -= uint32(i + 1)
			all = append(all, bad)
		}
		return append(all, good)
	}
}

// keysWell signs the keys as is right, and all else by sign.
func keysWell(sign func(p *pen, set ...dns.RR) []dns.RR) func(p *pen, set ...dns.RR) []dns.RR {
	return func(p *pen, set ...dns.RR) []dns.RR {
		if set[0].Header().Rrtype == dns.TypeDNSKEY {
			return spoiled(0)(p, set...)
		}
		return sign(p, set...)
	}
}

// twins are other keys with the tag of an RSA key, which is a sum of words of two octets: two of these change places.
func twins(k *dns.DNSKEY, n int) (all []dns.RR) {
	for i := range n {
		b, err := base64.StdEncoding.DecodeString(k.PublicKey)
		if err != nil {
			panic(err)
		}
		one, two := 20+4*i, 22+4*i
		b[one], b[one+1], b[two], b[two+1] = b[two], b[two+1], b[one], b[one+1]
		t := dns.Copy(k).(*dns.DNSKEY)
		t.PublicKey = base64.StdEncoding.EncodeToString(b)
		if t.KeyTag() != k.KeyTag() || t.PublicKey == k.PublicKey {
			panic("no twin")
		}
		all = append(all, t)
	}
	return all
}

// wrongDS is so many DS records for none of its keys.
func (h *hostile) wrongDS(n int) (all []dns.RR) {
	for i := range n {
		d := h.key.ToDS(dns.SHA256)
		d.Digest = fmt.Sprintf("%064x", i)
		all = append(all, d)
	}
	return all
}

// nsec3 denies by the records of so many chains, each with a salt of so many octets.
func nsec3(iterations, salt, chains int) func(h *hostile, name string) *dns.Msg {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUV"
	return func(h *hostile, name string) *dns.Msg {
		m := &dns.Msg{Ns: h.soa()}
		m.Rcode = dns.RcodeNameError
		for i := range chains {
			hex := strings.Repeat(fmt.Sprintf("%02x", i), salt)
			for _, n := range []string{h.name, "b." + h.name, "*." + h.name} {
				hash := dns.HashName(n, dns.SHA1, uint16(iterations), hex)
				last := strings.IndexByte(digits, hash[len(hash)-1])
				m.Ns = append(m.Ns, h.sign(h.pen, &dns.NSEC3{
					Hdr:  dns.RR_Header{Name: hash + "." + h.name, Rrtype: dns.TypeNSEC3, Class: dns.ClassINET, Ttl: 300},
					Hash: dns.SHA1, Iterations: uint16(iterations), SaltLength: uint8(salt), Salt: hex, HashLength: 20,
					NextDomain: hash[:len(hash)-1] + digits[(last+1)%32:][:1], TypeBitMap: []uint16{dns.TypeA, dns.TypeRRSIG},
				})...)
			}
		}
		return m
	}
}

func (h *hostile) soa() []dns.RR {
	return spoiled(0)(h.pen, record(h.name+" 300 IN SOA a. b. 1 2 3 4 300"))
}

// hostiles is the zones, with what clients hear of names in them: return code, AD, info code, text.
func hostiles() (all []*hostile, want map[string]string) {
	want = map[string]string{}
	add := func(name, heard string, algorithm uint8, bits int) *hostile {
		h := newHostile(name+".", algorithm, bits)
		all, want[h.name] = append(all, h), heard
		return h
	}
	const ec, rsa = dns.ECDSAP256SHA256, dns.RSASHA256
	add("good", "NOERROR 1 ", ec, 256)

	// Signatures (CVE-2023-50387): of 8 one holds, of 61 none that is looked at, and each of many may be of each of many keys.
	add("some-signatures", "NOERROR 1 ", ec, 256).sign = spoiled(7)
	add("signatures", "SERVFAIL 0 6 no good RRSIG for", ec, 256).sign = keysWell(spoiled(60))
	trap := add("keytrap", "SERVFAIL 0 5 budget keys_per_tag", rsa, 2048)
	trap.keys, trap.sign = append(twins(trap.key, 12), trap.key), keysWell(spoiled(30))
	trap = add("keytrap-keys", "SERVFAIL 0 5 budget keys_per_tag", rsa, 2048) // which are signed so, too
	trap.keys, trap.sign = append(twins(trap.key, 12), trap.key), spoiled(12)

	h := add("ds", "SERVFAIL 0 9 no DNSKEY matches DS of ds.", ec, 256)
	h.ds = h.wrongDS(250)
	h = add("more-ds", "SERVFAIL 0 24 an RRset has too many records", ec, 256)
	h.ds = h.wrongDS(500)

	// Hashes (CVE-2023-50868): of a long name, long salts, many chains.
	add("nsec3", "SERVFAIL 0 5 budget nsec3_hashes", ec, 256).reply = nsec3(50, 0, 1)
	add("nsec3-salt", "SERVFAIL 0 5 budget nsec3_hashes", ec, 256).reply = nsec3(50, 250, 1)
	add("nsec3-names", "SERVFAIL 0 5 budget nsec3_", ec, 256).reply = nsec3(0, 0, 1)
	add("nsec3-chains", "SERVFAIL 0 5 budget nsec", ec, 256).reply = nsec3(10, 10, 60)

	add("any", "SERVFAIL 0 5 budget rrsets_any", ec, 256).reply = func(h *hostile, name string) *dns.Msg {
		m := new(dns.Msg)
		for i := range 300 {
			m.Answer = append(m.Answer, h.sign(h.pen, record(fmt.Sprintf("%s 300 IN TYPE%d \\# 1 00", name, 65000+i)))...)
		}
		return m
	}
	add("chain", "SERVFAIL 0 5 budget checks", ec, 256).reply = func(h *hostile, name string) *dns.Msg {
		m := new(dns.Msg)
		for i := range 10 {
			next := fmt.Sprintf("%d.%s", i, name)
			m.Answer = append(m.Answer, spoiled(7)(h.pen, record(name+" 300 IN CNAME "+next))...)
			name = next
		}
		m.Answer = append(m.Answer, spoiled(7)(h.pen, record(name+" 300 IN A 192.0.2.1"))...)
		return m
	}
	together(add)
	return all, want
}

// together adds zones that want work of two kinds, each of which has a budget of its own.
func together(add func(name, heard string, algorithm uint8, bits int) *hostile) {
	const ec, slow, rsa = dns.ECDSAP256SHA256, dns.ECDSAP384SHA384, dns.RSASHA256
	large := func(h *hostile, name string) *dns.Msg { // 50,000 octets are sorted and digested for each signature
		if dns.CountLabel(name) < 100 {
			return address(h, name)
		}
		var set []dns.RR
		for i := range 200 {
			set = append(set, record(fmt.Sprintf("%s 300 IN TXT %03d%s", name, 200-i, strings.Repeat("x", 240))))
		}
		return &dns.Msg{Answer: h.sign(h.pen, set...)}
	}
	h := add("signatures-large", "SERVFAIL 0 6 no good RRSIG for", slow, 384)
	h.sign, h.reply = keysWell(spoiled(30)), large
	h = add("keytrap-large", "SERVFAIL 0 5 budget keys_per_tag", rsa, 4096)
	h.keys, h.sign, h.reply = append(twins(h.key, 12), h.key), keysWell(spoiled(12)), large

	h = add("nsec3-keytrap", "SERVFAIL 0 5 budget", rsa, 2048)
	h.keys, h.sign, h.reply = append(twins(h.key, 12), h.key), keysWell(spoiled(12)), nsec3(50, 0, 1)
	h = add("nsec3-signatures", "SERVFAIL 0 ", slow, 384)
	h.sign, h.reply = keysWell(spoiled(7)), nsec3(50, 0, 2)

	h = add("ds-keytrap", "SERVFAIL 0 5 budget keys_per_tag", rsa, 4096)
	h.keys, h.sign = append(twins(h.key, 30), h.key), spoiled(12)
	h.ds = append(h.wrongDS(200), h.ds...)

	h = add("any-signatures", "SERVFAIL 0 ", slow, 384)
	h.sign, h.reply = keysWell(spoiled(8)), func(h *hostile, name string) *dns.Msg {
		m := new(dns.Msg)
		for i := range 20 {
			m.Answer = append(m.Answer, h.sign(h.pen, record(fmt.Sprintf("%s 300 IN TYPE%d \\# 1200 %s", name, 65000+i, strings.Repeat("00", 1200))))...)
		}
		return m
	}
}

// hosts is the servers of the root and of hostile zones. What they say is made once.
type hosts struct {
	root  *hostile
	zones map[string]*hostile
	hints string // file

	alone sync.Once
	bound time.Duration // see most

	took atomic.Int64 // how long a processor took to make it, in nanoseconds

	mu   sync.Mutex
	made map[string][]byte
}

const rootAt = "127.9.0.1"

// hostileAt is the servers of each hostile zone: what is bogus at one is asked of the others.
var hostileAt = []string{"127.9.6.1", "127.9.6.2", "127.9.6.3", "127.9.6.4"}

// reply is what the server at an address says.
func (s *hosts) reply(at string, q dns.Question, tcp bool) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	q.Name = strings.ToLower(q.Name)
	key := fmt.Sprint(at == rootAt, tcp, q.Name, q.Qtype)
	if s.made[key] == nil {
		began := processor()
		labels := dns.SplitDomainName(q.Name)
		h := s.root
		if q.Name != "." {
			h = s.zones[labels[len(labels)-1]+"."]
		}
		if at == rootAt {
			s.made[key] = inWire(s.referral(h, q.Name, q.Qtype), q, tcp)
		} else {
			s.made[key] = inWire(h.answer(q.Name, q.Qtype), q, tcp)
		}
		s.took.Add(int64(processor() - began))
	}
	return s.made[key]
}

func (s *hosts) referral(h *hostile, name string, typ uint16) *dns.Msg {
	m, proof := new(dns.Msg), []dns.RR(nil)
	if h != nil && len(h.ds) > 0 {
		proof = s.root.sign(s.root.pen, h.ds...)
	} else if h != nil && h != s.root {
		proof = s.root.sign(s.root.pen, record(fmt.Sprintf(`%s 300 IN NSEC \000.%[1]s NS RRSIG NSEC`, h.name)))
	}
	switch {
	case h == nil:
		m.Authoritative, m.Rcode, m.Ns = true, dns.RcodeNameError, s.root.soa()
	case name == ".":
		m = h.answer(name, typ)
		m.Extra = []dns.RR{record("ns. 3600 IN A " + rootAt)}
	case name == h.name && typ == dns.TypeDS && len(h.ds) > 0:
		m.Authoritative, m.Answer = true, proof
	case name == h.name && typ == dns.TypeDS:
		m.Authoritative, m.Ns = true, append(s.root.soa(), proof...)
	default:
		m.Ns = proof
		for i, at := range hostileAt {
			m.Ns = append(m.Ns, record(fmt.Sprintf("%s 3600 IN NS ns%d.%s", h.name, i, h.name)))
			m.Extra = append(m.Extra, record(fmt.Sprintf("ns%d.%s 3600 IN A %s", i, h.name, at)))
		}
	}
	return m
}

func (h *hostile) answer(name string, typ uint16) *dns.Msg {
	m := new(dns.Msg)
	switch {
	case name == h.name && typ == dns.TypeDNSKEY:
		m.Answer = h.sign(h.pen, h.keys...)
	case name == h.name && typ == dns.TypeNS:
		m.Answer = h.sign(h.pen, record(name+" 3600 IN NS ns."+strings.TrimPrefix(name, ".")))
	case name == h.name || typ == dns.TypeNS:
		m.Ns = h.soa()
	case typ == dns.TypeDS: // nothing is below
		m.Ns = append(h.soa(), spoiled(0)(h.pen, record(fmt.Sprintf(`%s 300 IN NSEC \000.%[1]s A RRSIG NSEC`, name)))...)
	default:
		m = h.reply(h, name)
	}
	m.Authoritative = true
	return m
}

// ServeDNS implements dns.Handler. Nothing is packed twice, as what servers compute is none of the resolver's work.
func (s *hosts) ServeDNS(w dns.ResponseWriter, q *dns.Msg) {
	at, _, _ := net.SplitHostPort(w.LocalAddr().String())
	b := slices.Clone(s.reply(at, q.Question[0], w.LocalAddr().Network() == "tcp"))
	binary.BigEndian.PutUint16(b, q.Id)
	_, err := dns.PackDomainName(q.Question[0].Name, b, 12, nil, false) // the letters as they came
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(b)
}

// inWire is a reply as it is sent.
func inWire(said *dns.Msg, q dns.Question, tcp bool) []byte {
	m := new(dns.Msg).SetQuestion(q.Name, q.Qtype)
	m.RecursionDesired, m.Response, m.Compress = false, true, true
	m.Authoritative, m.Rcode, m.Answer, m.Ns, m.Extra = said.Authoritative, said.Rcode, said.Answer, said.Ns, slices.Clone(said.Extra)
	size := 1232
	if tcp {
		size = dns.MaxMsgSize
	}
	m.SetEdns0(1232, true)
	m.Truncate(size)
	b, err := m.Pack()
	if err != nil {
		panic(err)
	}
	return b
}

func (s *hosts) start(t *testing.T) {
	for _, at := range append([]string{rootAt}, hostileAt...) {
		p, err := net.ListenPacket("udp", at+":53")
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", at+":53")
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []*dns.Server{{PacketConn: p, Handler: s}, {Listener: l, Handler: s}} {
			go func() { _ = d.ActivateAndServe() }()
			t.Cleanup(func() { _ = d.Shutdown() })
		}
	}
}

// hosting serves zones.
func hosting(t *testing.T, zones []*hostile) *hosts {
	t.Helper()
	s := &hosts{root: newHostile(".", dns.ECDSAP256SHA256, 256), zones: map[string]*hostile{}, made: map[string][]byte{}, hints: filepath.Join(t.TempDir(), "hints")}
	for _, h := range zones {
		s.zones[h.name] = h
	}
	s.start(t)
	if err := os.WriteFile(s.hints, []byte(". 86400 IN NS ns.\nns. 86400 IN A "+rootAt+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *hosts) recurse(more string) string {
	return fmt.Sprintf(" recurse {\n  hints %s\n  allow_servers 127.0.0.0/8\n  family ipv4\n  %s\n }\n", s.hints, more)
}

func (s *hosts) validator(more string) string {
	return fmt.Sprintf(" validator {\n  anchor %q\n  signal off\n  %s\n }\n", strings.ReplaceAll(s.root.ds[0].String(), "\t", " "), more)
}

// awaitGood waits until a resolver answers.
func awaitGood(ours string) {
	for range 50 {
		if a, err := Ask(ours, "www.good.", dns.TypeA); err == nil && a.Addr != "" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// What hostile zones cost a resolver that validates, from the query to the reply: no more signatures and queries than a
// client's query may cost, whatever they hold (R41 to R43), no more of a processor, and the client is told why there is no
// answer.
func TestHostile(t *testing.T) {
	if !namespaced(t) {
		return
	}
	all, want := hostiles()
	s := hosting(t, all)
	validator, recurse := s.validator(""), s.recurse("")
	below := serve(t, 5402, recurse)
	for what, ours := range map[string]string{
		"recurse": serve(t, 5401, validator+recurse), "forward": serve(t, 5403, validator+" forward . "+below), "cached": serve(t, 5404, " cache\n"+validator+recurse),
	} {
		awaitGood(ours)
		for _, h := range all {
			t.Run(what+" "+h.name, func(t *testing.T) { s.costs(t, ours, h, want[h.name]) })
		}
	}
}

// costs asks for names in a hostile zone.
func (s *hosts) costs(t *testing.T, ours string, h *hostile, want string) {
	least, typ := time.Hour, dns.TypeA
	switch {
	case strings.HasPrefix(h.name, "any"):
		typ = dns.TypeANY
	case strings.HasSuffix(h.name, "large."):
		typ = dns.TypeTXT
	}
	for i := range 4 {
		checks, queries, began := counted(t, "coredns_validator_checks_total"), upstream(t), s.others()
		got, m := said(t, ours, fmt.Sprintf("%sn%d.b.%s", strings.Repeat("a.", 100), i, h.name), typ, nil)
		least = min(least, s.others()-began)
		if got += " " + explained(m); !strings.HasPrefix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
		if text := explained(m); len(text) > 80 {
			t.Errorf("an extended error of %d octets: %s", len(text), text)
		}
		if checks = counted(t, "coredns_validator_checks_total") - checks; checks > 48 {
			t.Errorf("%v signatures computed", checks)
		}
		if queries = upstream(t) - queries; queries > 128 {
			t.Errorf("%v queries to servers", queries)
		}
	}
	most := s.most(t)
	t.Logf("%v of a processor, the servers' sockets included, of %v", least, most)
	if least > most {
		t.Errorf("%v of a processor, want at most %v", least, most)
	}
}

// most is what a query may cost of a processor: 25 ms. On slow machines it is three times what as many signatures of P-384 take
// as may be checked, each of which counts as two.
func (s *hosts) most(t *testing.T) time.Duration {
	s.alone.Do(func() {
		key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		sum := make([]byte, 48)
		sig, err := ecdsa.SignASN1(rand.Reader, key, sum)
		if err != nil {
			t.Fatal(err)
		}
		s.bound = max(25*time.Millisecond, 3*wiretest.Cost(t, func() {
			for range 24 {
				ecdsa.VerifyASN1(&key.PublicKey, sum, sig)
			}
		}))
	})
	return s.bound
}

// explained is the text of the extended error of a message.
func explained(m *dns.Msg) (text string) {
	for _, o := range m.IsEdns0().Option {
		if e, ok := o.(*dns.EDNS0_EDE); ok {
			text += e.ExtraText
		}
	}
	return text
}

// others is how long this process has computed, but for what s had to make.
func (s *hosts) others() time.Duration { return processor() - time.Duration(s.took.Load()) }

// processor is how long this process has computed.
func processor() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
