package hosts

import (
	"bytes"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

func everywhere([]byte) bool { return true }

// made is the table of a text that may take the place of old.
func made(t *testing.T, text string, old *table) *table {
	t.Helper()
	b := newBuilder(everywhere, false, old)
	if err := b.read(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	tab, err := b.build()
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// addresses is what a table has of a name, in its order.
func addresses(tab *table, name string, typ uint16) (all []string) {
	n := wire.MustName(name)
	var f found
	for ok := tab.find(&f, n, wire.Hash(n), typ); ok; ok = f.next() {
		all = append(all, f.addr().String())
	}
	return all
}

// Of entries whose hashes are the same, name and family decide.
func TestNamed(t *testing.T) {
	p := newPager(nil)
	p.add(netip.MustParseAddr("192.0.2.1"), wire.MustName("a.example.org"))
	pages, err := p.end()
	if err != nil {
		t.Fatal(err)
	}
	e := entry(pages[0].entries)
	for _, tc := range []struct {
		name string
		is6  bool
		want bool
	}{{"a.example.org", false, true}, {"a.example.org", true, false}, {"b.example.org", false, false}, {"a.example.net", false, false},
		{"example.org", false, false}, {"a.example.org.and.longer.than.the.entry", false, false}} {
		if got := e.named(wire.MustName(tc.name), tc.is6); got != tc.want {
			t.Errorf("%s, IPv6 %t: %t", tc.name, tc.is6, got)
		}
	}
}

// A name has all of its addresses once and in the order of the source, however many there are.
func TestManyAddresses(t *testing.T) {
	for _, n := range []int{1, sameName - 1, sameName, sameName + 1, 300} {
		var text strings.Builder
		var v4, v6 []string
		for round := range 3 {
			for i := range n {
				a, b := fmt.Sprintf("192.0.%d.%d", 2+i>>8, i&255), fmt.Sprintf("2001:db8::%x", i+1)
				fmt.Fprintf(&text, "%s many.example.org other-%d.example.org\n%s Many.example.org\n", a, i, b)
				if round == 0 {
					v4, v6 = append(v4, a), append(v6, b)
				}
			}
		}
		tab := made(t, text.String(), nil)
		if got := addresses(tab, "many.example.org.", wire.TypeA); !slices.Equal(got, v4) {
			t.Errorf("%d: A %v", n, got)
		}
		if got := addresses(tab, "many.example.org.", wire.TypeAAAA); !slices.Equal(got, v6) {
			t.Errorf("%d: AAAA %v", n, got)
		}
		if want := 2 * 3 * n; tab.entries != want {
			t.Errorf("%d: %d entries, want %d", n, tab.entries, want)
		}
		for i, a := range v4 {
			addr, _ := parseAddr(a)
			var names []string
			for name := range tab.names(addr) {
				names = append(names, wire.Text(name))
			}
			if want := []string{"many.example.org.", fmt.Sprintf("other-%d.example.org.", i)}; !slices.Equal(names, want) {
				t.Errorf("%d: %s has %v, want %v", n, a, names, want)
			}
		}
	}
}

// Most of the memory of a long file is shared with the table before, and what was changed is seen.
func TestPagesShared(t *testing.T) {
	const n = 100000
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprintf("10.0.%d.%d host-%d.example.org\n", i>>8&255, i&255, i)
	}
	before := made(t, strings.Join(lines, ""), nil)
	lines[n/2] = "192.0.2.1 new.example.org another.example.org\n"
	after := made(t, strings.Join(lines, ""), before)
	shared := 0
	for _, p := range after.pages {
		if slices.ContainsFunc(before.pages, func(o page) bool { return &o.entries[0] == &p.entries[0] }) {
			shared++
		}
	}
	if all := len(after.pages); all < 10 || shared < all-3 {
		t.Errorf("%d of %d pages are shared", shared, all)
	}
	for name, want := range map[string]string{
		"new.example.org.":                          "[192.0.2.1]",
		fmt.Sprintf("host-%d.example.org.", n/2):    "[]",
		fmt.Sprintf("host-%d.example.org.", n/2+1):  "[10.0.195.81]",
		fmt.Sprintf("host-%d.example.org.", n-1):    "[10.0.134.159]",
		"host-0.example.org.":                       "[10.0.0.0]",
		"another.example.org.":                      "[192.0.2.1]",
		fmt.Sprintf("another-%d.example.org.", n/2): "[]",
	} {
		if got := fmt.Sprint(addresses(after, name, wire.TypeA)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if got := fmt.Sprint(addresses(before, fmt.Sprintf("host-%d.example.org.", n/2), wire.TypeA)); got != "[10.0.195.80]" {
		t.Errorf("the table before has changed: %s", got)
	}
}

// Reading takes no more memory than the table itself, a page and the line.
func TestReadMakesNoGarbage(t *testing.T) {
	const n = 50000
	var text bytes.Buffer
	for i := range n {
		fmt.Fprintf(&text, "192.0.%d.%d\thost-%d.Example.org  alias-%d.example.org # told twice\n", i>>8, i&255, i, i)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b := newBuilder(everywhere, false, nil)
	if err := b.read(&text); err != nil {
		t.Fatal(err)
	}
	tab, _ := b.build()
	runtime.ReadMemStats(&after)
	taken, needed := int(after.TotalAlloc-before.TotalAlloc), tab.size()
	if allowed := needed + needed/4 + 2*pageSize + 2*lineBuffer; taken > allowed {
		t.Errorf("%d octets were taken for a table of %d", taken, needed)
	}
	if perName := needed / (2 * n); perName > 60 {
		t.Errorf("%d octets a name", perName)
	}
}

// Lines of any length are read.
func TestLongLine(t *testing.T) {
	var text strings.Builder
	text.WriteString("192.0.2.1")
	const n = 3 * lineBuffer / 16
	for i := range n {
		fmt.Fprintf(&text, " name-%d.example.org", i)
	}
	text.WriteString("\n192.0.2.2 short.example.org")
	tab := made(t, text.String(), nil)
	for name, want := range map[string]string{
		"name-0.example.org.": "[192.0.2.1]", fmt.Sprintf("name-%d.example.org.", n-1): "[192.0.2.1]", "short.example.org.": "[192.0.2.2]",
	} {
		if got := fmt.Sprint(addresses(tab, name, wire.TypeA)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// What an editor puts before the text does not hide the first line; anywhere else it is a part of a word as any other.
func TestByteOrderMark(t *testing.T) {
	for text, want := range map[string]string{
		"\uFEFF192.0.2.1 one.example.org\n192.0.2.2 two.example.org": "[192.0.2.1] [192.0.2.2]",
		"\uFEFF# comment\r\n192.0.2.1 one.example.org\r\n":           "[192.0.2.1] []",
		"\uFEFF\uFEFF192.0.2.1 one.example.org":                      "[] []",
		"192.0.2.1 one.example.org\n\uFEFF192.0.2.2 two.example.org": "[192.0.2.1] []",
		"\uFEFF": "[] []",
		"\xEF":   "[] []",
		"":       "[] []",
	} {
		tab := made(t, text, nil)
		if got := fmt.Sprint(addresses(tab, "one.example.org.", wire.TypeA), addresses(tab, "two.example.org.", wire.TypeA)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// Words become names as they do everywhere in the server.
func FuzzWord(f *testing.F) {
	for _, s := range []string{"www.Example.ORG", "www.example.org.", ".", "a..b", `a\.b`, `a\`, `\065.org`, "\xc3\x89.org", strings.Repeat("a", 64), strings.Repeat("ab.", 90)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, word string) {
		if word == "" || strings.ContainsAny(word, " \t\n\v\f\r") {
			return
		}
		var b builder
		got, err := b.lower([]byte(word))
		want, wantErr := wire.LowerName(plugin.Name(word).Normalize())
		if (err == nil) != (wantErr == nil) || err == nil && string(got) != string(want) {
			t.Errorf("%q: %q, %v; want %q, %v", word, got, err, want, wantErr)
		}
	})
}
