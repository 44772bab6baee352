package replacer_test

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/replacer"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// every holds all variables.
const every = "{type} {class} {name} {proto} {size} {remote} {port} {local} {>id} {>opcode} {>do} {>bufsize} {rcode} {>rflags} {rsize}"

func query(do bool) *dns.Msg {
	m := new(dns.Msg).SetQuestion("WWW.Example.org.", dns.TypeHTTPS)
	m.Id, m.CheckingDisabled = 7, true
	if do {
		m.SetEdns0(1400, true)
	}
	return m
}

func TestReplace(t *testing.T) {
	ctx := metadata.ContextWithMetadata(t.Context())
	metadata.SetValueFunc(ctx, "view/name", func() string { return "golden" })
	metadata.SetValueFunc(ctx, "a/b/c", func() string { return "" })
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	reply := new(dns.Msg).SetReply(query(false))
	reply.Authoritative = true
	rec.WriteMsg(reply)

	for format, want := range map[string]string{
		every:                "HTTPS IN www.example.org. udp 44 10.240.0.1 40212 127.0.0.1 7 0 true 1400 NOERROR qr,aa,rd,cd 33",
		"":                   "",
		"text":               "text",
		"{":                  "{",
		"}{":                 "}{",
		"{}":                 "{}",
		"{type":              "{type",
		"{{type}}":           "{HTTPS}",
		"{not {type}":        "{not HTTPS",
		"a{type}b{class}c":   "aHTTPSbINc",
		"{TYPE} {unknown}":   "{TYPE} {unknown}",
		"{/view/name}":       "golden",
		"{/a/b/c}|":          "|",
		"{/none/such}":       "-",
		"{/nolabel} {//a}":   "{/nolabel} {//a}",
		"{{/view/name}":      "{golden",
		"{type}\n{name} é {": "HTTPS\nwww.example.org. é {",
	} {
		state := request.Request{W: &test.ResponseWriter{}, Req: query(true)}
		if got := replacer.New().Replace(ctx, state, rec, format); got != want {
			t.Errorf("%q:\n got %q\nwant %q", format, got, want)
		}
	}
	state := request.Request{W: &test.ResponseWriter{}, Req: new(dns.Msg)}
	if got := replacer.New().Replace(ctx, state, nil, "{type} {class} {name}"); got != "  ." { // as request.Request says
		t.Errorf("without a question: %q", got)
	}
}

func TestAddresses(t *testing.T) {
	for _, tc := range []struct {
		w    dns.ResponseWriter
		want string
	}{
		{&test.ResponseWriter{}, "10.240.0.1 40212 127.0.0.1 udp 512"},
		{&test.ResponseWriter{TCP: true}, "10.240.0.1 40212 127.0.0.1 tcp 65535"},
		{&test.ResponseWriter6{}, "[fe80::42:ff:feca:4c65] 40212 [::1] udp 512"},
		{&test.ResponseWriter{RemoteIP: "fe80::1", Zone: "eth0"}, "[fe80::1%eth0] 40212 127.0.0.1 udp 512"},
		{&writer{remote: &net.UDPAddr{IP: net.ParseIP("::ffff:192.0.2.1"), Port: 9}}, "192.0.2.1 9 127.0.0.1 udp 512"},
		{&writer{remote: &net.UnixAddr{Name: "/run/x", Net: "unix"}}, "/run/x 0 127.0.0.1 udp 512"},
		{&writer{remote: proxied{}}, "192.0.2.7 77 127.0.0.1 udp 512"},
	} {
		state := request.Request{W: tc.w, Req: query(false)}
		if got := replacer.New().Replace(t.Context(), state, nil, "{remote} {port} {local} {proto} {>bufsize}"); got != tc.want {
			t.Errorf("got %q, want %q", got, tc.want)
		}
	}
}

// writer has a client of any kind.
type writer struct {
	test.ResponseWriter
	remote net.Addr
}

func (w *writer) RemoteAddr() net.Addr { return w.remote }

// proxied is an address of a kind of its own.
type proxied struct{}

func (proxied) Network() string { return "udp" }
func (proxied) String() string  { return "192.0.2.7:77" }

func TestReplies(t *testing.T) {
	state := request.Request{W: &test.ResponseWriter{}, Req: query(false)}
	const format = "{rcode} {>rflags} {rsize} {duration}"
	if got := replacer.New().Replace(t.Context(), state, nil, format); got != "- - - -" {
		t.Errorf("query alone: %q", got)
	}
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if got := replacer.New().Replace(t.Context(), state, rec, format); !strings.HasPrefix(got, "- - 0 0.0") || !strings.HasSuffix(got, "s") {
		t.Errorf("dropped: %q", got)
	}
	f := replacer.Facts{Reply: replacer.Reply{Over: true, Written: true, Rcode: 3841, Len: 1, Duration: time.Nanosecond}}
	if got := string(replacer.Parse(format).Append(nil, t.Context(), &f)); got != "3841 - 1 0.000000001s" {
		t.Errorf("odd reply: %q", got)
	}
	f = replacer.Facts{Type: 65280, Class: 7, Reply: replacer.Reply{Over: true, Written: true, Flags: 0xffff}}
	if got := string(replacer.Parse("{type} {class} {>rflags} {remote} {port}").Append(nil, t.Context(), &f)); got != "TYPE65280 CLASS7 qr,aa,tc,rd,ra,z,ad,cd - 0" {
		t.Errorf("unknown: %q", got)
	}
}

// Both lanes tell the same about the same query and reply.
func TestLanesAgree(t *testing.T) {
	for _, do := range []bool{false, true} {
		m := query(do)
		packet, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		w := &test.ResponseWriter6{}
		var q wire.Query
		q.Peer = wire.PeerOf(w.RemoteAddr(), w.LocalAddr())
		q.Peer.Limit = wire.MaxMessage // as over QUIC
		if !q.Parse(packet) {
			t.Fatal("not eligible")
		}
		var r wire.Reply
		r.Reset(make([]byte, 512))
		r.Begin(&q)
		r.SetFlag(wire.FlagAA, true)
		r.Addr(wire.Answer, q.Lower(), 60, netip.MustParseAddr("192.0.2.1"))

		var inWire, inMsg replacer.Facts
		inWire.SetQuery(&q)
		inWire.SetReply(&r, &q, 0)
		msg, err := r.Msg(m)
		if err != nil {
			t.Fatal(err)
		}
		inMsg.SetRequest(&request.Request{W: w, Req: m})
		rec := dnstest.NewRecorder(w)
		rec.WriteMsg(msg)
		inMsg.SetRecorder(rec)
		f := replacer.Parse(every)
		got, want := string(f.Append(nil, t.Context(), &inWire)), string(f.Append(nil, t.Context(), &inMsg))
		if got != want || !strings.Contains(got, "NOERROR qr,aa,rd,cd") {
			t.Errorf("wire    %s\nmessage %s", got, want)
		}

		// A failure is told as the reply that the server will write.
		r.Fail(wire.ServFail, nil)
		inWire.SetReply(&r, &q, 0)
		rec = dnstest.NewRecorder(w)
		rec.WriteMsg(new(dns.Msg).SetRcode(m, dns.RcodeServerFailure))
		inMsg.SetRecorder(rec)
		got, want = string(f.Append(nil, t.Context(), &inWire)), string(f.Append(nil, t.Context(), &inMsg))
		if got != want {
			t.Errorf("wire    %s\nmessage %s", got, want)
		}
		r.Drop()
		inWire.SetReply(&r, &q, 0)
		if got := string(replacer.Parse("{rcode} {>rflags} {rsize}").Append(nil, t.Context(), &inWire)); got != "- - 0" {
			t.Errorf("dropped: %q", got)
		}
	}
}

func TestHasLabels(t *testing.T) {
	for format, want := range map[string]bool{every: false, "{/a}": false, "x {/a/b}": true} {
		if got := replacer.Parse(format).HasLabels(); got != want {
			t.Errorf("%q: %t", format, got)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	f, facts := replacer.Parse(every+" {duration}"), example(t)
	buf := make([]byte, 0, 512)
	if n := testing.AllocsPerRun(100, func() { buf = f.Append(buf[:0], t.Context(), facts) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// example is facts in wire form.
func example(t testing.TB) *replacer.Facts {
	packet, err := query(true).Pack()
	if err != nil {
		t.Fatal(err)
	}
	q := new(wire.Query)
	q.Client = netip.MustParseAddrPort("[2001:db8::1]:4444")
	if !q.Parse(packet) {
		t.Fatal("not eligible")
	}
	f := new(replacer.Facts)
	f.SetQuery(q)
	f.Reply = replacer.Reply{Over: true, Written: true, Flags: 0x8580, Len: 99, Duration: 114301 * time.Nanosecond}
	return f
}

func FuzzParse(f *testing.F) {
	f.Add(every)
	f.Add("{{/a/b}{type")
	f.Fuzz(func(t *testing.T, format string) {
		got := string(replacer.Parse(format).Append(nil, t.Context(), example(t)))
		if !strings.Contains(format, "}") && got != format {
			t.Errorf("%q became %q", format, got)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	f := replacer.Parse(`{remote}:{port} - {>id} "{type} {class} {name} {proto} {size} {>do} {>bufsize}" {rcode} {>rflags} {rsize} {duration}`)
	for _, client := range []string{"192.0.2.101:40053", "[2001:db8::1]:4444"} {
		b.Run(client, func(b *testing.B) {
			facts := example(b)
			facts.Client = netip.MustParseAddrPort(client)
			buf := make([]byte, 0, 512)
			b.ReportAllocs()
			for b.Loop() {
				buf = f.Append(buf[:0], b.Context(), facts)
			}
		})
	}
}

// Numbers read as strconv writes them, and flags as their names in order.
func TestNumbersAndFlags(t *testing.T) {
	show := func(format string, f replacer.Facts) string {
		return string(replacer.Parse(format).Append(nil, t.Context(), &f))
	}
	for n := -10; n < 110_000; n++ {
		if got := show("{size}", replacer.Facts{Size: n}); got != strconv.Itoa(n) {
			t.Fatalf("got %s, want %d", got, n)
		}
	}
	for _, addr := range []string{"0.0.0.0", "1.20.255.100", "255.255.255.255", "9.99.199.10"} {
		client := netip.AddrPortFrom(netip.MustParseAddr(addr), 65535)
		if got := show("{remote}:{port}", replacer.Facts{Client: client}); got != client.String() {
			t.Errorf("got %s, want %s", got, client)
		}
	}
	bits := []string{"", "", "", "", "cd", "ad", "z", "ra", "rd", "tc", "aa", "", "", "", "", "qr"}
	for flags := range 1 << 16 {
		var names []string
		for bit := 15; bit >= 0; bit-- {
			if flags>>bit&1 != 0 && bits[bit] != "" {
				names = append(names, bits[bit])
			}
		}
		want := strings.Join(names, ",")
		if want == "" {
			want = replacer.EmptyValue
		}
		got := show("{>rflags}", replacer.Facts{Reply: replacer.Reply{Over: true, Written: true, Flags: uint16(flags)}})
		if got != want {
			t.Fatalf("%#x: got %s, want %s", flags, got, want)
		}
	}
	if got := show("{>rflags}", replacer.Facts{Reply: replacer.Reply{Over: true, Flags: 0x8580}}); got != replacer.EmptyValue {
		t.Errorf("without a reply: %s", got)
	}
}

// Durations read as the floating point numbers that they are, codes as miekg/dns names them.
func TestDurationsAndCodes(t *testing.T) {
	show := func(format string, f replacer.Facts) string {
		return string(replacer.Parse(format).Append(nil, t.Context(), &f))
	}
	durations := []time.Duration{-time.Second, -1, 0, 1, 9, 10, 123456789, 999999999, time.Second, time.Second + 1, 1<<62 + 1}
	for range 100_000 {
		durations = append(durations, time.Duration(rand.Int64N(int64(2*time.Second))), time.Duration(rand.Int64N(int64(time.Millisecond))))
	}
	for _, d := range durations {
		got := show("{duration}", replacer.Facts{Reply: replacer.Reply{Over: true, Duration: d}})
		if want := strconv.FormatFloat(d.Seconds(), 'f', -1, 64) + "s"; got != want {
			t.Fatalf("%d ns: got %s, want %s", d, got, want)
		}
	}
	name := func(all map[uint16]string, code int, prefix string) string {
		if name, ok := all[uint16(code)]; ok {
			return name
		}
		return fmt.Sprint(prefix, code)
	}
	for code := range 1 << 16 {
		f := replacer.Facts{Type: uint16(code), Class: uint16(code), Reply: replacer.Reply{Over: true, Written: true, Rcode: code}}
		rcode, ok := dns.RcodeToString[code]
		if !ok {
			rcode = fmt.Sprint(code)
		}
		want := name(dns.TypeToString, code, "TYPE") + " " + name(dns.ClassToString, code, "CLASS") + " " + rcode
		if got := show("{type} {class} {rcode}", f); got != want {
			t.Errorf("%d: got %s, want %s", code, got, want)
		}
	}
}
