package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

var origin = wire.MustName("example.org")

// records are records out of words: soa7 is the SOA record with serial 7, a a host with an address, x. a foreign name;
// else a record as it is written.
func records(t testing.TB, words ...string) (rrs []dns.RR) {
	t.Helper()
	for _, w := range words {
		text := w
		switch serial, soa := strings.CutPrefix(w, "soa"); {
		case soa:
			text = "example.org. 300 IN SOA ns.example.org. hostmaster.example.org. " + serial + " 7200 3600 1209600 300"
		case w == "foreign":
			text = "www.example.net. 300 IN A 192.0.2.1"
		case !strings.Contains(w, " "):
			text = w + ".example.org. 300 IN A 192.0.2.1"
		}
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		rrs = append(rrs, rr)
	}
	return rrs
}

func build(t testing.TB, words ...string) *zone.Zone {
	t.Helper()
	b := zone.NewBuilder(origin, t.Logf)
	for _, rr := range records(t, words...) {
		if err := b.AddRR(rr); err != nil {
			t.Fatal(err)
		}
	}
	z, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// primary answers queries by their type with messages, each a line of words; some words do other things than send
// records.
type primary struct {
	t       testing.TB
	scripts map[uint16][]string
	secret  string // signs if it is set

	mu    sync.Mutex
	asked []*dns.Msg
	ended int // connections
}

const keyName = "key.example.org."

func (p *primary) start() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				p.serve(&dns.Conn{Conn: c})
				p.mu.Lock()
				p.ended++
				p.mu.Unlock()
			})
		}
	})
	p.t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

func (p *primary) serve(c *dns.Conn) {
	packet, err := c.ReadMsgHeader(nil)
	if err != nil {
		return
	}
	q := new(dns.Msg)
	if q.Unpack(packet) != nil {
		return
	}
	p.mu.Lock()
	p.asked = append(p.asked, q)
	p.mu.Unlock()
	mac := ""
	if s := q.IsTsig(); s != nil {
		mac = s.MAC
	}
	for i, line := range p.scripts[q.Question[0].Qtype] {
		m := new(dns.Msg).SetReply(q)
		m.Authoritative, m.Compress = true, true
		secret := p.secret
		for _, w := range strings.Split(line, ", ") {
			switch w {
			case "refused":
				m.Rcode = dns.RcodeRefused
			case "stall":
				io.Copy(io.Discard, c) // until the client gives up
				return
			case "close":
				return
			case "otherid":
				m.Id++
			case "truncated":
				m.Truncated = true
			case "unsigned":
				secret = ""
			case "garbage":
				c.Write([]byte("this is no message at all"))
				return
			case "endless":
				for {
					m.Answer = records(p.t, "h1", "h2", "h3")
					if c.WriteMsg(m) != nil {
						return
					}
				}
			case "":
			default:
				m.Answer = append(m.Answer, records(p.t, w)...)
			}
		}
		b, err := m.Pack()
		if secret != "" {
			m.SetTsig(keyName, dns.HmacSHA256, 300, time.Now().Unix())
			b, mac, err = dns.TsigGenerate(m, secret, mac, i > 0)
		}
		if err != nil {
			return
		}
		if _, err := c.Write(b); err != nil {
			return
		}
	}
	io.Copy(io.Discard, c)
}

// hosts is the zone in short: its serial, and owners of addresses.
func hosts(t testing.TB, z *zone.Zone) string {
	t.Helper()
	s := fmt.Sprint(z.Serial())
	for w := z.Walk(); ; {
		rec, ok := w.Next()
		if !ok {
			return s
		}
		if rec.Type != wire.TypeSOA && rec.Type != wire.TypeNS {
			s += " " + strings.TrimSuffix(wire.Text(rec.Owner), ".example.org.")
		}
	}
}

const secret = "c2VjcmV0LW9mLXRoZS10ZXN0"

func TestZone(t *testing.T) {
	t.Run("whole versions", testZone)
	share(t)
	t.Run("versions that share", testZone)
}

func testZone(t *testing.T) {
	old := []string{"soa7", "example.org. 300 IN NS ns.example.org.", "a", "b"}
	ns := "example.org. 300 IN NS ns.example.org."
	for _, tc := range []struct {
		what       string
		old        bool
		axfr, ixfr []string
		key        string // of the client; the primary's is the test's
		limits     Limits
		want       string
	}{
		{what: "one message", axfr: []string{"soa8, " + ns + ", a, c, soa8"}, want: "8 a c"},
		{what: "many messages", axfr: []string{"soa8", ns, "a, c", "", "soa8"}, want: "8 a c"},
		{what: "an empty zone", axfr: []string{"soa8, soa8"}, want: "8"},
		{what: "names in other cases", axfr: []string{"soa8, A.Example.ORG. 60 IN A 192.0.2.1, soa8"}, want: "8 a"},
		{what: "refused", axfr: []string{"refused"}, want: "the primary answers REFUSED"},
		{what: "no SOA record first", axfr: []string{"a, soa8"}, want: "the first record is no SOA record, but a.example.org. of type 1"},
		{what: "nothing", axfr: []string{"", "stall"}, want: "the primary answers without records"},
		{what: "a foreign name", axfr: []string{"soa8, foreign, soa8"}, want: "record www.example.net. is not in zone example.org."},
		{what: "SOA below the apex", axfr: []string{"soa8, x.example.org. 5 IN SOA a. b. 1 2 3 4 5, soa8"}, want: "SOA record of x.example.org. in zone example.org."},
		{what: "another serial at the end", axfr: []string{"soa8, a, soa9"}, want: "the last SOA record has serial 9, the first one 8"},
		{what: "records behind the end", axfr: []string{"soa8, a, soa8, b"}, want: "there are records behind the last SOA record"},
		{what: "cut short", axfr: []string{"soa8, a", "close"}, want: "after 2 records: the primary closed the connection"},
		{what: "stalled", axfr: []string{"soa8, a", "stall"}, limits: Limits{Idle: 50 * time.Millisecond}, want: "after 2 records: read tcp"},
		{what: "endless", axfr: []string{"soa8", "endless"}, limits: Limits{Records: 1000}, want: "more than 1000 records"},
		{what: "endless in octets", axfr: []string{"soa8", "endless"}, limits: Limits{Octets: 10000}, want: "more than 10000 octets"},
		{what: "endless in time", axfr: []string{"soa8", "endless"}, limits: Limits{Total: 100 * time.Millisecond}, want: "the transfer took too long"},
		{what: "another query's answer", axfr: []string{"otherid"}, want: "a message is no answer to our query"},
		{what: "truncated", axfr: []string{"truncated"}, want: "a message is truncated"},
		{what: "garbage", axfr: []string{"garbage"}, want: "a message is no answer to our query"},

		{what: "increment", old: true, ixfr: []string{"soa8, soa7, a, soa8, c, soa8"}, want: "8 b c"},
		{what: "increment in many messages", old: true, ixfr: []string{"soa9", "soa7", "a", "soa8, c", "soa8, b", "soa9", "d", "soa9"}, want: "9 c d"},
		{what: "increment that removes only", old: true, ixfr: []string{"soa8, soa7, a, soa8, soa8"}, want: "8 b"},
		{what: "current", old: true, ixfr: []string{"soa7"}, want: ErrCurrent.Error()},
		{what: "the primary is behind", old: true, ixfr: []string{"soa6"}, want: ErrCurrent.Error()},
		{what: "all of an older version instead", old: true, ixfr: []string{"soa6, " + ns + ", x, soa6"}, want: ErrCurrent.Error()},
		{what: "all of our version instead", old: true, ixfr: []string{"soa7, " + ns + ", x, soa7"}, want: ErrCurrent.Error()},
		{what: "an increment that leads back", old: true, ixfr: []string{"soa6, soa7, a, soa6, c, soa6"}, want: ErrCurrent.Error()},
		{what: "all instead", old: true, ixfr: []string{"soa8, " + ns + ", x, soa8"}, want: "8 x"},
		{what: "refused, so all", old: true, ixfr: []string{"refused"}, axfr: []string{"soa8, y, soa8"}, want: "8 y"},
		{what: "nothing, so all", old: true, ixfr: []string{"", "stall"}, axfr: []string{"soa8, y, soa8"}, want: "8 y"},
		{what: "a newer SOA record alone, so all", old: true, ixfr: []string{"soa8", "stall"}, axfr: []string{"soa8, y, soa8"}, limits: Limits{Idle: time.Hour, Total: 10 * time.Second}, want: "8 y"},
		{what: "removes what we do not have, so all", old: true, ixfr: []string{"soa8, soa7, z, soa8, c, soa8"}, axfr: []string{"soa8, y, soa8"}, want: "8 y"},
		{what: "steps that do not meet, so all", old: true, ixfr: []string{"soa9, soa7, a, soa8, c, soa7, c, soa9, soa9"}, axfr: []string{"soa9, y, soa9"}, want: "9 y"},
		{what: "all, but older", old: true, ixfr: []string{"refused"}, axfr: []string{"soa6, y, soa6"}, want: "serial went back: 6, after 7"},

		{what: "signed", key: secret, axfr: []string{"soa8, a", "b", "soa8"}, want: "8 a b"},
		{what: "signed increment", old: true, key: secret, ixfr: []string{"soa8, soa7, a", "soa8, c, soa8"}, want: "8 b c"},
		{what: "another secret", key: "b3RoZXI=", axfr: []string{"soa8, a, soa8"}, want: "the signature of a message: "},
		{what: "a message without signature", key: secret, axfr: []string{"soa8, a", "unsigned, b", "soa8"}, want: "the signature of a message: dns: bad signature"},
	} {
		p := &primary{t: t, scripts: map[uint16][]string{dns.TypeAXFR: tc.axfr, dns.TypeIXFR: tc.ixfr}}
		c := &Client{Limits: tc.limits}
		if tc.key != "" {
			p.secret = secret
			c.Key = &Key{keyName, dns.HmacSHA256, tc.key}
		}
		c.Primary = p.start()
		var before *zone.Zone
		if tc.old {
			before = build(t, old...)
		}
		z, err := c.Zone(t.Context(), origin, before, t.Logf)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = hosts(t, z)
		}
		if err != nil && !strings.Contains(got, tc.want) || err == nil && got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.what, got, tc.want)
		}
		if tc.old {
			if s, ok := p.asked[0].Ns[0].(*dns.SOA); !ok || s.Serial != 7 || p.asked[0].Question[0].Qtype != dns.TypeIXFR {
				t.Errorf("%s: asked %v", tc.what, p.asked[0])
			}
			if hosts(t, before) != "7 a b" {
				t.Errorf("%s: the old version changed: %s", tc.what, hosts(t, before))
			}
		}
	}
}

// TestCloses: a connection ends with its transfer or question, be there an answer or none, and not with the context alone.
func TestCloses(t *testing.T) {
	p := &primary{t: t, scripts: map[uint16][]string{dns.TypeAXFR: {"soa8, a, soa8"}, dns.TypeIXFR: {"truncated"}, dns.TypeSOA: {"soa8"}}}
	c := &Client{Primary: p.start()}
	if _, err := c.Zone(t.Context(), origin, nil, t.Logf); err != nil {
		t.Error(err)
	}
	if _, err := c.Serial(t.Context(), origin); err != nil {
		t.Error(err)
	}
	p.scripts[dns.TypeAXFR] = []string{"garbage"}
	if _, err := c.Zone(t.Context(), origin, nil, t.Logf); err == nil {
		t.Error("no error")
	}
	eventually.Holds(t, "all connections end", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.ended == len(p.asked)
	})
}

func TestConnect(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{Primary: l.Addr().String()}
	l.Close()
	if _, err := c.Zone(t.Context(), origin, nil, t.Logf); !errors.Is(err, ErrConnect) {
		t.Errorf("got %v", err)
	}
	if _, err := c.Serial(t.Context(), origin); !errors.Is(err, ErrConnect) {
		t.Errorf("got %v", err)
	}
}

func TestSerial(t *testing.T) {
	for answer, want := range map[string]string{"soa8": "8", "a": "0 the answer has no SOA record of example.org.", "refused": "0 the primary answers REFUSED"} {
		p := &primary{t: t, scripts: map[uint16][]string{dns.TypeSOA: {answer}}}
		c := &Client{Primary: p.start()}
		serial, err := c.Serial(t.Context(), origin)
		got := fmt.Sprint(serial)
		if err != nil {
			got += " " + err.Error()
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", answer, got, want)
		}
	}
}

// TestCancel: who ends the server does not wait for a primary that says nothing.
func TestCancel(t *testing.T) {
	p := &primary{t: t, scripts: map[uint16][]string{dns.TypeAXFR: {"soa8", "stall"}}}
	c := &Client{Primary: p.start()}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begin := time.Now()
	if _, err := c.Zone(ctx, origin, nil, t.Logf); err == nil || time.Since(begin) > 3*time.Second {
		t.Errorf("%v after %s", err, time.Since(begin))
	}
}

// TestNames: names that a primary compressed, in types where it should not have as well, come in full.
func TestNames(t *testing.T) {
	for _, text := range []string{
		"example.org. 300 IN SOA ns.example.org. hostmaster.example.org. 1 2 3 4 5",
		"example.org. 300 IN MX 10 mx.example.org.",
		"example.org. 300 IN RP a.example.org. b.example.org.",
		"example.org. 300 IN SRV 1 2 3 host.example.org.",
		"example.org. 300 IN NAPTR 1 2 \"u\" \"sip\" \"!a!b!\" next.example.org.",
		"example.org. 300 IN NAPTR 1 2 \"\" \"\" \"\" next.example.org.",
		"example.org. 300 IN RRSIG A 13 2 300 20450101000000 20200101000000 1 example.org. c2ln",
		"example.org. 300 IN AFSDB 1 db.example.org.",
		"example.org. 300 IN PX 1 a.example.org. b.example.org.",
	} {
		rr, err := dns.NewRR(text)
		if err != nil {
			t.Fatal(err)
		}
		plain := make([]byte, 512)
		n, err := dns.PackRR(rr, plain, 0, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		full := plain[len(origin)+10 : n]
		// The same with each example.org. as a pointer to the question.
		header := make([]byte, wire.HeaderLen)
		header[2], header[5], header[7] = 0x80, 1, 1
		msg := append(append(header, origin...), 0, 6, 0, 1)
		msg = append(msg, 0xc0, wire.HeaderLen)
		msg = append(msg, plain[len(origin):len(origin)+8]...)
		short := []byte(strings.ReplaceAll(string(full), string(origin), "\xc0\x0c"))
		msg = append(append(msg, 0, byte(len(short))), short...)
		var r reader
		if err := r.reset(msg, 0); err != nil {
			t.Fatal(err)
		}
		rec, ok, err := r.next()
		if err != nil || !ok || string(rec.RData) != string(full) || string(rec.Owner) != string(origin) {
			t.Errorf("%s: got %x (%v), want %x", text, rec.RData, err, full)
		}
		if _, ok, err := r.next(); ok || err != nil {
			t.Errorf("%s: more than one record: %v", text, err)
		}
	}
}

// FuzzReader reads any message: nothing panics, and what is read can be packed again.
func FuzzReader(f *testing.F) {
	m := new(dns.Msg).SetQuestion("example.org.", dns.TypeAXFR)
	m.Response, m.Compress = true, true
	m.Answer = records(f, "soa1", "a", "example.org. 300 IN NAPTR 1 2 \"u\" \"sip\" \"!a!b!\" next.example.org.", "x.example.org. 5 IN TXT \"x\"")
	p, _ := m.Pack()
	f.Add(p)
	m.SetTsig(keyName, dns.HmacSHA256, 300, 1)
	signed, _, _ := dns.TsigGenerate(m, secret, "", false)
	f.Add(signed)
	f.Fuzz(func(t *testing.T, msg []byte) {
		var r reader
		if len(msg) < 2 || r.reset(msg, uint16(msg[0])<<8|uint16(msg[1])) != nil {
			return
		}
		r.signature()
		s := newStream(origin, nil, func(string, ...any) {})
		for {
			rec, ok, err := r.next()
			if err != nil || !ok {
				break
			}
			if _, err := rec.RR(); err != nil {
				t.Fatalf("%v: %v", rec, err)
			}
			if s.take(rec) != nil {
				return
			}
		}
		if s.ended() {
			s.build()
		}
	})
}

// lines is all records of a zone.
func lines(t testing.TB, z *zone.Zone) (all []string) {
	t.Helper()
	w := z.Walk()
	for rec, ok := w.Next(); ok; rec, ok = w.Next() {
		rr, err := rec.RR()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rr.String())
	}
	return all
}

// The certificate of a primary is for its address, whatever interface leads there: with that in the name none would do.
func TestAddressOfCertificate(t *testing.T) {
	for primary, want := range map[string]string{
		"192.0.2.1:853": "192.0.2.1", "[2001:db8::1]:853": "2001:db8::1", "[fe80::1%eth0]:853": "fe80::1",
	} {
		if got := addressOf(primary); got != want {
			t.Errorf("%s: %q, want %q", primary, got, want)
		}
	}
}
