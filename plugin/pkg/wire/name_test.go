package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, tc := range []struct {
		in, out string // out is the presentation form that comes back; "" for an error
	}{
		{"", "."}, {".", "."}, {"example.org", "example.org."}, {"Example.ORG.", "Example.ORG."},
		{`a\.b.example.org.`, `a\.b.example.org.`}, {`a\046b.`, `a\.b.`}, {`\000\255.`, `\000\255.`},
		{`a\ b.`, `a\ b.`}, {"..", ""}, {".a", ""}, {"a..b", ""}, {long + ".", long + "."}, {long + "a.", ""},
		{long + "." + long + "." + long + "." + long, ""}, {`a\`, ""}, {`a\25`, "a25."}, {`\256.x`, ""}, {`a\300b.x.`, ""}, {`\999`, ""},
	} {
		b, err := AppendName(nil, tc.in)
		if got := ""; err == nil {
			if got = Text(b); got != tc.out {
				t.Errorf("%q: got %q, want %q", tc.in, got, tc.out)
			}
		} else if tc.out != "" || len(b) != 0 {
			t.Errorf("%q: %v, want %q", tc.in, err, tc.out)
		}
	}
}

func TestNameRelations(t *testing.T) {
	name := func(s string) []byte { return MustName(s) }
	for _, tc := range []struct {
		a, b  string
		below bool
		cmp   int
	}{
		{"example.org", "example.org", true, 0},
		{"www.example.org", "example.org", true, 1},
		{"wwwexample.org", "example.org", false, 1},
		{"example.org", "www.example.org", false, -1},
		{"a.example", "z.a.example", false, -1},
		{"z.example", "z.a.example", false, 1},
		{"yljkjljk.a.example", "z.a.example", false, -1},
		{`\001.z.example`, "*.z.example", false, -1},
		{`\200.z.example`, "*.z.example", false, 1},
		{"example.org", ".", true, 1},
	} {
		if got := Below(name(tc.a), name(tc.b)); got != tc.below {
			t.Errorf("Below(%s, %s) = %v", tc.a, tc.b, got)
		}
		if got := Compare(name(tc.a), name(tc.b)); sign(got) != tc.cmp {
			t.Errorf("Compare(%s, %s) = %d, want %d", tc.a, tc.b, got, tc.cmp)
		}
		if got := Compare(name(tc.b), name(tc.a)); sign(got) != -tc.cmp {
			t.Errorf("Compare(%s, %s) = %d, want %d", tc.b, tc.a, got, -tc.cmp)
		}
	}
	if got := Text(Parent(name("www.example.org"))); got != "example.org." {
		t.Errorf("Parent: %s", got)
	}
	if got := CountLabels(name("www.example.org")); got != 3 {
		t.Errorf("CountLabels: %d", got)
	}
}

func sign(n int) int { return min(1, max(-1, n)) }

func TestLower(t *testing.T) {
	in := make([]byte, 0, 512)
	for i := range 512 {
		in = append(in, byte(i))
	}
	for n := range 40 {
		got := make([]byte, n)
		Lower(got, in[50:50+n])
		if want := bytes.ToLower(in[50 : 50+n]); n < 20 && !bytes.Equal(got, want) {
			t.Fatalf("%d octets: got %q, want %q", n, got, want)
		}
	}
	got := make([]byte, 256)
	Lower(got, in[:256])
	for i, c := range got {
		want := byte(i)
		if i >= 'A' && i <= 'Z' {
			want += 32
		}
		if c != want {
			t.Errorf("octet %#x became %#x", i, c)
		}
	}
}

// FuzzName compares with how github.com/miekg/dns reads and writes names.
func FuzzName(f *testing.F) {
	for _, s := range []string{"example.org.", `a\.b\009c.`, "*.x.", "a.b.c.d.e.", `\@\;.`, "."} {
		f.Add([]byte(s), MustName(s))
	}
	f.Fuzz(func(t *testing.T, text, packed []byte) {
		if n := NameLen(packed); n > 0 {
			want, _, err := dns.UnpackDomainName(packed, 0)
			if got := Text(packed[:n]); err != nil || got != want {
				t.Fatalf("%x: we write %q, miekg/dns %q %v", packed, got, want, err)
			}
			back, err := AppendName(nil, want)
			if err != nil || !bytes.Equal(back, packed[:n]) {
				t.Fatalf("%q: read back as %x %v, was %x", want, back, err, packed[:n])
			}
		}
		s := string(text)
		if strings.HasSuffix(s, `\.`) {
			return // dns.Fqdn does not see that this dot is no final one
		}
		got, err := AppendName(nil, s)
		buf := make([]byte, 300)
		end, refErr := dns.PackDomainName(dns.Fqdn(s), buf, 0, nil, false)
		if err == nil && refErr == nil && s != "" && !bytes.Equal(got, buf[:end]) {
			t.Fatalf("%q: we read %x, miekg/dns %x", s, got, buf[:end])
		}
	})
}
