package wire

import (
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// behindHeader is a header of zeros and octets behind it, which begin at offset 12.
func behindHeader(rest string) []byte { return append(make([]byte, HeaderLen), rest...) }

// Names with pointers are read as RFC 1035 §4.1.4 has it, backwards only; what is none is refused by both readers, and
// leaves nothing behind. Offset 12 is \x0C.
func TestNamesWithPointers(t *testing.T) {
	for _, tc := range []struct {
		what, rest string
		off        int
		want       string // "" if there is no name
		next       int
	}{
		{"the root", "\x00", 12, ".", 13},
		{"no pointer", "\x03www\x03org\x00", 12, "www.org.", 21},
		{"a pointer alone", "\x03org\x00\xC0\x0C", 17, "org.", 19},
		{"a label and a pointer", "\x03org\x00\x03www\xC0\x0C", 17, "www.org.", 23},
		{"a pointer into a name", "\x03www\x03org\x00\xC0\x10", 21, "org.", 23},
		{"a pointer to a pointer", "\x03org\x00\xC0\x0C\xC0\x11", 19, "org.", 21},
		{"behind the end", "\x00", 13, "", 0},
		{"cut in a label", "\x03ww", 12, "", 0},
		{"cut behind a label", "\x03www", 12, "", 0},
		{"cut in a pointer", "\x03org\x00\xC0", 17, "", 0},
		{"a pointer to itself", "\xC0\x0C", 12, "", 0},
		{"a pointer forwards", "\xC0\x0E\x00", 12, "", 0},
		{"a pointer behind the end", "\x00\xFF\xFF", 13, "", 0},
		{"a pointer into its own name", "\x03www\xC0\x0C", 12, "", 0},
		{"two that point to each other", "\xC0\x0E\xC0\x0C", 12, "", 0},
		{"label type 01", "\x41" + strings.Repeat("a", 65) + "\x00", 12, "", 0},
		{"label type 10", "\x80\x00", 12, "", 0},
	} {
		msg := behindHeader(tc.rest)
		b, ok := AppendNameAt([]byte("before"), msg, tc.off)
		if ok != (tc.want != "") || !ok && string(b) != "before" || ok && Text(b[6:]) != tc.want {
			t.Errorf("%s: AppendNameAt says %q, %v", tc.what, b, ok)
		}
		e := EffortOf(len(msg))
		plain, next := e.Name(msg, tc.off)
		if next != tc.next || ok && plain != len(b)-6 {
			t.Errorf("%s: Name says %d octets up to %d, want up to %d", tc.what, plain, next, tc.next)
		}
	}
}

// The header holds no names: to point there is an error for who counts the effort, though its octets may look like one.
func TestNoNamesInTheHeader(t *testing.T) {
	msg := behindHeader("\xC0\x00")
	e := EffortOf(len(msg))
	if _, next := e.Name(msg, HeaderLen); next != 0 {
		t.Error("a pointer into the header is followed")
	}
}

// A name that pointers make long has 255 octets at most, too.
func TestPointedNameLimits(t *testing.T) {
	for n := 240; n < 270; n++ {
		tail := nameOf(200)
		msg := behindHeader(string(tail))
		at := len(msg)
		head := nameOf(n - 200 + 1)
		msg = append(append(msg, head[:len(head)-1]...), 0xC0, HeaderLen)
		b, ok := AppendNameAt(nil, msg, at)
		e := EffortOf(len(msg))
		plain, next := e.Name(msg, at)
		if want := n <= MaxName; ok != want || (next != 0) != want || want && (len(b) != n || plain != n || next != len(msg)) {
			t.Errorf("%d octets: %v with %d octets, %d up to %d", n, ok, len(b), plain, next)
		}
	}
}

// A name may be made of 126 pointers, as many as github.com/miekg/dns follows, and not of 127.
func TestPointerLimit(t *testing.T) {
	msg := behindHeader("\x00")
	to := HeaderLen
	for hops := 1; hops < 140; hops++ {
		at := len(msg)
		msg = append(msg, 0xC0|byte(to>>8), byte(to))
		to = at
		_, ok := AppendNameAt(nil, msg, at)
		e := Effort(1 << 20)
		_, next := e.Name(msg, at)
		_, _, err := dns.UnpackDomainName(msg, at)
		if want := hops <= 126; ok != want || (next != 0) != want || (err == nil) != want {
			t.Fatalf("%d pointers: %v, up to %d, %v", hops, ok, next, err)
		}
	}
}

// Reading names costs by their octets in full, labels and pointers; when the effort is spent there are no names any
// more (docs of Effort).
func TestEffortIsSpent(t *testing.T) {
	if got, want := EffortOf(1000), Effort(10*1000+65536); got != want {
		t.Errorf("1000 octets are worth %d, want %d", got, want)
	}
	msg := behindHeader("\x03www\x03org\x00\x01a\xC0\x0C")
	for _, tc := range []struct{ off, cost int }{
		{12, 1 + 8 + 2*labelCost},                // www.org.
		{20, 1},                                  // the root
		{21, 1 + 10 + 3*labelCost + pointerCost}, // a.www.org.
	} {
		for _, left := range []int{tc.cost - 1, tc.cost, tc.cost + 5} {
			e := Effort(left)
			_, next := e.Name(msg, tc.off)
			if (next != 0) != (left >= tc.cost) || int(e) != left-tc.cost {
				t.Errorf("at %d with %d: up to %d, left %d", tc.off, left, next, e)
			}
		}
	}
}

// FuzzNameAt compares both readers of compressed names with github.com/miekg/dns, which follows pointers forwards too:
// what we read, it reads, as the same name.
func FuzzNameAt(f *testing.F) {
	f.Add([]byte("\x03www\x03org\x00\x01a\xC0\x0C\xC0\x15"), 21)
	f.Add([]byte("\x01a\xC0\x0C"), 12)
	f.Add([]byte("\x00\xC0\x0C\xC0\x0D"), 15)
	f.Fuzz(func(t *testing.T, rest []byte, off int) {
		msg := behindHeader(string(rest))
		if off < HeaderLen || off > len(msg) {
			return
		}
		b, ok := AppendNameAt(nil, msg, off)
		want, end, err := dns.UnpackDomainName(msg, off)
		if ok && (err != nil || Text(b) != want) {
			t.Fatalf("%q at %d: we read %q, miekg/dns %q %v", msg, off, b, want, err)
		}
		e := Effort(1 << 20)
		plain, next := e.Name(msg, off)
		if next != 0 && (!ok || plain != len(b) || next != end) {
			t.Fatalf("%q at %d: %d octets up to %d, AppendNameAt %d %v, miekg/dns up to %d", msg, off, plain, next, len(b), ok, end)
		}
	})
}
