package corefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/caddy"
)

type settings struct {
	zones    []string
	capacity int
	stale    time.Duration
	keepTTL  bool
	policy   string
	through  []string
	lines    []string
}

var directive = Directive[settings]{
	Name: "sample",
	Args: Args[settings]{Syntax: "[ZONES...]", Max: 3, Set: func(s *settings, l *Line) error {
		s.zones = append(s.zones, l.Args...)
		return nil
	}},
	Once: true,
	Options: Table[settings]{
		Int("capacity", 1, 100, "entries kept", func(s *settings, n int) { s.capacity = n }),
		Duration("stale", 0, time.Hour, "serve expired data for", func(s *settings, d time.Duration) { s.stale = d }),
		Flag("keepttl", "leave TTLs as stored", func(s *settings) { s.keepTTL = true }),
		Enum("policy", []string{"random", "sequential"}, "order of upstreams", func(s *settings, w string) { s.policy = w }).Once(),
		Fallthrough(func(s *settings, zones []string) { s.through = zones }),
		Ignored[settings]("upstream"),
		Raw("line", "WORDS...", "anything", func(s *settings, c *caddy.Controller) error {
			for c.NextArg() {
				if c.Val() == "bad" {
					return errors.New("bad word")
				}
				s.lines = append(s.lines, c.Val())
			}
			return nil
		}),
	},
	Check: func(s *settings) error {
		if s.capacity > 50 && s.keepTTL {
			return errors.New("keepttl needs a small capacity")
		}
		return nil
	},
}

func setUp(input string) (settings, error) {
	s := settings{capacity: 10}
	return s, directive.Parse(caddy.NewTestController("", input), &s)
}

func TestParse(t *testing.T) {
	s := settings{capacity: 10}
	err := directive.Parse(caddy.NewTestController("", `sample example.org example.net {
		capacity 20
		stale 3s
		keepttl
		policy Sequential
		fallthrough a b
		upstream whatever there is
		line one two
		capacity 30
	}`), &s)
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%v", s)
	if want := "{[example.org example.net] 30 3000000000 true sequential [a b] [one two]}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestErrors(t *testing.T) {
	const at = "plugin/sample: Testfile:%d - Error during parsing: "
	for _, tc := range []struct{ input, want string }{
		{"sample a b c d", fmt.Sprintf(at, 1) + "Wrong argument count or unexpected line ending after 'd' (usage: sample [ZONES...])"},
		{"sample {\nsale 3s\n}", fmt.Sprintf(at, 2) + "unknown property 'sale': did you mean 'stale'? (allowed: capacity, stale, keepttl, policy, fallthrough, line)"},
		{"sample {\nxyz\n}", fmt.Sprintf(at, 2) + "unknown property 'xyz' (allowed: capacity, stale, keepttl, policy, fallthrough, line)"},
		{"sample {\n\ncapacity\n}", fmt.Sprintf(at, 3) + "Wrong argument count or unexpected line ending after 'capacity' (usage: capacity N)"},
		{"sample {\ncapacity 1 2\n}", fmt.Sprintf(at, 2) + "Wrong argument count or unexpected line ending after '2' (usage: capacity N)"},
		{"sample {\ncapacity x\n}", fmt.Sprintf(at, 2) + `capacity: strconv.Atoi: parsing "x": invalid syntax`},
		{"sample {\ncapacity 0\n}", fmt.Sprintf(at, 2) + "capacity must be between 1 and 100: 0"},
		{"sample {\nstale 3\n}", fmt.Sprintf(at, 2) + `stale: time: missing unit in duration "3"`},
		{"sample {\nstale -1s\n}", fmt.Sprintf(at, 2) + "stale must be between 0s and 1h0m0s: -1s"},
		{"sample {\nkeepttl yes\n}", fmt.Sprintf(at, 2) + "Wrong argument count or unexpected line ending after 'yes' (usage: keepttl)"},
		{"sample {\npolicy best\n}", fmt.Sprintf(at, 2) + "policy 'best' is not supported: must be one of random, sequential"},
		{"sample {\npolicy random\npolicy random\n}", fmt.Sprintf(at, 3) + "policy can only be specified once"},
		{"sample {\nfallthrough example.org exam..ple\n}", fmt.Sprintf(at, 2) + `invalid zone "exam..ple"`},
		{"sample {\nline a bad\n}", fmt.Sprintf(at, 2) + "bad word"},
		{"sample {\nkeepttl\ncapacity 60\n}", fmt.Sprintf(at, 4) + "keepttl needs a small capacity"},
		{"sample {\nkeepttl {\n}\n}", fmt.Sprintf(at, 2) + "unknown property '{'"},
		{"sample\nsample", fmt.Sprintf(at, 2) + "this plugin can only be used once per Server Block: 'sample' stands at Testfile:1 already"},
	} {
		_, err := setUp(tc.input)
		if err == nil {
			t.Errorf("%q: no error", tc.input)
		} else if !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%q:\n got %s\nwant %s", tc.input, err, tc.want)
		}
	}
	if _, err := setUp("sample\nsample"); !errors.Is(err, ErrOnce) {
		t.Errorf("got %v", err)
	}
}

func TestParseEach(t *testing.T) {
	d := directive
	d.Once = false
	all, err := d.ParseEach(caddy.NewTestController("", "sample a {\nkeepttl\n}\nsample b"), settings{capacity: 7})
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	if got := fmt.Sprint(all); got != "[{[a] 7 0 true  [] []} {[b] 7 0 false  [] []}]" {
		t.Error(got)
	}
}

func TestUnlisted(t *testing.T) {
	d := directive
	d.UnlistedSyntax = "[WORD...]"
	d.Unlisted = func(s *settings, l *Line) (bool, error) {
		if l.Name() == "wrong" {
			return false, errors.New("wrong word")
		}
		s.lines = append(s.lines, l.Name()+"="+strings.Join(l.Args, ","))
		return l.Name() != "no", nil
	}
	var s settings
	if err := d.Parse(caddy.NewTestController("", "sample {\nx 1 2\ncapacity 3\ny\n}"), &s); err != nil || fmt.Sprint(s.lines, s.capacity) != "[x=1,2 y=] 3" {
		t.Errorf("%v %v", s, err)
	}
	for input, want := range map[string]string{"sample {\nno\n}": "unknown property 'no'", "sample {\nwrong\n}": "Testfile:2 - Error during parsing: wrong word"} {
		if err := d.Parse(caddy.NewTestController("", input), &s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", input, err)
		}
	}
	if doc := d.Doc().Syntax; !strings.HasPrefix(doc, "sample [ZONES...] {\n    [WORD...]\n    capacity N\n") {
		t.Error(doc)
	}
}

func TestReadmeSyntax(t *testing.T) {
	path := filepath.Join(t.TempDir(), "README.md")
	text := "# sample\n\n## Syntax\n\nText.\n\n```corefile\n" + directive.Doc().Syntax + "\n```\n\nMore.\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := ReadmeSyntax(path)
	if err != nil {
		t.Fatal(err)
	}
	want := `sample [ZONES...] {
    capacity N
    stale DURATION
    keepttl
    policy random|sequential
    fallthrough [ZONES...]
    line WORDS...
}`
	if got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"ab", "ab", 0}, {"ab", "ba", 1}, {"sucess", "success", 1}, {"abc", "", 3}, {"kitten", "sitting", 3}} {
		if got := distance(tc.a, tc.b); got != tc.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("sample a b {\ncapacity 3\npolicy random\n}\nsample")
	f.Add("sample {\nline \"x y\" {\n}\n}")
	f.Fuzz(func(t *testing.T, input string) {
		s, err := setUp(input)
		if err == nil && (s.capacity < 1 || s.capacity > 100 || s.stale < 0) {
			t.Fatalf("%q: out of bounds: %v", input, s)
		}
	})
}

// While a configuration is set up, it is known which line that is about.
func TestPlace(t *testing.T) {
	var at []string
	note := func() { at = append(at, Place()) }
	d := &Directive[int]{
		Name:    "x",
		Args:    Args[int]{Max: -1, Set: func(*int, *Line) error { note(); return nil }},
		Options: Table[int]{Flag("o", "an option", func(*int) { note() })},
		Unlisted: func(*int, *Line) (bool, error) {
			note()
			return true, nil
		},
		Check: func(*int) error { note(); return nil },
	}
	var places []string
	setup := Placed("d", func(c *caddy.Controller) error {
		note()
		_, err := d.ParseEach(c, 0)
		note()
		SetPlace("elsewhere:7")
		note()
		places = at
		return err
	})
	if err := setup(caddy.NewTestController("dns", "x a b\nx {\n  o\n  p\n}\nx")); err != nil {
		t.Fatal(err)
	}
	want := "1 1 1 2 3 4 2 6 6 6"
	got := make([]string, len(places)-1)
	for i, p := range places[:len(places)-1] {
		got[i] = strings.TrimPrefix(p, "Testfile:")
	}
	if strings.Join(got, " ") != want || places[len(places)-1] != "elsewhere:7" {
		t.Errorf("got %v, want %s", places, want)
	}
	if p := Place(); p != "" {
		t.Errorf("in the end it is %s", p)
	}
}
