package auto

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/metrics"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

const zoneText = "$TTL 300\n@ SOA ns hostmaster %d 7200 3600 1209600 300\n@ NS ns\nns A 192.0.2.%d\n"

// put writes a zone of that serial; its address ends in the serial.
func put(t *testing.T, path string, serial int) {
	t.Helper()
	write(t, path, fmt.Sprintf(zoneText, serial, serial))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+"#", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"#", path); err != nil {
		t.Fatal(err)
	}
}

// handler is the handler of directives in a block for "."; it has looked once.
func handler(t *testing.T, input string) Auto {
	t.Helper()
	c := caddy.NewTestController("dns", input)
	c.ServerBlockKeys = []string{"."}
	if err := setup(c); err != nil {
		t.Fatal(err)
	}
	a := dnsserver.GetConfig(c).Plugin[0](nil).(Auto)
	if err := a.Walk(); err != nil {
		t.Fatal(err)
	}
	return a
}

// ask asks in both lanes, which must agree, and tells the rcode, the address that came, or that the next plugin was asked.
func ask(t *testing.T, a Auto, name string) string {
	t.Helper()
	got := asMessage(t, a, name)
	if onWire := asBytes(t, a, name); onWire != got {
		t.Errorf("%s: lanes differ: %s, on the wire %s", name, got, onWire)
	}
	return got
}

func asMessage(t *testing.T, a Auto, name string) string {
	t.Helper()
	passed := false
	a.Next = plugin.HandlerFunc(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
		passed = true
		return dns.RcodeSuccess, nil
	})
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	rcode, err := a.ServeDNS(context.Background(), rec, new(dns.Msg).SetQuestion(name, dns.TypeA))
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if passed {
		return "next"
	}
	return describe(rcode, rec.Msg)
}

func asBytes(t *testing.T, a Auto, name string) string {
	t.Helper()
	a.Next = test.ErrorHandler() // without a wire lane
	p, _ := new(dns.Msg).SetQuestion(name, dns.TypeA).Pack()
	var q wire.Query
	var w wire.Reply
	w.Reset(nil)
	if !q.Parse(p) {
		t.Fatal(name)
	}
	if a.ServeWire(context.Background(), &w, &q) != wire.Done {
		return "next"
	}
	if !w.Holds() {
		return describe(w.Rcode(), nil)
	}
	reply := new(dns.Msg)
	if err := reply.Unpack(w.Finish(&q, 1232)); err != nil {
		t.Fatal(err)
	}
	if w.Writer() != "auto" {
		t.Errorf("written by %q", w.Writer())
	}
	return describe(w.Rcode(), reply)
}

func describe(rcode int, m *dns.Msg) string {
	if m != nil && len(m.Answer) > 0 {
		return m.Answer[0].(*dns.A).A.String()
	}
	return dns.RcodeToString[rcode]
}

// TestLooks tells the story of a folder.
func TestLooks(t *testing.T) {
	out := logtest.Capture(t)
	dir := t.TempDir()
	one, two := filepath.Join(dir, "db.One.example"), filepath.Join(dir, "deep", "db.two.example")
	put(t, one, 1)
	put(t, two, 2)
	put(t, filepath.Join(dir, "other.three.example"), 3)
	if err := os.Symlink(two, filepath.Join(dir, "deep", "db.link.example")); err != nil {
		t.Fatal(err)
	}
	a := handler(t, "auto {\ndirectory "+dir+"\n}")
	step := func(what string, logs []string, want map[string]string) {
		t.Helper()
		if what != "" {
			if err := a.Walk(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		got := out.Take()
		for _, l := range logs {
			if !strings.Contains(got, l) {
				t.Errorf("%s: logged %q, want %s", what, got, l)
			}
		}
		if len(logs) != strings.Count(got, "\n") {
			t.Errorf("%s: logged %q", what, got)
		}
		for name, w := range want {
			if got := ask(t, a, name); got != w {
				t.Errorf("%s: %s: got %s, want %s", what, name, got, w)
			}
		}
	}
	step("", []string{"[INFO] plugin/auto: Inserting zone `one.example.' from: " + one, "Inserting zone `two.example.'", "Inserting zone `link.example.'"},
		map[string]string{"ns.one.example.": "192.0.2.1", "NS.two.Example.": "192.0.2.2", "ns.link.example.": "192.0.2.2", "ns.three.example.": "next", "x.one.example.": "NXDOMAIN"})
	step("nothing", nil, nil)
	put(t, one, 11)
	put(t, filepath.Join(dir, "db.four.example"), 4)
	os.Remove(two)
	step("changes", []string{`[INFO] plugin/file: Successfully reloaded zone "one.example."`, "Inserting zone `four.example.'", "Deleting zone `two.example.'", "Deleting zone `link.example.'"},
		map[string]string{"ns.one.example.": "192.0.2.11", "ns.four.example.": "192.0.2.4", "ns.two.example.": "next", "ns.link.example.": "next"})
	write(t, one, "broken A\n")
	write(t, two, "$TTL 5\n@ SOA a b 1 2 3 4 5\nns A x\n")
	broken := "[WARNING] plugin/auto: Parse zone `two.example.': failed to parse file \"" + two + "\" for origin two.example. with error " + two + ":3: ns.two.example. A: bad address"
	step("broken files", []string{broken, "Parse zone `link.example.'", `[ERROR] plugin/file: Parsing zone "one.example.": failed to parse file`}, map[string]string{"ns.one.example.": "192.0.2.11", "ns.two.example.": "next"})
	step("still broken", nil, nil)
	put(t, two, 22)
	step("mended", []string{"Inserting zone `two.example.'", "Inserting zone `link.example.'"}, map[string]string{"ns.two.example.": "192.0.2.22"})
	put(t, filepath.Join(dir, "zz", "db.two.example"), 23)
	double := `Multiple zone files match origin "two.example.": using "` + two + `" instead of "` + filepath.Join(dir, "zz", "db.two.example") + `"`
	step("two files for one zone", []string{double}, map[string]string{"ns.two.example.": "192.0.2.22"})
	step("told once", nil, nil)
	os.Remove(two)
	step("the other one", []string{`Successfully reloaded zone "two.example."`, "Deleting zone `link.example.'"}, map[string]string{"ns.two.example.": "192.0.2.23"})
	if got := a.Names(); !slices.Equal(got, []string{"four.example.", "one.example.", "two.example."}) {
		t.Errorf("names %v", got)
	}
	os.RemoveAll(dir)
	step("no folder", []string{"error reading " + dir, "Deleting zone `four", "Deleting zone `one", "Deleting zone `two"}, map[string]string{"ns.one.example.": "next"})
}

// TestUnreadable: zones whose folder cannot be read any more stay.
func TestUnreadable(t *testing.T) {
	logtest.Capture(t)
	a := handler(t, "auto {\ndirectory "+t.TempDir()+"\n}")
	z := file.NewZone("example.org", filepath.Join("dir", "sub", "db.example.org"))
	l := listing{unread: []string{filepath.Join("dir", "sub")}}
	if l.knows(z.File()) || !l.knows(filepath.Join("dir", "subway", "db.example.org")) || l.knows(filepath.Join("dir", "sub")) {
		t.Error("what cannot be read is taken for gone")
	}
	if os.Getuid() == 0 {
		t.Log("root reads everything: the rest is not tried")
		return
	}
	dir := filepath.Join(a.folders[0].path, "sub")
	put(t, filepath.Join(dir, "db.example.org"), 1)
	a.Walk()
	os.Chmod(dir, 0)
	defer os.Chmod(dir, 0o755)
	a.Walk()
	if got := ask(t, a, "ns.example.org."); got != "192.0.2.1" {
		t.Errorf("got %s", got)
	}
}

func TestTemplate(t *testing.T) {
	logtest.Capture(t)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "org-example.zone"), 1)
	put(t, filepath.Join(dir, "net-example.zone"), 2)
	put(t, filepath.Join(dir, "..-.zone"), 3)
	a := handler(t, "auto example.org {\ndirectory "+dir+` (.*)-(.*)\.zone$ {2}.{1}`+"\nreload 0\nfallthrough sub.example.org\n}")
	for name, want := range map[string]string{"ns.example.org.": "192.0.2.1", "ns.example.net.": "next", "x.sub.example.org.": "next", "x.example.org.": "NXDOMAIN"} {
		if got := ask(t, a, name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	if got := a.Names(); !slices.Equal(got, []string{"example.net.", "example.org."}) || !slices.Equal(a.Origins(), []string{"example.org."}) {
		t.Errorf("names %v, origins %v", got, a.Origins())
	}
}

// TestSeveralFolders: a zone that stands in two of them is served from the first.
func TestSeveralFolders(t *testing.T) {
	out := logtest.Capture(t)
	first, second := t.TempDir(), t.TempDir()
	put(t, filepath.Join(first, "db.one.example"), 1)
	put(t, filepath.Join(second, "db.one.example"), 2)
	put(t, filepath.Join(second, "db.two.example"), 2)
	a := handler(t, "auto {\ndirectory "+first+"\n}\nauto {\ndirectory "+second+"\n}")
	if got := ask(t, a, "ns.one.example.") + " " + ask(t, a, "ns.two.example."); got != "192.0.2.1 192.0.2.2" {
		t.Errorf("got %s", got)
	}
	if got := out.Take(); !strings.Contains(got, `Multiple zone files match origin "one.example."`) {
		t.Errorf("logged %q", got)
	}
	os.Remove(filepath.Join(first, "db.one.example"))
	a.Walk()
	if got := ask(t, a, "ns.one.example."); got != "192.0.2.2" {
		t.Errorf("got %s", got)
	}
}

// A file that comes to several folders at once is served from one, and from the other when it goes there.
func TestSeveralFoldersAtOnce(t *testing.T) {
	logtest.Capture(t)
	one, two := t.TempDir(), t.TempDir()
	a := handler(t, "auto {\ndirectory "+one+"\n}\nauto {\ndirectory "+two+"\n}")
	for round := range 100 {
		name := fmt.Sprintf("z%d.example.", round)
		var looks sync.WaitGroup
		for i, f := range a.folders {
			put(t, filepath.Join(f.path, "db."+name), 1+i)
		}
		for _, f := range a.folders {
			looks.Go(func() { a.look(context.Background(), f, 0) })
		}
		looks.Wait()
		for _, f := range a.folders {
			if f.zones[name] != nil {
				os.Remove(filepath.Join(f.path, "db."+name))
				break
			}
		}
		if err := a.Walk(); err != nil {
			t.Fatal(err)
		}
		if err := a.Walk(); err != nil {
			t.Fatal(err)
		}
		if a.Zones.Zones(name) == nil {
			t.Fatalf("%s is served from neither folder", name)
		}
	}
}

// TestLife starts the plugin in a server block with its friends, and ends it.
func TestLife(t *testing.T) {
	out := logtest.Capture(t)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "db.one.example"), 1)
	a := handler(t, "auto {\ndirectory "+dir+"\nreload 5ms\n}")
	a.friends.metrics = metrics.New("127.0.0.1:0")
	a.friends.transfer = new(transfer.Transfer)
	w := a.watch()
	put(t, filepath.Join(dir, "db.two.example"), 2)
	eventually.Holds(t, "the new zone", func() bool { return a.Zones.Zones("two.example.") != nil })
	if got := a.friends.metrics.ZoneNames(); !slices.Equal(got, []string{"two.example."}) {
		t.Errorf("zones of metrics: %v", got)
	}
	if _, err := a.Version("two.example."); err != nil {
		t.Errorf("no transfer of it: %v", err)
	}
	os.Remove(filepath.Join(dir, "db.two.example"))
	eventually.Holds(t, "its end", func() bool { return a.Zones.Zones("two.example.") == nil })
	eventually.Holds(t, "its end in metrics", func() bool { return len(a.friends.metrics.ZoneNames()) == 0 })
	if _, err := a.Version("two.example."); err != transfer.ErrNotAuthoritative {
		t.Errorf("a transfer of what is gone: %v", err)
	}
	if _, err := a.Transfer("two.example.", 0); err != transfer.ErrNotAuthoritative {
		t.Errorf("a transfer of what is gone: %v", err)
	}
	if err := a.Notify(); err != nil {
		t.Error(err)
	}
	w.stop()
	put(t, filepath.Join(dir, "db.three.example"), 3)
	out.Take()
	time.Sleep(20 * time.Millisecond)
	if got := out.Take(); got != "" || a.Zones.Zones("three.example.") != nil {
		t.Errorf("a look after the end: %q", got)
	}
}

// TestAddRemove is what programs do that have zones of their own.
func TestAddRemove(t *testing.T) {
	logtest.Capture(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "db")
	put(t, path, 1)
	a := handler(t, "auto {\ndirectory "+dir+"\n}")
	z := file.NewZone("one.example.", path)
	z.ReloadInterval = 5 * time.Millisecond
	if err := z.Load(); err != nil {
		t.Fatal(err)
	}
	a.Add(z, "one.example.", nil)
	if got := ask(t, a, "ns.one.example."); got != "192.0.2.1" {
		t.Errorf("got %s", got)
	}
	put(t, path, 2)
	eventually.Holds(t, "the change", func() bool { return asBytes(t, a, "ns.one.example.") == "192.0.2.2" })
	a.Remove("one.example.")
	a.Remove("one.example.")
	if got := ask(t, a, "ns.one.example."); got != "next" {
		t.Errorf("got %s", got)
	}
}

// TestQueriesDuringLooks: the race detector looks on.
func TestQueriesDuringLooks(t *testing.T) {
	logtest.Capture(t)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "db.one.example"), 1)
	a := handler(t, "auto {\ndirectory "+dir+"\n}")
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				for _, got := range []string{asMessage(t, a, "ns.one.example."), asBytes(t, a, "ns.one.example.")} {
					if !strings.HasPrefix(got, "192.0.2.") {
						t.Errorf("got %s", got)
						return
					}
				}
			}
		})
	}
	for i := range 40 {
		put(t, filepath.Join(dir, "db.one.example"), i+2)
		put(t, filepath.Join(dir, fmt.Sprintf("db.more%d.example", i%5)), i)
		a.Walk()
		os.Remove(filepath.Join(dir, fmt.Sprintf("db.more%d.example", i%3)))
	}
	close(done)
	wg.Wait()
}

func TestSetup(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct{ input, want string }{
		{"auto {\ndirectory " + dir + "\n}", ""},
		{"auto 10.0.0.0/24 {\ndirectory " + dir + "/nope\nreload 0\nupstream\nfallthrough\n}", ""},
		{"auto {\ndirectory " + dir + " (.*) {1}\nreload_by_mtime\nnsec3\nzonemd\n}", ""},
		{"auto", "'directory' is required"},
		{"auto {\nreload 5s\n}", "'directory' is required"},
		{"auto a..b {\ndirectory " + dir + "\n}", `invalid zone "a..b"`},
		{"auto {\ndirectory\n}", "Wrong argument count or unexpected line ending after 'directory'"},
		{"auto {\ndirectory " + dir + " (.*)\n}", "Wrong argument count"},
		{"auto {\ndirectory " + dir + " (.*) {1} aa\n}", "Wrong argument count"},
		{"auto {\ndirectory " + dir + " * {1}\n}", "missing argument to repetition operator"},
		{"auto {\ndirectory " + dir + " .* x\n}", "Need at least one sub expression"},
		{"auto {\ndirectory " + dir + " (" + strings.Repeat("x", 10000) + ") x\n}", "regexp too large"},
		{"auto {\ndirectory " + dir + "\nreload\n}", "reload duration value is expected"},
		{"auto {\ndirectory " + dir + "\nreload -1s\n}", "invalid duration"},
		{"auto {\ndirectory " + dir + "\nreload x\n}", "invalid duration"},
		{"auto {\ndirectory " + dir + "\nno_reload\n}", "unknown property 'no_reload'"},
	} {
		out := logtest.Capture(t)
		err := setup(caddy.NewTestController("dns", tc.input))
		if (err == nil) != (tc.want == "") || err != nil && (!strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "plugin/auto: ")) {
			t.Errorf("%q: got %v, want %s", tc.input, err, tc.want)
		}
		if got := out.Take(); strings.Contains(got, "Directory does not exist: "+dir+"/nope") != strings.Contains(tc.input, "nope") {
			t.Errorf("%q: logged %q", tc.input, got)
		}
	}
}

func TestReadmeSyntax(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("%v\n%s\nis not\n%s", err, got, directive.Doc().Syntax)
	}
}

func BenchmarkServeWire(b *testing.B) {
	logtest.Capture(b)
	zones := newZones([]string{"."})
	changes := map[string]*file.Zone{}
	for i := range 1000 {
		name := fmt.Sprintf("z%d.example.", i)
		z, err := file.Parse(strings.NewReader(fmt.Sprintf(zoneText, 1, 1)), name, "db", -1)
		if err != nil {
			b.Fatal(err)
		}
		served := file.NewZone(name, "")
		served.Replace(z.Current())
		changes[name] = served
	}
	zones.put(changes)
	var h plugin.WireHandler = Auto{Zones: zones, friends: new(friends)}
	p, _ := new(dns.Msg).SetQuestion("ns.z500.example.", dns.TypeA).Pack()
	var q wire.Query
	var w wire.Reply
	buf := make([]byte, 4096)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		q.Parse(p)
		w.Reset(buf)
		if h.ServeWire(ctx, &w, &q) != wire.Done || w.Count(wire.Answer) != 1 {
			b.Fatal("not answered")
		}
		w.Finish(&q, 1232)
	}
}

// A file that may still be written is left for a moment, and the next look comes then.
func TestFreshFiles(t *testing.T) {
	logtest.Capture(t)
	a := handler(t, "auto {\ndirectory "+t.TempDir()+"\n}")
	f := a.folders[0]
	path := filepath.Join(f.path, "db.example.org")
	for serial, old := range []bool{false, true, false} {
		put(t, path, serial)
		if old {
			if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		again := a.look(t.Context(), f, time.Hour)
		if (again > 0) == old || again > time.Second {
			t.Errorf("serial %d: again in %v", serial, again)
		}
		if z := a.Zones.Zones("example.org."); (z == nil) != (serial == 0) || z != nil && z.Current().Serial() != 1 {
			t.Errorf("serial %d: %v", serial, z)
		}
	}
}
