package zonefile

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// entries is the words of each entry of a text, quoted ones in quotes, those of entries that begin with white space
// behind a dash.
func entries(t *testing.T, text string) (all []string, err error) {
	t.Helper()
	var l lexer
	l.reset(strings.NewReader(text))
	for {
		words, blank, err := l.entry()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return all, err
		}
		var line []string
		if blank {
			line = append(line, "-")
		}
		for _, w := range words {
			if w.quoted {
				line = append(line, strconv.Quote(string(w.text)))
			} else {
				line = append(line, string(w.text))
			}
		}
		all = append(all, fmt.Sprintf("%d:%s", l.entryLine, strings.Join(line, "|")))
	}
}

// Entries are lines, which parentheses join; comments, empty lines and white space are left out, but that at the begin
// of a line, which stands for the owner before (RFC 1035 §5.1).
func TestEntries(t *testing.T) {
	for _, tc := range []struct {
		text string
		want string
		err  error
	}{
		{"", "", nil},
		{"\n\n; nothing\n   ; more\n", "", nil},
		{"a b c", "1:a|b|c", nil},
		{"a\tb  c \r\n", "1:a|b|c", nil},
		{"\n\n a\n\tb\n", "3:-|a 4:-|b", nil},
		{"a;b\nc ; d\n", "1:a 2:c", nil},
		{"a ( b\nc ; )\n d ) e\nf", "1:a|b|c|d|e 4:f", nil},
		{"a(b)c", "1:a|b|c", nil},
		{"a ((b)\n(c)) d", "1:a|b|c|d", nil},
		{"(\n\na )\n", "1:a", nil},
		{"( a\n b )\n", "1:a|b", nil},
		{` ( a )`, "1:-|a", nil},
		{`a "b c" ""`, `1:a|"b c"|""`, nil},
		{`a "b;c" "(d"`, `1:a|"b;c"|"(d"`, nil},
		{`a "b\"c"`, `1:a|"b\\\"c"`, nil},
		{`a "b""c"`, `1:a|"b"|"c"`, nil},
		{`a k="b c;" d`, `1:a|k="b c;"|d`, nil},
		{`a\ b c\;d e\(f`, `1:a\ b|c\;d|e\(f`, nil},
		{`a\`, `1:a\`, nil},
		{`a "b`, "", errQuote},
		{"a \"b\nc\" d\ne", `1:a|"b\nc"|d 3:e`, nil},
		{"a \"b;(\n\n;c\\\"\n\" (d\n)", `1:a|"b;(\n\n;c\\\"\n"|d`, nil},
		{"a\n\"b\nc\" d", `1:a 2:"b\nc"|d`, nil},
		{"a \"b\nc", "", errQuote},
		{`a k="b`, "", errQuote},
		{"a ( b\n", "", errParen},
		{"a ) b\n", "", errParen},
		{"a (\n" + strings.Repeat("0123456789abcde ", 80000) + ")", "", errLength},
		{"a " + strings.Repeat("0123456789abcde ", 80000), "", errLength},
		{"a (\n" + strings.Repeat("0123456789abcde\n", 80000), "", errLength},
	} {
		got, err := entries(t, tc.text)
		if s := strings.Join(got, " "); s != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%.40q:\n got %s %v\nwant %s %v", tc.text, s, err, tc.want, tc.err)
		}
	}
	long := strings.Repeat("x", 100<<10) // longer than what is read at once
	if got, err := entries(t, "a "+long+"\nb"); err != nil || len(got) != 2 || got[0] != "1:a|"+long || got[1] != "2:b" {
		t.Errorf("a long line: %d entries, %v", len(got), err)
	}
}

// Names are below the origin unless they end in a dot that is none of a label's; @ is the origin (RFC 1035 §5.1).
func TestNames(t *testing.T) {
	label := strings.Repeat("x", 63)
	for text, want := range map[string]string{
		"@": "example.org.", "a": "a.example.org.", "a.": "a.", ".": ".", "a.b": "a.b.example.org.", `a\.`: `a\..example.org.`, `a\\.`: `a\\.`, `a\\\.`: `a\\\..example.org.`,
		`\@`: `\@.example.org.`, "@.": `\@.`, `a\046`: `a\..example.org.`, "a..b": "", ".a": "", label: label + ".example.org.", label + "x": "",
		strings.Repeat(label+".", 3) + strings.Repeat("y", 49): strings.Repeat(label+".", 3) + strings.Repeat("y", 49) + ".example.org.",
		strings.Repeat(label+".", 3) + strings.Repeat("y", 50): "",
	} {
		b, err := appendName([]byte("before"), []byte(text), wire.MustName("example.org"))
		if (err != nil) != (want == "") || err != nil && string(b) != "before" || err == nil && wire.Text(b[6:]) != want {
			t.Errorf("%s: %q %v, want %s", text, b, err, want)
		}
	}
}

// An address is read as net/netip reads it, whatever it is (RFC 1035 §3.4.1, RFC 3596 §2.4).
func TestAddresses(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	texts := []string{"", ".", "1", "1.2.3", "1.2.3.4.5", "1.2.3.", ".1.2.3", "1..2.3", "0.0.0.0", "00.0.0.0", "1.2.3.04", "256.1.1.1", "255.255.255.255", "1.2.3.4 ", "1.2.3.a", "-1.2.3.4", "1.2.3.4567", "999999999999.1.1.1"}
	for range 5000 {
		b := make([]byte, r.IntN(12))
		for i := range b {
			b[i] = "0123456789..."[r.IntN(13)]
		}
		texts = append(texts, string(b))
	}
	for _, text := range texts {
		b, err := appendAddr(nil, dns.TypeA, []word{{text: []byte(text)}})
		rr, refErr := dns.NewRR(". A " + text)
		if text == "" || strings.HasSuffix(text, " ") {
			refErr = errors.New("no address")
		}
		if (err == nil) != (refErr == nil) || err == nil && fmt.Sprint(b) != fmt.Sprint([]byte(rr.(*dns.A).A.To4())) {
			t.Fatalf("%q: %v %v, miekg/dns %v %v", text, b, err, rr, refErr)
		}
	}
	for text, ok := range map[string]bool{"::": true, "2001:db8::1": true, "::ffff:192.0.2.1": true, "192.0.2.1": false, "fe80::1%eth0": false, "2001:db8::g": false, "": false} {
		if b, err := appendAddr(nil, dns.TypeAAAA, []word{{text: []byte(text)}}); (err == nil) != ok || ok && len(b) != 16 {
			t.Errorf("%q: %v %v", text, b, err)
		}
	}
}

// $GENERATE makes the records that BIND makes of the same line: numbers with offset, width and base in any of its
// words; what is no modifier is an error.
func TestGenerateForms(t *testing.T) {
	for _, tc := range []struct{ template, want string }{
		{"$", "9"}, {"a$b", "a9b"}, {"$$", "$"}, {`\$`, "$"}, {`\a`, `\a`}, {`a\`, `a\`}, {"${0}", "9"}, {"${1}", "10"}, {"${-9}", "0"}, {"${0,3}", "009"}, {"${0,3,d}", "009"},
		{"${1,0,x}", "a"}, {"${1,3,X}", "00A"}, {"${0,2,o}", "11"}, {"${0,,x}", "9"}, {"${0,1,}", "9"}, {"$-$", "9-9"}, {"${1}${2}", "1011"}, {"{0}", "{0}"},
		{"${", ""}, {"${}", ""}, {"${x}", ""}, {"${0,x}", ""}, {"${0,0,z}", ""}, {"${0,0,xx}", ""}, {"${0,256}", ""}, {"${-10}", ""}, {"${0,-1}", ""},
	} {
		b, err := appendTemplate(nil, []byte(tc.template), 9)
		if (err != nil) != (tc.want == "") || err == nil && string(b) != tc.want {
			t.Errorf("%s: %q %v, want %q", tc.template, b, err, tc.want)
		}
	}
	for text, n := range map[string]int{"1-1": 1, "0-3": 4, "0-3/2": 2, "0-4/2": 3, "0-65535": 65536, "0-65536": -1, "0-131070/2": 65536, "5-4": -1, "-1-4": -1, "a-4": -1, "1": -1, "1-2/0": -1, "1-2/x": -1} {
		got, err := readAll(t, "$GENERATE "+text+" h$ 5 A 192.0.2.1\n", "db")
		if (err != nil) != (n < 0) || err == nil && len(got) != n {
			t.Errorf("%s: %d records, %v, want %d", text, len(got), err, n)
		}
	}
}

// Words before the type are owner, TTL and class, the last two in either order; types and classes may be written as
// numbers (RFC 3597 §5), and in any case.
func TestBeforeTheType(t *testing.T) {
	for text, want := range map[string]string{
		"a 5 IN A 192.0.2.1": "a.example.org. 5 IN A 192.0.2.1", "a in 5 a 192.0.2.1": "a.example.org. 5 IN A 192.0.2.1", "a 5 A 192.0.2.1": "a.example.org. 5 IN A 192.0.2.1",
		"a 5 CLASS1 TYPE1 192.0.2.1": "a.example.org. 5 IN A 192.0.2.1", "a 5 ch TXT x": `a.example.org. 5 CH TXT "x"`, "a 5 class3 TXT x": `a.example.org. 5 CH TXT "x"`,
		"a 5 HS TXT x": `a.example.org. 5 HS TXT "x"`, "A 5 A 192.0.2.1": "A.example.org. 5 IN A 192.0.2.1", "IN 5 A 192.0.2.1": "IN.example.org. 5 IN A 192.0.2.1",
		"5 5 A 192.0.2.1": "5.example.org. 5 IN A 192.0.2.1", "a 1h IN A 192.0.2.1": "a.example.org. 3600 IN A 192.0.2.1",
		"a 5 6 A 192.0.2.1": "", "a 5 IN IN A 192.0.2.1": "", "a 5": "", "a": "", "a 5 CLASS65536 A 192.0.2.1": "", "a 5 TYPE65536 x": "", "a 5 TYPE x": "", "a 5x A 192.0.2.1": "",
	} {
		got, err := readAll(t, text+"\n", "db")
		if (err != nil) != (want == "") || err == nil && (len(got) != 1 || got[0] != want) {
			t.Errorf("%s: %q %v, want %s", text, got, err, want)
		}
	}
}

// Times that are too long are errors that say where, what was given and what is allowed, also those so long that their
// sum fits into no integer.
func TestLongTTLs(t *testing.T) {
	const most = math.MaxUint32 * 7 * 24 * 60 * 60 // of one number with its unit
	rest := new(big.Int).Lsh(big.NewInt(1), 64)    // what is missing to a sum of 2^64+5
	times := new(big.Int).Div(rest, big.NewInt(most)).Int64()
	left := rest.Mod(rest, big.NewInt(most)).Int64() + 5
	round := strings.Repeat(fmt.Sprintf("%dw", uint32(math.MaxUint32)), int(times)) + fmt.Sprintf("%dw%ds", left/604800, left%604800)
	for _, ttl := range []string{"99999999999w", "7102w", "4294967296", "1w4294967295", round} {
		for _, text := range []string{"a " + ttl + " A 192.0.2.1", "$TTL " + ttl, "@ 60 SOA a b 1 " + ttl + " 2 3 4"} {
			_, err := readAll(t, text+"\n", "db")
			if err == nil {
				t.Errorf("%.60s is taken", text)
				continue
			}
			for _, part := range []string{"db:1: ", ttl, "up to 4294967295 seconds"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%.60s: %.40q is not in the error %.200q", text, part, err)
				}
			}
		}
	}
	if all, err := readAll(t, "a 4294967295 A 192.0.2.1\n", "db"); err != nil || len(all) != 1 {
		t.Errorf("got %v, %v", all, err)
	}
}

// A TTL with the first bit set counts as 0, as it does where a zone comes by transfer or update (RFC 2181 §8), and so for the records
// that have theirs from it.
func TestTTLWithFirstBit(t *testing.T) {
	got, err := readAll(t, "a 2147483647 A 192.0.2.1\nb 2147483648 A 192.0.2.1\nc A 192.0.2.1\n$TTL 4294967295\nd A 192.0.2.1\ne 7000w A 192.0.2.1\n"+
		"$GENERATE 1-1 f$ 3000000000 A 192.0.2.1\n", "db")
	var ttls []string
	for _, l := range got {
		ttls = append(ttls, strings.Fields(l)[1])
	}
	if s := strings.Join(ttls, " "); err != nil || s != "2147483647 0 0 0 0 0" {
		t.Errorf("TTLs %s, %v", s, err)
	}
}
