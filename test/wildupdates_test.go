package test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/loopback"
	"github.com/coredns/coredns/plugin/pkg/zone/zonetest"

	"github.com/miekg/dns"
)

// rawUpdate is an UPDATE as octets, also one that no library would write.
type rawUpdate struct {
	id      uint16
	counts  [4]uint16 // as the header tells them
	body    []byte
	meta    bool     // a prerequisite is of a meta type
	mutated bool     // data of an update are not what their type wants
	text    []string // what it is, for who reads of a difference
}

func (u *rawUpdate) String() string { return strings.Join(u.text, "\n") }

// record appends a record.
func (u *rawUpdate) record(section int, owner string, typ, class uint16, ttl uint32, rdata []byte) {
	u.counts[section]++
	u.body = append(u.body, wireName(owner)...)
	u.body = binary.BigEndian.AppendUint16(u.body, typ)
	u.body = binary.BigEndian.AppendUint16(u.body, class)
	u.body = binary.BigEndian.AppendUint32(u.body, ttl)
	u.body = binary.BigEndian.AppendUint16(u.body, uint16(len(rdata)))
	u.body = append(u.body, rdata...)
	u.text = append(u.text, fmt.Sprintf("%s %s %d %s %s %x", [...]string{1: "prerequisite", 2: "update"}[section],
		owner, ttl, dns.Class(class), dns.Type(typ), rdata))
}

// zone appends what the message is for.
func (u *rawUpdate) zone() {
	u.counts[0] = 1
	u.body = append(wireName("example.org."), 0, byte(dns.TypeSOA), 0, dns.ClassINET)
}

// refused reports whether there are types of DNSSEC in it, which this server does not take, and named may.
func (u *rawUpdate) refused() bool {
	return slices.ContainsFunc(u.text, func(l string) bool {
		return slices.ContainsFunc([]string{" RRSIG ", " NSEC ", " DNSKEY ", " NSEC3 ", " NSEC3PARAM ", " KEY ", " ZONEMD "}, func(s string) bool { return strings.Contains(l, s) })
	})
}

// wireData is the type and the data in wire form of a record, of which names are below example.org.
func wireData(text string) (typ uint16, rdata []byte) {
	rr, err := dns.NewRR("$ORIGIN example.org.\n. 0 IN " + text)
	if err != nil {
		panic(text + ": " + err.Error())
	}
	b := make([]byte, dns.Len(rr)+1)
	end, err := dns.PackRR(rr, b, 0, nil, false)
	if err != nil {
		panic(text + ": " + err.Error())
	}
	return rr.Header().Rrtype, b[11:end]
}

func wireName(s string) []byte {
	b := make([]byte, 256)
	n, err := dns.PackDomainName(s, b, 0, nil, false)
	if err != nil {
		panic(s)
	}
	return b[:n]
}

// packed is the message, signed by updateKey.
func (u *rawUpdate) packed(now time.Time) []byte {
	m := binary.BigEndian.AppendUint16(nil, u.id)
	m = binary.BigEndian.AppendUint16(m, uint16(dns.OpcodeUpdate)<<11)
	for _, n := range u.counts {
		m = binary.BigEndian.AppendUint16(m, n)
	}
	m = append(m, u.body...)
	secret, _ := base64.StdEncoding.DecodeString(updateSecret)
	h := hmac.New(sha256.New, secret)
	h.Write(m)
	algorithm := wireName(dns.HmacSHA256)
	key := wireName(updateKey)
	signed := binary.BigEndian.AppendUint64(nil, uint64(now.Unix()))[2:]
	signed = binary.BigEndian.AppendUint16(signed, 300)
	vars := slices.Concat(key, []byte{0, 255, 0, 0, 0, 0}, algorithm, signed, []byte{0, 0, 0, 0})
	h.Write(vars)
	mac := h.Sum(nil)
	rdata := slices.Concat(algorithm, signed, []byte{0, byte(len(mac))}, mac, m[:2], []byte{0, 0, 0, 0})
	m = slices.Concat(m, key, []byte{0, 250, 0, 255, 0, 0, 0, 0}, binary.BigEndian.AppendUint16(nil, uint16(len(rdata))), rdata)
	binary.BigEndian.PutUint16(m[10:], u.counts[3]+1)
	return m
}

// wildNames are where wild updates meet.
var wildNames = []string{
	"example.org.", "a.example.org.", "b.example.org.", "x.a.example.org.", "*.example.org.", "*.a.example.org.", "www.example.org.", "A.example.ORG.",
	"ns1.example.org.", "cut.example.org.", "below.cut.example.org.", "d.example.org.", "below.d.example.org.", "y.ent.example.org.", "ent.example.org.",
	"x.*.example.org.", `dot\.dot.example.org.`, `\000\255.example.org.`,
}

var strangeNames = []string{"example.com.", ".", "org.", "xexample.org.", "a.example.com."}

var wildData = []string{
	"A 192.0.2.%d", "AAAA 2001:db8::%d", "TXT t%d", "TXT \"\"", "CNAME c%d.example.org.", "MX %d a.example.org.", "NS ns%d.example.net.", "PTR P%d.Example.org.",
	"SRV 0 0 %d a.example.org.", "DNAME d%d.example.net.", "SOA ns1 hostmaster %d 7200 3600 1209600 60", "CAA 0 issue \"ca%d\"", "HINFO a b%d", "TLSA 3 1 1 0%d",
	"TYPE65280 \\# 1 0%d", "DS %d 13 2 3fc0c8f3d3a3b9a0f1c7d6f4b8b7e1f3a1e4b8b7e1f3a1e4b8b7e1f3a1e4b8b7", "SVCB %d svc.example.org. alpn=h2", "HTTPS %d . alpn=h2",
	"NAPTR %d 10 \"u\" \"sip\" \"!^.*$!sip:x!\" .", "LOC 51 30 %d.000 N 0 7 0.000 W 0.00m 1m 10000m 10m", "SSHFP 1 1 000000000000000000000000000000000000000%d", "RP a.example.org. t%d.example.org.",
	"KX %d a.example.org.", "AFSDB %d a.example.org.", "SPF s%d", "DHCID 0%dAA", "URI 1 %d \"http://a/\"", "NULL \\# 1 0%d", "RRSIG A 13 2 60 20300101000000 20200101000000 %d example.org. AAAA", "NSEC n%d.example.org. A",
	"DNSKEY 256 3 13 AAA%d", "NSEC3PARAM 1 0 0 0%d", "NSEC3 1 0 0 - 2vptu5timamqttgl4luu9kg21e0aor3s A", "KEY 256 3 13 AAA%d", "APL 1:192.0.2.%d/32",
	"ZONEMD %d 1 1 c68090d90a7aed716bc459f9340e3d7c1370d4d24b7e2fc3a1ddc0b9a87153b9a9713b3c9ae5cc27777f98b8e730044c",
}

const wildSeed = `$ORIGIN example.org.
$TTL 300
@ SOA ns1 hostmaster 10 7200 3600 1209600 60
@ NS ns1.example.net.
@ NS ns2.example.net.
www A 192.0.2.1
`

// meant tells why this server and named may answer differently, "" if they may not.
func (u *rawUpdate) meant(ours, theirs int) string {
	has := func(all ...string) bool {
		return slices.ContainsFunc(u.text, func(l string) bool {
			return !slices.ContainsFunc(all, func(s string) bool { return !strings.Contains(l+"$", s) })
		})
	}
	is := func(code int, codes ...int) bool { return slices.Contains(codes, code) }
	const formErr, nxDomain, refused, yxDomain, yxRRset, nxRRset, notAuth, notZone = 1, 3, 5, 6, 7, 8, 9, 10
	switch {
	case is(ours, nxDomain, yxDomain, yxRRset, nxRRset) && is(theirs, notZone, formErr, refused):
		return "named looks at the updates before the prerequisites (RFC 2136 §3.2, §3.4)"
	case is(ours, formErr) && has("update", " IN SOA "):
		return "an SOA record elsewhere, which named ignores (§3.4.2.2)"
	case (is(ours, formErr) || is(theirs, formErr)) && u.mutated:
		return "data that one knows more of: how long digests are, patterns, characters"
	case is(ours, formErr, notZone) && is(theirs, formErr, notZone):
		return "two faults, of which either may come first"
	case is(ours, formErr) && u.meta:
		return "a prerequisite of a type that no record has"
	case is(ours, formErr) && (has("prerequisite", " IN ANY ") || has(" None ")):
		return "type ANY in the zone's class, and type 0"
	case is(ours, formErr) && is(theirs, refused) && has("counts"):
		return "a header that lies, so that the signature is in another section"
	case is(theirs, formErr) && has("update", " NONE ", " $"):
		return "to delete a record without data"
	case is(ours, refused) && is(theirs, notAuth, formErr, dns.RcodeNotImplemented) && has("octet"):
		return "a zone of no server block"
	}
	return ""
}

// meantZones tells why the zones may be different, "" if they may not.
func (u *rawUpdate) meantZones(different []string, ours, theirs uint32) string {
	switch {
	case len(different) == 0 && theirs == ours+1:
		return "named counts changes that cancel each other, and a name in another case"
	case slices.ContainsFunc(different, func(l string) bool { ttl, _ := strconv.ParseUint(strings.Fields(l)[1], 10, 32); return ttl >= 1<<31 }):
		return "a TTL with the first bit set counts as 0 (RFC 2181 §8), and named keeps it"
	case u.refused():
		return "an octet made another type of one that this server does not take"
	case len(different) > 0 && !slices.ContainsFunc(different, func(l string) bool { return !strings.Contains(l, " in ds ") }):
		return "named drops DS records where no zone is cut"
	}
	return ""
}

// wildUpdate is an UPDATE of which a part is not as RFC 2136 wants it.
func wildUpdate(r *rand.Rand, serial uint32) *rawUpdate {
	u := &rawUpdate{id: uint16(r.Uint32())}
	rarely := func(n int) bool { return r.IntN(n) == 0 }
	name := func() string {
		if rarely(60) {
			return strangeNames[r.IntN(len(strangeNames))]
		}
		n := wildNames[r.IntN(len(wildNames))]
		if r.IntN(2) == 0 {
			n = wildNames[r.IntN(6)]
		}
		return n
	}
	data := func() (typ uint16, rdata []byte) {
		datum := wildData[r.IntN(len(wildData))]
		if r.IntN(2) == 0 {
			datum = wildData[r.IntN(11)]
		}
		n := uint32(1 + r.IntN(3))
		if strings.HasPrefix(datum, "SOA") {
			n = serial - 2 + uint32(r.IntN(5))
			switch r.IntN(20) {
			case 0:
				n = 0
			case 1:
				n = serial - 1000
			case 2:
				n = serial + 1000
			}
		}
		if strings.Contains(datum, "%d") {
			datum = fmt.Sprintf(datum, n)
		}
		return wireData(datum)
	}
	meta := []uint16{dns.TypeANY, dns.TypeAXFR, dns.TypeIXFR, dns.TypeMAILA, dns.TypeMAILB, dns.TypeOPT, dns.TypeTSIG, dns.TypeTKEY, 0, 128, 200, 248}
	ttl := func() uint32 {
		if rarely(20) {
			return []uint32{0, 1, 1<<31 - 1}[r.IntN(3)]
		}
		return uint32(60 * (1 + r.IntN(2)))
	}
	class := func(c uint16) uint16 {
		if rarely(100) {
			return []uint16{0, 2, dns.ClassCHAOS, dns.ClassNONE, dns.ClassANY, dns.ClassINET}[r.IntN(6)]
		}
		return c
	}
	u.zone()
	for n := r.IntN(3); n > 0; n-- {
		typ, rdata := data()
		if rarely(60) {
			typ = meta[r.IntN(len(meta))]
			u.meta = true
		}
		t := uint32(0)
		if rarely(60) {
			t = ttl()
		}
		switch r.IntN(5) {
		case 0:
			u.record(1, name(), typ, class(dns.ClassINET), t, rdata)
		default:
			if r.IntN(3) == 0 {
				typ = dns.TypeANY
			}
			if !rarely(60) {
				rdata = nil
			}
			u.record(1, name(), typ, class([]uint16{dns.ClassANY, dns.ClassNONE}[r.IntN(2)]), t, rdata)
		}
	}
	for n := 1 + r.IntN(4); n > 0; n-- {
		typ, rdata := data()
		if rarely(60) {
			typ = meta[r.IntN(len(meta))]
		}
		if rarely(40) && len(rdata) > 0 && typ != dns.TypeAPL { // whose other families no client here can read
			u.mutated = true
			switch r.IntN(3) {
			case 0:
				rdata = rdata[:r.IntN(len(rdata))]
			case 1:
				rdata = append(rdata, byte(r.Uint32()))
			case 2:
				rdata[r.IntN(len(rdata))] = byte(r.Uint32())
			}
		}
		t := uint32(0)
		if rarely(60) {
			t = ttl()
		}
		switch r.IntN(6) {
		case 0, 1, 2:
			owner := name()
			if owner[0] == '*' && (typ == dns.TypeNS || typ == dns.TypeDNAME) || typ == dns.TypeDS && owner != "cut.example.org." {
				owner = "www.example.org." // named takes no such wildcards, and no DS records where no zone is cut
			}
			if typ == dns.TypeDS {
				u.record(2, owner, dns.TypeNS, dns.ClassINET, 60, wireName("ns1.example.net."))
			}
			for range 1 + r.IntN(20)/19 {
				u.record(2, owner, typ, class(dns.ClassINET), ttl(), rdata)
			}
		case 3:
			u.record(2, name(), typ, class(dns.ClassNONE), t, rdata)
		case 4:
			if !rarely(60) {
				rdata = nil
			}
			u.record(2, name(), typ, class(dns.ClassANY), t, rdata)
		case 5:
			u.record(2, name(), dns.TypeANY, class(dns.ClassANY), t, nil)
		}
	}
	if rarely(100) {
		at := r.IntN(4)
		u.counts[at] += uint16(r.IntN(3) - 1)
		u.text = append(u.text, fmt.Sprintf("counts %v", u.counts))
	}
	if rarely(100) {
		u.body = append(u.body, byte(r.Uint32()))
		u.text = append(u.text, "an octet more")
	}
	if rarely(150) {
		at := r.IntN(len(u.body))
		u.body[at] = byte(r.Uint32())
		u.text = append(u.text, fmt.Sprintf("octet %d is %d", at, u.body[at]))
	}
	return u
}

// line is a connection that messages are sent over one after the other.
type line struct {
	addr string
	conn net.Conn
}

func (l *line) close() {
	if l.conn != nil {
		l.conn.Close()
	}
}

// exchange sends a message; the rcode is -1 if there is no answer.
func (l *line) exchange(m []byte) (rcode int) {
	if l.conn == nil {
		c, err := net.Dial("tcp", l.addr)
		if err != nil {
			return -1
		}
		l.conn = c
	}
	l.conn.SetDeadline(time.Now().Add(2 * time.Second))
	l.conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(m))), m...))
	for {
		var n [2]byte
		if _, err := io.ReadFull(l.conn, n[:]); err != nil {
			break
		}
		b := make([]byte, binary.BigEndian.Uint16(n[:]))
		if _, err := io.ReadFull(l.conn, b); err != nil || len(b) < 12 {
			break
		}
		if bytes.Equal(b[:2], m[:2]) {
			return int(b[3] & 15)
		}
	}
	l.conn.Close()
	l.conn = nil
	return -1
}

// TestWildUpdatesAsNamed sends the same messages to this server and to named, many of which are wrong in some way: the
// codes are the same, and after each the zones, but for what meant knows.
func TestWildUpdatesAsNamed(t *testing.T) {
	dir := t.TempDir()
	seed := filepath.Join(t.TempDir(), "db")
	port := loopback.Port()
	corefile := dynamicCorefile(t, dir, port, "transfer {\nto *\n}", "allow "+updateKey+" * DS CDS CDNSKEY")
	for _, path := range []string{seed, filepath.Join(dir, "db")} {
		if err := os.WriteFile(path, []byte(wildSeed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	peer, _ := zonetest.Serve(t, "named", zonetest.Setup{Zone: "example.org", File: seed, Algorithm: "hmac-sha256", Secret: updateSecret, Update: true})
	zonetest.Await(t, peer, "example.org.", 10)
	start(t, corefile)
	ours, theirs := &line{addr: fmt.Sprintf("127.0.0.1:%d", port)}, &line{addr: peer}
	defer ours.close()
	defer theirs.close()
	r := rand.New(rand.NewPCG(1, 2))
	serial := uint32(10)
	codes := map[string]int{}
	for i := range 1500 {
		u := wildUpdate(r, serial)
		m := u.packed(time.Now())
		x := ours.exchange(m)
		y := x
		if x != dns.RcodeNotImplemented && !u.refused() {
			y = theirs.exchange(m)
		}
		codes[dns.RcodeToString[x]]++
		why := u.meant(x, y)
		switch {
		case x != y && why == "":
			t.Errorf("update %d: %s, and %s by named:\n%v", i, dns.RcodeToString[x], dns.RcodeToString[y], u)
		case x != y:
			codes[why]++
		}
		mine, ourSerial := fetched(t, ours.addr, updateKey)
		other, otherSerial := fetched(t, peer, updateKey)
		if serial = ourSerial; slices.Equal(mine, other) && ourSerial == otherSerial {
			continue
		}
		if x == y {
			only, missing := without(mine, other), without(other, mine)
			if why := u.meantZones(slices.Concat(only, missing), ourSerial, otherSerial); why != "" {
				codes[why]++
			} else {
				t.Errorf("update %d (%s):\n%v\nonly here:\n%s\nonly in named's zone:\n%s\nserials %d and %d", i, dns.RcodeToString[x], u,
					strings.Join(only, "\n"), strings.Join(missing, "\n"), ourSerial, otherSerial)
			}
		}
		if t.Failed() {
			t.FailNow()
		}
		serial = beginAnew(t, ours, theirs, slices.Concat(mine, other), max(ourSerial, otherSerial))
	}
	t.Log(codes)
}

// without is the lines of a that b does not have.
func without(a, b []string) (c []string) {
	for _, l := range a {
		if !slices.Contains(b, l) {
			c = append(c, l)
		}
	}
	return c
}

// beginAnew makes both have the seed, with a newer serial, which it returns.
func beginAnew(t *testing.T, a, b *line, lines []string, serial uint32) uint32 {
	t.Helper()
	serial += 10
	u := &rawUpdate{id: uint16(serial)}
	u.zone()
	for _, l := range lines {
		u.record(2, strings.TrimPrefix(strings.Fields(l)[0], ";"), dns.TypeANY, dns.ClassANY, 0, nil)
	}
	for _, l := range strings.Split(fmt.Sprintf("example.org. NS ns1.example.net.|example.org. NS ns2.example.net.|www.example.org. A 192.0.2.1|"+
		"example.org. SOA ns1.example.org. hostmaster.example.org. %d 7200 3600 1209600 60", serial), "|") {
		owner, datum, _ := strings.Cut(l, " ")
		typ, rdata := wireData(datum)
		u.record(2, owner, typ, dns.ClassINET, 300, rdata)
	}
	for _, l := range lines {
		if f := strings.Fields(l); f[0] == "example.org." && f[3] == "ns" && f[4] != "ns1.example.net." && f[4] != "ns2.example.net." {
			u.record(2, "example.org.", dns.TypeNS, dns.ClassNONE, 0, wireName(f[4]))
		}
	}
	m := u.packed(time.Now())
	if x, y := a.exchange(m), b.exchange(m); x != 0 || y != 0 {
		t.Fatalf("cannot begin anew: %d %d %v", x, y, u)
	}
	return serial
}
