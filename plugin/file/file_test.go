package file

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

const exampleOrg = `$ORIGIN example.org.
$TTL 300
@ SOA ns hostmaster %d 7200 3600 1209600 300
@ NS ns
ns A 192.0.2.1
www CNAME ns
out CNAME www.example.net.
a.ent TXT "x"
`

// serving makes the handler of a file directive with a file of that text.
func serving(t *testing.T, text, options string, zones ...string) (File, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	if text != "" {
		write(t, path, text)
	}
	f, err := setupOf(fmt.Sprintf("file %s %s {\n%s\n}", path, strings.Join(zones, " "), options))
	if err != nil {
		t.Fatal(err)
	}
	return f, path
}

// setupOf is the handler of a directive.
func setupOf(input string) (File, error) {
	c := caddy.NewTestController("dns", input)
	if err := setup(c); err != nil {
		return File{}, err
	}
	return dnsserver.GetConfig(c).Plugin[0](nil).(File), nil
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// both asks in both lanes and describes what came: rcode and error, whether the next plugin was asked, rcode and
// section counts of the message.
func both(t *testing.T, f File, name, typ string) string {
	t.Helper()
	return bothOf(t, f, new(dns.Msg).SetQuestion(name, dns.StringToType[typ]))
}

func bothOf(t *testing.T, f File, m *dns.Msg) string {
	t.Helper()
	name, typ := m.Question[0].Name, dns.Type(m.Question[0].Qtype)
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	passed := false
	f.Next = plugin.HandlerFunc(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
		passed = true
		return dns.RcodeSuccess, nil
	})
	rc, err := f.ServeDNS(context.Background(), rec, m)
	got := describe(rc, err, passed, rec.Msg)

	p, _ := m.Pack()
	var q wire.Query
	if !q.Parse(p) {
		return got
	}
	var w wire.Reply
	w.Reset(make([]byte, 0, 4096))
	switch f.ServeWire(context.Background(), &w, &q) {
	case wire.Unpack: // the next plugin has no wire lane, or the alias leads out
		return got
	case wire.Done:
	default:
		t.Fatalf("%s %s: an outcome that file does not have", name, typ)
	}
	var onWire *dns.Msg
	rc = w.Rcode()
	if w.Holds() {
		onWire = new(dns.Msg)
		if err := onWire.Unpack(w.Finish(&q, 1232)); err != nil {
			t.Fatal(err)
		}
	}
	if wireGot := describe(rc, w.Err(), false, onWire); wireGot != got {
		t.Errorf("%s %s: lanes differ:\n%s\n%s", name, typ, got, wireGot)
	}
	return got
}

func describe(rc int, err error, passed bool, m *dns.Msg) string {
	s := fmt.Sprintf("%s %v", dns.RcodeToString[rc], err)
	if passed {
		return s + " next"
	}
	if m != nil {
		extra := len(m.Extra)
		if m.IsEdns0() != nil {
			extra--
		}
		s += fmt.Sprintf(" [%s %d %d %d]", dns.RcodeToString[m.Rcode], len(m.Answer), len(m.Ns), extra)
	}
	return s
}

func TestServe(t *testing.T) {
	f, _ := serving(t, fmt.Sprintf(exampleOrg, 1), "fallthrough sub.example.org", "example.org")
	for _, tc := range []struct{ name, typ, want string }{
		{"ns.example.org.", "A", "NOERROR <nil> [NOERROR 1 1 0]"},
		{"NS.Example.org.", "A", "NOERROR <nil> [NOERROR 1 1 0]"},
		{"www.example.org.", "A", "NOERROR <nil> [NOERROR 2 1 0]"},
		{"www.example.org.", "AAAA", "NOERROR <nil> [NOERROR 1 1 0]"},
		{"nope.example.org.", "A", "NXDOMAIN <nil> [NXDOMAIN 0 1 0]"},
		{"x.sub.example.org.", "A", "NOERROR <nil> next"},
		{"ent.example.org.", "A", "NOERROR <nil> [NOERROR 0 1 0]"},
		{"out.example.org.", "A", "NOERROR <nil> [NOERROR 1 1 0]"}, // there is no server to ask
		{"example.org.", "AXFR", "REFUSED <nil>"},
		{"other.test.", "A", "NOERROR <nil> next"},
	} {
		if got := both(t, f, tc.name, tc.typ); got != tc.want {
			t.Errorf("%s %s: got %s, want %s", tc.name, tc.typ, got, tc.want)
		}
	}
}

func TestNoNextPlugin(t *testing.T) {
	f, _ := serving(t, fmt.Sprintf(exampleOrg, 1), "", "example.org")
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if rc, err := f.ServeDNS(context.Background(), rec, new(dns.Msg).SetQuestion("other.test.", dns.TypeA)); rc != dns.RcodeRefused || err != nil || rec.Msg != nil {
		t.Errorf("got %d %v %v", rc, err, rec.Msg)
	}
}

func TestNotify(t *testing.T) {
	out := logtest.Capture(t)
	f, _ := serving(t, fmt.Sprintf(exampleOrg, 1), "", "example.org")
	m := new(dns.Msg).SetNotify("example.org.")
	rec := dnstest.NewRecorder(&test.ResponseWriter{})
	if rc, err := f.ServeDNS(context.Background(), rec, m); rc != 0 || err != nil || rec.Msg.Rcode != dns.RcodeNotAuth || rec.Msg.Opcode != dns.OpcodeNotify {
		t.Errorf("got %d %v %v", rc, err, rec.Msg)
	}
	if !strings.Contains(out.String(), "plugin/file: Dropping notify from 10.240.0.1 for example.org.") {
		t.Error(out.String())
	}
}

func TestReload(t *testing.T) {
	out := logtest.Capture(t)
	f, path := serving(t, fmt.Sprintf(exampleOrg, 1), "reload 1h", "example.org")
	z := f.Zones.Z["example.org."]
	look := func(wantSerial uint32, wantLog string) {
		t.Helper()
		before := len(out.String())
		z.Refresh(t.Context())
		if got := z.Current().Serial(); got != wantSerial {
			t.Errorf("serial %d, want %d", got, wantSerial)
		}
		if got := out.String()[before:]; wantLog == "" && got != "" || !strings.Contains(got, wantLog) {
			t.Errorf("logged %q, want %q", got, wantLog)
		}
	}
	look(1, "")
	write(t, path, fmt.Sprintf(exampleOrg, 1)+"new A 192.0.2.9\n")
	look(1, "") // another file, but no other serial
	write(t, path, fmt.Sprintf(exampleOrg, 2)+"new A 192.0.2.9\n")
	look(2, `Successfully reloaded zone "example.org." in "`+path+`" with 2 SOA serial`)
	if got := both(t, f, "new.example.org.", "A"); got != "NOERROR <nil> [NOERROR 1 1 0]" {
		t.Errorf("the new name: %s", got)
	}
	write(t, path, fmt.Sprintf(exampleOrg, 3)+"bad A 192.0.2\n")
	look(2, path+":9: bad.example.org. A: bad address")
	look(2, "") // told once
	os.Remove(path)
	look(2, `Failed to open zone "example.org." in "`+path+`": open `+path+`: no such file or directory`)
	look(2, "")
	write(t, path, fmt.Sprintf(exampleOrg, 1))
	look(1, "with 1 SOA serial") // also backwards
}

func TestReloadByMtime(t *testing.T) {
	out := logtest.Capture(t)
	f, path := serving(t, fmt.Sprintf(exampleOrg, 1), "reload_by_mtime", "example.org")
	z := f.Zones.Z["example.org."]
	before := z.Current()
	z.Refresh(t.Context())
	if z.Current() != before {
		t.Error("an untouched file was read again")
	}
	write(t, path, fmt.Sprintf(exampleOrg, 1)+"new A 192.0.2.9\n")
	z.Refresh(t.Context())
	if z.Current() == before {
		t.Error("a changed file was not read again")
	}
	os.Remove(path)
	z.Refresh(t.Context())
	if want := `Failed to stat zone "example.org." in "` + path + `": stat ` + path + `: no such file or directory`; !strings.Contains(out.String(), want) {
		t.Errorf("logged %s, want %s", out, want)
	}
}

func TestMissingFile(t *testing.T) {
	out := logtest.Capture(t)
	f, path := serving(t, "", "reload 10ms", "example.org")
	if got := both(t, f, "ns.example.org.", "A"); got != "SERVFAIL <nil>" {
		t.Errorf("without a file: %s", got)
	}
	if want := `Failed to open "open ` + path + `: no such file or directory": trying again in 10ms`; !strings.Contains(out.String(), want) {
		t.Errorf("logged %q", out)
	}
	z := f.Zones.Z["example.org."]
	w := watch([]*Zone{z})
	defer w.stop()
	write(t, path, fmt.Sprintf(exampleOrg, 1))
	deadline := time.Now().Add(3 * time.Second)
	for z.Current() == nil {
		if time.Now().After(deadline) {
			t.Fatal("the file that came was not read")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestMissingFileComesSoon: a zone that has not been read yet is looked for each second, whatever its interval. What has been read
// is left to its own time again, and what does not come is not told of each time.
func TestMissingFileComesSoon(t *testing.T) {
	out := logtest.Capture(t)
	f, path := serving(t, "", "reload 1h", "example.org")
	other := NewZone("example.net", path+".other")
	other.ReloadInterval = time.Hour
	z := f.Zones.Z["example.org."]
	w := watch([]*Zone{z, other})
	defer w.stop()
	settle(t, path, fmt.Sprintf(exampleOrg, 1))
	eventually.Holds(t, "the zone", func() bool { return z.Current() != nil })
	settle(t, path, fmt.Sprintf(exampleOrg, 2))
	write(t, other.File(), fmt.Sprintf(strings.ReplaceAll(exampleOrg, "example.org", "example.net"), 1))
	eventually.Holds(t, "the other zone", func() bool { return other.Current() != nil })
	if z.Current().Serial() != 1 {
		t.Error("what had been read was read again before its time")
	}
	if strings.Contains(out.String(), "Failed to open zone") {
		t.Errorf("logged %s", out)
	}
}

// What stands in the way of opening a file may go away.
func TestUnopenableFile(t *testing.T) {
	out := logtest.Capture(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "way"), "a file")
	path := filepath.Join(dir, "way", "db")
	if err := setup(caddy.NewTestController("dns", "file "+path+" example.org")); err != nil {
		t.Error(err)
	}
	if want := `Failed to open "open ` + path + `: not a directory": trying again in 1m0s`; !strings.Contains(out.String(), want) {
		t.Errorf("logged %q", out)
	}
	if err := setup(caddy.NewTestController("dns", "file "+path+" example.org {\nreload 0\n}")); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("never to be looked at again: %v", err)
	}
}

// A file full of what does not belong there does not fill the log.
func TestWarningsAreCounted(t *testing.T) {
	out := logtest.Capture(t)
	_, path := serving(t, fmt.Sprintf(exampleOrg, 1)+"$GENERATE 1-1000 x$.example.net. A 192.0.2.1\n", "", "example.org")
	if n := strings.Count(out.String(), "is not in zone example.org.: left out"); n != maxWarnings {
		t.Errorf("%d warnings", n)
	}
	if want := fmt.Sprintf("File %q: %d more warnings", path, 1000-maxWarnings); !strings.Contains(out.String(), want) {
		t.Errorf("no %q in %s", want, out)
	}
}

// One file may serve several origins, also if it names one: the SOA record is that of all.
func TestSOAOfAnotherOwner(t *testing.T) {
	out := logtest.Capture(t)
	f, path := serving(t, "$ORIGIN example.org.\n$TTL 300\n@ SOA ns host 4 5 6 7 60\n@ NS ns\nwww.example.net. A 192.0.2.1\n", "", "example.org example.net")
	for name, want := range map[string]string{"example.net.": "NOERROR <nil> [NOERROR 1 0 0]", "www.example.net.": "NOERROR <nil> [NOERROR 0 1 0]"} {
		if got := both(t, f, name, "SOA"); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if want := "SOA record of example.org. is not at the apex of zone example.net.: taken for the zone's, which has none"; !strings.Contains(out.String(), want) {
		t.Errorf("logged %q", out)
	}
	z := f.Zones.Z["example.net."]
	before := z.Current()
	write(t, path, "$ORIGIN example.org.\n$TTL 300\n@ SOA ns host 4 5 6 7 60\nwww.example.net. A 192.0.2.2\n")
	if z.Refresh(t.Context()) || z.Current() != before {
		t.Error("the same serial was taken for a change")
	}
	write(t, path, "$ORIGIN example.net.\n$TTL 300\n@ SOA ns host 9 5 6 7 60\nsub SOA ns host 8 5 6 7 60\n")
	if !z.Refresh(t.Context()) || z.Current().Serial() != 9 {
		t.Errorf("serial %d: the apex' own SOA record counts", z.Current().Serial())
	}
}

func TestSetup(t *testing.T) {
	dir := t.TempDir()
	good, bad, noSOA := filepath.Join(dir, "good"), filepath.Join(dir, "bad"), filepath.Join(dir, "nosoa")
	write(t, good, fmt.Sprintf(exampleOrg, 1))
	write(t, bad, "$TTL 5\n@ SOA a b 1 2 3 4 5\nx A y\n")
	write(t, noSOA, "$TTL 5\nx A 192.0.2.1\n")
	for _, tc := range []struct{ input, want string }{
		{"file " + good + " example.org", ""},
		{"file " + good + " example.org {\nupstream 1.2.3.4\nreload 0\n}", ""},
		{"file", "Wrong argument count or unexpected line ending after 'file'"},
		{"file " + good + " example.org {\nreload\n}", "reload duration value is expected"},
		{"file " + good + " example.org {\nreload 5\n}", `time: missing unit in duration "5"`},
		{"file " + good + " example.org {\nreload -1s\n}", "invalid duration"},
		{"file " + good + " example.org {\nrelaod 1s\n}", "unknown property 'relaod': did you mean 'reload'?"},
		{"file " + good + " a..b", `invalid zone "a..b"`},
		{"file " + bad + " example.org", `plugin/file: failed to parse file "` + bad + `" for origin example.org. with error ` + bad + ":3: x.example.org. A: bad address"},
		{"file " + noSOA + " example.org", `file "` + noSOA + `" has no SOA record for origin example.org.`},
		{"file " + dir + "/none example.org {\nreload 0\n}", "no such file or directory"},
	} {
		logtest.Capture(t)
		c := caddy.NewTestController("dns", tc.input)
		err := setup(c)
		if tc.want == "" {
			if err != nil {
				t.Errorf("%q: %v", tc.input, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: got %v, want %s", tc.input, err, tc.want)
		}
	}
}

func TestReadmeSyntax(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("%v\n%s\nis not\n%s", err, got, directive.Doc().Syntax)
	}
}

// Zones are swapped while they are asked.
func TestReloadUnderQueries(t *testing.T) {
	logtest.Capture(t)
	f, path := serving(t, fmt.Sprintf(exampleOrg, 1), "", "example.org")
	z := f.Zones.Z["example.org."]
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				rec := dnstest.NewRecorder(&test.ResponseWriter{})
				f.ServeDNS(context.Background(), rec, new(dns.Msg).SetQuestion("ns.example.org.", dns.TypeA))
				if rec.Msg == nil || len(rec.Msg.Answer) != 1 {
					t.Error("no answer")
					return
				}
			}
		})
	}
	for i := range 50 {
		write(t, path, fmt.Sprintf(exampleOrg, i+2))
		z.Refresh(t.Context())
	}
	close(stop)
	wg.Wait()
	if z.Current().Serial() != 51 {
		t.Errorf("serial %d", z.Current().Serial())
	}
}
