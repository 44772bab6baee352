package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// loaded is a Zone read from a file of that text, which was not changed just now.
func loaded(t *testing.T, text string) (z *Zone, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "db.example.org")
	settle(t, path, text)
	z = NewZone("example.org", path)
	if err := z.Load(); err != nil {
		t.Fatal(err)
	}
	return z, path
}

// settle writes a file that looks as if it was an hour old.
func settle(t *testing.T, path, text string) {
	t.Helper()
	write(t, path, text)
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
}

// TestIncluded: a change of an included file is seen, if the SOA record tells of it or nobody asks that.
func TestIncluded(t *testing.T) {
	logtest.Capture(t)
	dir := t.TempDir()
	part := filepath.Join(dir, "hosts")
	settle(t, part, "a A 192.0.2.1\n")
	path := filepath.Join(dir, "db")
	settle(t, path, fmt.Sprintf(exampleOrg, 1)+"$INCLUDE hosts\n")
	z := NewZone("example.org", path)
	z.ReloadByMtime = true
	if err := z.Load(); err != nil {
		t.Fatal(err)
	}
	if z.Refresh(t.Context()) {
		t.Error("a new version of nothing")
	}
	write(t, part, "a A 192.0.2.1\nb A 192.0.2.2\n")
	if !z.Refresh(t.Context()) || z.Current().Records() != 8 {
		t.Errorf("%d records", z.Current().Records())
	}
	os.Remove(part)
	if z.Refresh(t.Context()) {
		t.Error("a new version without the included file")
	}
	settle(t, part, "a A 192.0.2.1\n")
	if !z.Refresh(t.Context()) || z.Current().Records() != 7 {
		t.Errorf("the included file is back: %d records", z.Current().Records())
	}
}

// TestFailureIsShown: why a file is not taken is shown as long as that is so, and since when.
func TestFailureIsShown(t *testing.T) {
	logtest.Capture(t)
	z, path := loaded(t, fmt.Sprintf(exampleOrg, 1))
	if s := z.Status("file"); s.Failure != "" || !s.Failing.IsZero() {
		t.Errorf("a good file: %+v", s)
	}
	var since time.Time
	for _, tc := range []struct{ text, want string }{
		{"", "Parsing zone \"example.org.\": "},
		{"a A 1.2.3\n", "Parsing zone \"example.org.\": "},
		{"none", "Failed to open zone \"example.org.\" in "},
		{"none", "Failed to open zone \"example.org.\" in "},
	} {
		if settle(t, path, tc.text); tc.text == "none" {
			os.Remove(path)
		}
		z.Refresh(t.Context())
		s := z.Status("file")
		if !strings.HasPrefix(s.Failure, tc.want) || s.Failing.IsZero() || !since.IsZero() && s.Failing != since || !s.Loaded || s.Serial != 1 {
			t.Errorf("%q: %+v, want %q", tc.text, s, tc.want)
		}
		since = s.Failing
	}
	for _, serial := range []uint32{1, 2} {
		settle(t, path, fmt.Sprintf(exampleOrg, serial))
		z.Refresh(t.Context())
		if s := z.Status("file"); s.Failure != "" || !s.Failing.IsZero() || s.Serial != serial {
			t.Errorf("a good file again, of serial %d: %+v", serial, s)
		}
		z.Looked(errors.New("x"))
	}
}

// TestTouched: another time is no other content.
func TestTouched(t *testing.T) {
	logtest.Capture(t)
	z, path := loaded(t, fmt.Sprintf(exampleOrg, 1))
	z.ReloadByMtime = true
	before := z.Current()
	for i := range 3 {
		write(t, path, fmt.Sprintf(exampleOrg, 1))
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
		if z.Refresh(t.Context()) || z.Current() != before {
			t.Error("a touched file gives a new version")
		}
	}
	write(t, path, fmt.Sprintf(exampleOrg, 1)+"new A 192.0.2.2\n")
	if !z.Refresh(t.Context()) {
		t.Error("a changed file gives no new version")
	}
}

// TestUnsettled: a file that is changed again within the same tick of the clock is seen.
func TestUnsettled(t *testing.T) {
	logtest.Capture(t)
	path := filepath.Join(t.TempDir(), "db")
	write(t, path, fmt.Sprintf(exampleOrg, 1))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	z := NewZone("example.org", path)
	if err := z.Load(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0) // the same inode, length and time
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(f, exampleOrg, 2)
	f.Close()
	if err := os.Chtimes(path, time.Time{}, info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if !z.Refresh(t.Context()) || z.Current().Serial() != 2 {
		t.Errorf("serial %d", z.Current().Serial())
	}
}

func TestSetFile(t *testing.T) {
	logtest.Capture(t)
	z, path := loaded(t, fmt.Sprintf(exampleOrg, 1))
	settle(t, path+"2", fmt.Sprintf(exampleOrg, 2))
	z.SetFile(path + "2")
	if !z.Refresh(t.Context()) || z.Current().Serial() != 2 {
		t.Errorf("serial %d", z.Current().Serial())
	}
}

// TestCancelled: who ends the server does not wait until a large file is read.
func TestCancelled(t *testing.T) {
	out := logtest.Capture(t)
	z, path := loaded(t, fmt.Sprintf(exampleOrg, 1))
	write(t, path, fmt.Sprintf(exampleOrg, 2)+"$GENERATE 1-40000 h$ A 192.0.2.1\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if z.Refresh(ctx) || z.Current().Serial() != 1 || out.String() != "" {
		t.Errorf("serial %d, logged %q", z.Current().Serial(), out)
	}
	if !z.Refresh(t.Context()) {
		t.Error("nor later")
	}
}

func TestWatcher(t *testing.T) {
	now := time.Now()
	zones := make([]*Zone, 5)
	for i, every := range []time.Duration{time.Second, 0, time.Minute, time.Second, -1} {
		zones[i] = NewZone(fmt.Sprintf("z%d.example.org", i), "db")
		zones[i].ReloadInterval = every
	}
	rounds := roundsOf(zones, now)
	if len(rounds) != 2 || len(rounds[0].zones) != 2 || rounds[0].next != now.Add(time.Second) || rounds[1].zones[0] != zones[2] {
		t.Errorf("%d rounds: %v", len(rounds), rounds)
	}
	logtest.Capture(t)
	z, path := loaded(t, fmt.Sprintf(exampleOrg, 1))
	z.ReloadInterval = 5 * time.Millisecond
	changed := make(chan uint32, 10)
	defer z.OnReplace(func(old, now *zone.Zone) { changed <- now.Serial() })()
	w := watch([]*Zone{z, zones[1]})
	for serial := uint32(2); serial < 4; serial++ {
		write(t, path, fmt.Sprintf(exampleOrg, serial))
		select {
		case got := <-changed:
			if got != serial {
				t.Errorf("serial %d, want %d", got, serial)
			}
		case <-time.After(3 * time.Second):
			t.Fatal("the change was not seen")
		}
	}
	w.stop()
	write(t, path, fmt.Sprintf(exampleOrg, 9))
	time.Sleep(20 * time.Millisecond)
	if z.Current().Serial() != 3 {
		t.Errorf("read after the end: serial %d", z.Current().Serial())
	}
}

// signed3 is shaped like a zone with NSEC3 records.
const signed3 = "@ NSEC3PARAM 1 0 0 -\n0p9mhaveqvm6t7vbl5lop2u3t2rp3tom NSEC3 1 0 0 - 2t7b4g4vsa5smi47k61mv5bv1a22bojr A\n"

func TestLoaderOptions(t *testing.T) {
	digest := func(z *Zone) string {
		sum, err := z.Current().Digest(1, 1)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("@ ZONEMD 1 1 1 %x\n", sum)
	}
	plain, _ := loaded(t, fmt.Sprintf(exampleOrg, 1))
	right := digest(plain)
	wrong := strings.Replace(right, " 1 1 1 ", " 1 1 1 00", 1)
	wrong = wrong[:len(wrong)-3] + "\n"
	for _, tc := range []struct {
		text, options, want string
	}{
		{signed3, "", "NSEC3 zone is not supported, dropping RR: example.org. for zone: example.org. (FILE:9)"},
		{signed3, "nsec3", ""},
		{right, "zonemd", ""},
		{wrong, "", ""},
		{"", "zonemd", ""},
		{wrong, "zonemd", `plugin/file: file "FILE" for origin example.org.: the ZONEMD record does not match the zone's data`},
		{strings.Replace(right, "ZONEMD 1 ", "ZONEMD 2 ", 1), "zonemd", "the ZONEMD record has another serial than the SOA record"},
		{"", "nsec3 x", "Wrong argument count or unexpected line ending after 'x'"},
	} {
		logtest.Capture(t)
		path := filepath.Join(t.TempDir(), "db")
		write(t, path, fmt.Sprintf(exampleOrg, 1)+tc.text)
		_, err := setupOf(fmt.Sprintf("file %s example.org {\n%s\n}", path, tc.options))
		want := strings.ReplaceAll(tc.want, "FILE", path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q, %s: got %v, want %s", tc.text, tc.options, err, want)
		}
	}
}

// TestNSEC3Zone: with the option, denials are proved.
func TestNSEC3Zone(t *testing.T) {
	logtest.Capture(t)
	f, _ := serving(t, fmt.Sprintf(exampleOrg, 1)+signed3, "nsec3", "example.org")
	m := new(dns.Msg).SetQuestion("nope.example.org.", dns.TypeA)
	m.SetEdns0(1232, true)
	if got := bothOf(t, f, m); got != "NXDOMAIN <nil> [NXDOMAIN 0 2 0]" {
		t.Errorf("got %s", got)
	}
}

// endless is a file of records that never ends; stop is called when a mebibyte was read.
type endless struct {
	n    int
	stop func()
}

func (e *endless) Read(b []byte) (int, error) {
	const line = "host.example.org. 300 IN A 192.0.2.1\n"
	n := 0
	for n+len(line) <= len(b) {
		n += copy(b[n:], line)
	}
	if e.n += n; e.n > 1<<20 {
		e.stop()
	}
	return n, nil
}

func TestCancelledWhileReading(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l := loader{ctx: ctx, origin: NewZone("example.org", "").name, file: "db", serial: -1}
	in := &endless{stop: cancel}
	if _, err := l.load(in, nil); !errors.Is(err, context.Canceled) || in.n > 4<<20 {
		t.Errorf("%v after %d octets", err, in.n)
	}
}

// TestProgress: who waits for a large zone is told how far it got.
func TestProgress(t *testing.T) {
	out := logtest.Capture(t)
	ctx, cancel := context.WithCancel(t.Context())
	l := loader{ctx: ctx, origin: NewZone("example.org", "").name, file: "db", serial: -1, progress: time.Millisecond}
	if _, err := l.load(&endless{stop: cancel}, nil); err == nil || !strings.Contains(out.String(), `Reading zone "example.org." from "db": 16384 records so far`) {
		t.Errorf("%v, logged %q", err, out)
	}
}
