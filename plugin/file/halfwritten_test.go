package file

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/stamp"
)

// TestHalfWritten: a file that was read while somebody wrote it is read again when the rest has come, though the serial is the
// same. What is only added to a file that was whole is another matter: it wants another serial.
func TestHalfWritten(t *testing.T) {
	whole := fmt.Sprintf(exampleOrg, 2) + "more A 192.0.2.1\nmore A 192.0.2.20\nlast A 192.0.2.3\n"
	to := func(end string) string { return whole[:strings.LastIndex(whole, end)+len(end)] }
	for name, tc := range map[string]struct {
		texts   []string
		records int
	}{
		"within a line":       {[]string{to("192.0.2.2"), whole}, 9},
		"several times":       {[]string{to("192.0.2.2"), to("192.0.2.20"), to("last A 192.0.2.3"), whole}, 9},
		"an error between":    {[]string{to("192.0.2.2"), to("las"), whole}, 9},
		"with a line's end":   {[]string{to("192.0.2.20\n"), whole}, 8},
		"other, same serial":  {[]string{to("192.0.2.2"), strings.ReplaceAll(whole, "more", "else")}, 8},
		"no end, then longer": {[]string{whole + "end A 192.0.2.9", whole + "end A 192.0.2.9\nadded A 192.0.2.10\n"}, 11},
	} {
		t.Run(name, func(t *testing.T) {
			out := logtest.Capture(t)
			z, path := loaded(t, fmt.Sprintf(exampleOrg, 1))
			for _, text := range tc.texts {
				write(t, path, text)
				z.Refresh(t.Context())
			}
			if v := z.Current(); v.Records() != tc.records || v.Serial() != 2 {
				t.Errorf("serial %d, %d records; logged %s", v.Serial(), v.Records(), out)
			}
		})
	}
}

// TestHalfWrittenAtStart: the same for the file that the server began with.
func TestHalfWrittenAtStart(t *testing.T) {
	out := logtest.Capture(t)
	text := fmt.Sprintf(exampleOrg, 1)
	z, path := loaded(t, text+"more A 192.0.2.1")
	write(t, path, text+"more A 192.0.2.100\n")
	if !z.Refresh(t.Context()) || !strings.Contains(out.String(), "more has come of the file with 1 SOA serial; secondaries may have less") {
		t.Errorf("not read again; logged %q", out)
	}
}

// TestSettles: a file that is looked at again and again is not read while it may still be written.
func TestSettles(t *testing.T) {
	logtest.Capture(t)
	z, path := loaded(t, fmt.Sprintf(exampleOrg, 1))
	write(t, path, fmt.Sprintf(exampleOrg, 2))
	if wait := z.RefreshSettled(t.Context(), time.Hour); wait <= 0 || wait > stamp.Quiet || z.Current().Serial() != 1 {
		t.Errorf("read just after the change, again in %v", wait)
	}
	settle(t, path, fmt.Sprintf(exampleOrg, 2))
	if wait := z.RefreshSettled(t.Context(), time.Hour); wait != 0 || z.Current().Serial() != 2 {
		t.Errorf("not read an hour after the change, again in %v", wait)
	}
}

// TestPlan: where a file is always fresh, looks come not more than twice as often.
func TestPlan(t *testing.T) {
	r, now := round{every: time.Minute}, time.Now()
	var got []time.Duration
	for _, again := range []time.Duration{0, time.Second, time.Second, time.Second, 0} {
		r.plan(now, again)
		got = append(got, r.next.Sub(now))
	}
	if want := []time.Duration{time.Minute, time.Second, time.Minute, time.Second, time.Minute}; !slices.Equal(got, want) {
		t.Errorf("looks after %v, want %v", got, want)
	}
}

// TestChangedWhileRead: whatever was written meanwhile is looked at again.
func TestChangedWhileRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	for text, grown := range map[string]bool{"one\ntwo\n": true, "two\n": true, "tw\n": true, "one\n": false} {
		write(t, path, "one\n")
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		var r reading
		in := r.add(path, f)
		if _, err := in.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		g, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(g, text)
		g.Close()
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		in.Close()
		if r.end(); r.grown(path) != grown {
			t.Errorf("%q: grown %v", text, !grown)
		}
	}
}

// TestReadFails: a file that could not be read to its end is read again, though nobody has changed it since.
func TestReadFails(t *testing.T) {
	z, path := loaded(t, fmt.Sprintf(exampleOrg, 1))
	if same, _, err := z.seen.unchanged(path); !same || err != nil {
		t.Fatalf("unchanged: %v, %v", same, err)
	}
	_, seen, err := z.read(t.Context(), -1, func(path string) (*os.File, error) { return os.OpenFile(path, os.O_WRONLY, 0) })
	if err == nil || !strings.Contains(err.Error(), "read "+path) {
		t.Fatalf("reading what can only be written: %v", err)
	}
	if same, _, err := seen.unchanged(path); same || err != nil {
		t.Errorf("unchanged after an error: %v, %v", same, err)
	}
}
