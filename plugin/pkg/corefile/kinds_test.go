package corefile

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coredns/caddy"
)

// options is a directive with an option of each kind, and lines that are none.
type options struct {
	text  string
	words []string
	other []string
	dir   bool
}

var kinds = Directive[options]{
	Name:           "kinds",
	Unknown:        "Syntax error: no such thing: %s",
	UnlistedSyntax: "NAME VALUE",
	Options: Table[options]{
		String("text", "TEXT", "one word", func(o *options, s string) { o.text = s }),
		Strings("words", "WORDS...", "some", func(o *options, s []string) { o.words = s }),
		Flag("old", "nobody sees it", func(o *options) { o.dir = true }).Hidden(),
		Row("fails", "", "always", 0, 0, func(_ *options, l *Line) error { return errors.New("it " + l.Name()) }),
		Row("placed", "[A]", "tells where", 0, 2, func(o *options, l *Line) error {
			o.text = l.Place() + " " + Place() + " " + l.Arg(0) + "," + l.Arg(1) + " " + l.Controller().File()
			return nil
		}),
	},
	Unlisted: func(o *options, l *Line) (bool, error) {
		if ok, err := Fold(Table[options]{String("Fold", "TEXT", "", func(o *options, s string) { o.text = "folded " + s })}, o, l); ok {
			return true, err
		}
		switch {
		case l.Name() == "wrong":
			return true, l.Errf("%s is wrong", l.Arg(0))
		case len(l.Args) != 1:
			return false, nil
		}
		o.other = append(o.other, l.Name()+"="+l.Arg(0))
		return true, nil
	},
}

// Each kind of option takes the words that its syntax shows, and tells what is wrong with file and line; lines that are
// no option are for the directive itself.
func TestKinds(t *testing.T) {
	const at = "plugin/kinds: Testfile:%d - Error during parsing: "
	for _, tc := range []struct{ input, want, err string }{
		{"kinds", "{ [] [] false}", ""},
		{"kinds {\n}", "{ [] [] false}", ""},
		{"kinds {\ntext a\ntext b\nwords x y z\nold\n}", "{b [x y z] [] true}", ""},
		{"kinds {\na 1\nb 2\n}", "{ [] [a=1 b=2] false}", ""},
		{"kinds {\nFOLD x\n}", "{folded x [] [] false}", ""},
		{"kinds {\n\nplaced\n}", "{Testfile:3 Testfile:3 , Testfile [] [] false}", ""},
		{"kinds {\nplaced one two\n}", "{Testfile:2 Testfile:2 one,two Testfile [] [] false}", ""},
		{"kinds x", "", fmt.Sprintf(at, 1) + "Wrong argument count or unexpected line ending after 'x' (usage: kinds)"},
		{"kinds {\ntext\n}", "", fmt.Sprintf(at, 2) + "Wrong argument count or unexpected line ending after 'text' (usage: text TEXT)"},
		{"kinds {\nwords\n}", "", fmt.Sprintf(at, 2) + "Wrong argument count or unexpected line ending after 'words' (usage: words WORDS...)"},
		{"kinds {\nfold\n}", "", fmt.Sprintf(at, 2) + "Wrong argument count or unexpected line ending after 'fold' (usage: fold TEXT)"},
		{"kinds {\nfails\n}", "", fmt.Sprintf(at, 2) + "it fails"},
		{"kinds {\nwrong thing\n}", "", fmt.Sprintf(at, 2) + "thing is wrong"},
		{"kinds {\ntex\n}", "", "plugin/kinds: Testfile:2 - Syntax error: no such thing: tex: did you mean 'text'? (allowed: text, words, fails, placed)"},
		{"kinds {\nol\n}", "", "plugin/kinds: Testfile:2 - Syntax error: no such thing: ol (allowed: text, words, fails, placed)"},
	} {
		var got options
		err := kinds.Parse(caddy.NewTestController("", tc.input), &got)
		switch {
		case tc.err == "" && (err != nil || fmt.Sprint(got) != tc.want):
			t.Errorf("%q: %v %v, want %s", tc.input, got, err, tc.want)
		case tc.err != "" && (err == nil || err.Error() != tc.err):
			t.Errorf("%q:\n got %v\nwant %s", tc.input, err, tc.err)
		}
	}
}

// A directive of its name alone takes no block: what stands in it is an error in its own words.
func TestNoBlock(t *testing.T) {
	bare := Directive[options]{Name: "bare"}
	for input, want := range map[string]string{
		"bare":            "",
		"bare {\nword\n}": "plugin/bare: Testfile:2 - Error during parsing: unknown property 'word': this directive takes no options",
		"bare word":       "plugin/bare: Testfile:1 - Error during parsing: Wrong argument count or unexpected line ending after 'word' (usage: bare)",
	} {
		err := bare.Parse(caddy.NewTestController("", input), new(options))
		if got := fmt.Sprint(err); err == nil && want != "" || err != nil && got != want {
			t.Errorf("%q: got %v, want %s", input, err, want)
		}
	}
}

// An error keeps what it wraps, and its place is told once.
func TestErrorsAreWrapped(t *testing.T) {
	cause := errors.New("cause")
	d := Directive[options]{Name: "d", Check: func(*options) error { return cause }}
	err := d.Parse(caddy.NewTestController("", "d"), new(options))
	if !errors.Is(err, cause) || err.Error() != "plugin/d: Testfile:1 - Error during parsing: cause" {
		t.Errorf("got %v", err)
	}
	d.Check = func(*options) error { return fmt.Errorf("x: %w", err) }
	if again := d.Parse(caddy.NewTestController("", "d"), new(options)); strings.Count(again.Error(), "Testfile:1") != 1 || !errors.Is(again, cause) {
		t.Errorf("got %v", again)
	}
}

// While a directive is set up its place is known, and not before or after.
func TestPlaced(t *testing.T) {
	var during string
	setup := Placed("kinds", func(c *caddy.Controller) error {
		during = Place()
		return kinds.Parse(c, new(options))
	})
	if err := setup(caddy.NewTestController("", "\n\nkinds {\na 1\n}")); err != nil || during != "Testfile:3" || Place() != "" {
		t.Errorf("%v: %q during setup, %q after it", err, during, Place())
	}
}

// Numbers and durations lie within their bounds, both of which are allowed.
func TestBounds(t *testing.T) {
	for text, want := range map[string]string{"1": "1", "9": "9", "0": "n must be between 1 and 9: 0", "10": "n must be between 1 and 9: 10", "": "invalid syntax", "1.5": "invalid syntax", "99999999999999999999": "out of range"} {
		n, err := ParseInt("n", text, 1, 9)
		if got := fmt.Sprint(n, " ", err); err == nil && fmt.Sprint(n) != want || err != nil && !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{"1s": "1s", "1m": "1m0s", "999ms": "d must be between 1s and 1m0s: 999ms", "61s": "d must be between 1s and 1m0s: 1m1s", "5": "missing unit", "x": "invalid duration"} {
		d, err := ParseDuration("d", text, time.Second, time.Minute)
		if got := fmt.Sprint(d, " ", err); err == nil && d.String() != want || err != nil && !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	for text, want := range map[string]string{"192.0.2.1": "192.0.2.1/32", "2001:db8::1": "2001:db8::1/128", "192.0.2.0/24": "192.0.2.0/24", "192.0.2.0/33": "", "host": "", "": "",
		"::ffff:192.0.2.1": "192.0.2.1/32", "::ffff:192.0.2.0/120": "192.0.2.0/24", "::ffff:0:0/96": "0.0.0.0/0", "::/0": "::/0"} {
		p, err := ParseSource(text)
		if err == nil && p.String() != want || (err != nil) != (want == "") || err == nil && !p.Contains(p.Addr()) || err != nil && p != (netip.Prefix{}) {
			t.Errorf("%q: %v %v, want %s", text, p, err, want)
		}
	}
}

// The documentation of a directive is its table: hidden options are in none of it.
func TestDoc(t *testing.T) {
	doc := kinds.Doc()
	if want := "kinds {\n    NAME VALUE\n    text TEXT\n    words WORDS...\n    fails\n    placed [A]\n}"; doc.Syntax != want || len(doc.Options) != 5 {
		t.Errorf("got\n%s\nwant\n%s", doc.Syntax, want)
	}
	if got := (&Directive[options]{Name: "bare", Args: Args[options]{Syntax: "[X]"}}).Doc(); got.Syntax != "bare [X]" || len(got.Options) != 0 {
		t.Errorf("got %+v", got)
	}
}

// What was meant by a slip of the pen is the nearest word, if it is near enough: one letter of three may be wrong, put
// in, left out or swapped with its neighbour.
func TestNearest(t *testing.T) {
	words := []string{"success", "denial", "prefetch", "ttl", "servfail"}
	for given, want := range map[string]string{
		"sucess": "success", "sucecss": "success", "denails": "denial", "prefect": "prefetch", "tll": "ttl", "tl": "ttl", "servfial": "servfail", "success": "success",
		"x": "", "abc": "", "": "", "prefix": "", "serve": "", "all": "", "fail": "",
	} {
		if got := nearest(given, words); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "abd", 1}, {"abc", "ab", 1}, {"ab", "abc", 1}, {"ca", "abc", 3}, {"kitten", "sitting", 3}} {
		if got := distance(tc.a, tc.b); got != tc.want {
			t.Errorf("from %q to %q: %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 1, "4096": 4096, "512K": 512 << 10, "64m": 64 << 20, "2G": 2 << 30, "2GB": 2 << 30, "4kb": 4096, "5B": 5,
		"": -1, "M": -1, "B": -1, "-1": -1, "1MM": -1, "1BB": -1, "1BM": -1, "1T": -1, "99999999999G": -1, "1.5M": -1, "0": -1, "9G": -1,
	} {
		got, err := ParseSize("it", text, 1, 8<<30)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q: got %d, %v", text, got, err)
		}
	}
	if _, err := ParseSize("it", "9G", 1, 8<<30); err == nil || err.Error() != "it must be between 1 and 8589934592: 9663676416" {
		t.Error(err)
	}
}

func FuzzParseSize(f *testing.F) {
	f.Add("64M")
	f.Fuzz(func(t *testing.T, text string) {
		if n, err := ParseSize("it", text, 0, math.MaxInt64); err == nil {
			if again, err := ParseSize("it", strconv.FormatInt(n, 10), 0, math.MaxInt64); n < 0 || err != nil || again != n {
				t.Fatalf("%q: %d, and again %d, %v", text, n, again, err)
			}
		}
	})
}
