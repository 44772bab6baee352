package wire

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// nameOf is a name of n octets in wire form, root and all, out of labels as long as they may be.
func nameOf(n int) []byte {
	var b []byte
	for n > 1 {
		label := min(MaxLabel, n-2)
		if n-2-label == 1 { // what is left would be a length without a label
			label--
		}
		b = append(append(b, byte(label)), bytes.Repeat([]byte{'x'}, label)...)
		n -= label + 1
	}
	return append(b, 0)
}

// A name may have 255 octets, length octets and the root's included, and a label 63 (RFC 1035 §2.3.4).
func TestNameLimits(t *testing.T) {
	for n := 3; n < 300; n++ {
		name := nameOf(n)
		if len(name) != n {
			t.Fatalf("the test's own name has %d octets, want %d", len(name), n)
		}
		if got, want := NameLen(name), n; n <= MaxName && got != want || n > MaxName && got != 0 {
			t.Errorf("NameLen of %d octets is %d", n, got)
		}
		text := Text(name)
		for _, text := range []string{text, strings.TrimSuffix(text, ".")} {
			b, err := AppendName([]byte("before"), text)
			if n <= MaxName && (err != nil || string(b) != "before"+string(name)) {
				t.Fatalf("%d octets: %v", n, err)
			}
			if n > MaxName && (!errors.Is(err, ErrName) || string(b) != "before") {
				t.Fatalf("%d octets: %v, %q", n, err, b)
			}
		}
	}
	for n := range 70 {
		text := strings.Repeat("a", n)
		for _, text := range []string{text + ".org.", "www." + text + ".org", "org." + text + "a"} {
			want := error(nil)
			if labels := strings.Split(strings.TrimSuffix(text, "."), "."); slices.ContainsFunc(labels, func(l string) bool { return l == "" || len(l) > 63 }) {
				want = ErrLabel
			}
			if b, err := AppendName(nil, text); !errors.Is(err, want) || err != nil && len(b) != 0 {
				t.Errorf("%s: %v, want %v", text, err, want)
			}
		}
	}
}

// NameLen is the length of a name that stands in full at the begin of octets, whatever follows.
func TestNameLen(t *testing.T) {
	for _, tc := range []struct {
		b    string
		want int
	}{
		{"", 0}, {"\x00", 1}, {"\x00\x00", 1}, {"\x01a\x00", 3}, {"\x01a\x00rest", 3},
		{"\x01a", 0}, {"\x01", 0}, {"\x02a\x00", 0}, {"\x01a\xC0\x00", 0}, {"\xC0\x0C", 0},
		{"\x40" + strings.Repeat("a", 64) + "\x00", 0}, {"\x3F" + strings.Repeat("a", 63) + "\x00", 65}, {"\x80\x00", 0},
	} {
		if got := NameLen([]byte(tc.b)); got != tc.want {
			t.Errorf("%q: %d, want %d", tc.b, got, tc.want)
		}
	}
}

// LowerName is the wire form in lower case, as names are looked up (RFC 4343); MustName is for constants and panics on
// what is no name.
func TestLowerAndMustName(t *testing.T) {
	if b, err := LowerName(`WWW\065.Example.ORG`); err != nil || string(b) != "\x04wwwa\x07example\x03org\x00" {
		t.Errorf("%q %v", b, err)
	}
	if b, err := LowerName("a..b"); !errors.Is(err, ErrLabel) || b != nil {
		t.Errorf("a bad name: %q %v", b, err)
	}
	defer func() {
		if got, want := recover(), "wire: a..b: "+ErrLabel.Error(); got != want {
			t.Errorf("panic with %v, want %s", got, want)
		}
	}()
	MustName("a..b")
}

// The relations of a name to its labels and ancestors: the root is its own parent, and has no labels.
func TestLabels(t *testing.T) {
	for _, tc := range []struct{ name, first, parent string }{
		{".", "", "."}, {"org.", "org", "."}, {"www.example.org.", "www", "example.org."}, {`a\.b.org.`, "a.b", "org."},
	} {
		name := MustName(tc.name)
		var offs [128]uint8
		n := LabelOffsets(name, &offs)
		if n != CountLabels(name) || n != dns.CountLabel(tc.name) {
			t.Errorf("%s has %d labels, %d offsets, want %d", tc.name, CountLabels(name), n, dns.CountLabel(tc.name))
		}
		for i := range n {
			if rest := name[offs[i]:]; NameLen(rest) != len(rest) || CountLabels(rest) != n-i {
				t.Errorf("%s: label %d stands at %d", tc.name, i, offs[i])
			}
		}
		if got := string(FirstLabel(name)); got != tc.first {
			t.Errorf("%s: first label %q", tc.name, got)
		}
		if got := Text(Parent(name)); got != tc.parent {
			t.Errorf("%s: parent %s", tc.name, got)
		}
	}
	most := bytes.Repeat([]byte{1, 'a'}, 127)
	if n := CountLabels(append(most, 0)); n != 127 {
		t.Errorf("the name of most labels has %d", n)
	}
}

// A name is below a zone if it ends in the zone's labels: octets alone do not tell, for a length may look like a
// letter.
func TestBelowIsByLabels(t *testing.T) {
	zone := MustName("example.org")
	inLabel := append([]byte{byte(1 + len(zone) - 1), 'x'}, zone[:len(zone)-1]...) // one label that holds all of zone
	inLabel = append(inLabel, 0)
	for _, tc := range []struct {
		name []byte
		want bool
	}{
		{zone, true}, {MustName("a.example.org"), true}, {MustName("b.a.example.org"), true}, {MustName("xexample.org"), false},
		{inLabel, false}, {MustName("org"), false}, {MustName("example.com"), false}, {Root, false},
	} {
		if got := Below(tc.name, zone); got != tc.want {
			t.Errorf("%q: %v", tc.name, got)
		}
		if !Below(tc.name, Root) {
			t.Errorf("%q is not below the root", tc.name)
		}
	}
}

// Only the letters A to Z have a case (RFC 4343 §3); names that differ otherwise are different, and so are the hashes
// of them, as good as always.
func TestEqualFold(t *testing.T) {
	for c := range 256 {
		a, b := []byte{1, byte(c), 0}, []byte{1, byte(c) ^ 0x20, 0}
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !EqualFold(a, a) || EqualFold(a, b) != letter {
			t.Errorf("octet %#x is equal to %#x: %v", a[1], b[1], !letter)
		}
	}
	if EqualFold([]byte("\x01a\x00"), []byte("\x02ab\x00")) || EqualFold([]byte("\x01a\x00"), []byte("\x01a")) {
		t.Error("names of different lengths are equal")
	}
	a, b := MustName("www.example.org"), MustName("wwx.example.org")
	if Hash(a) != Hash(bytes.Clone(a)) || Hash(a) == Hash(b) {
		t.Errorf("hashes %x and %x", Hash(a), Hash(b))
	}
}

// Compare is the canonical order of RFC 4034 §6.1: sorting any names gives what sorting their labels from the right
// does.
func TestCompareSorts(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	label := func() string {
		return []string{"a", "b", "ab", "*", `\000`, `\001`, `\255`, "-", "zz", "z"}[r.IntN(10)]
	}
	byLabels := func(a, b string) int {
		x, y := dns.SplitDomainName(a), dns.SplitDomainName(b)
		slices.Reverse(x)
		slices.Reverse(y)
		octets := func(labels []string) (out []string) {
			for _, l := range labels {
				out = append(out, string(FirstLabel(MustName(l))))
			}
			return out
		}
		return slices.Compare(octets(x), octets(y))
	}
	for range 2000 {
		var names [2]string
		for i := range names {
			for range 1 + r.IntN(4) {
				names[i] += label() + "."
			}
		}
		if got, want := sign(Compare(MustName(names[0]), MustName(names[1]))), byLabels(names[0], names[1]); got != want {
			t.Fatalf("%s and %s: %d, want %d", names[0], names[1], got, want)
		}
	}
}
