package secondary

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/zonefile"
)

// TestDamagedStorage: a stored zone of which a part is missing, or an octet is another one, is not served. Its serial would
// tell that nothing is to be fetched.
func TestDamagedStorage(t *testing.T) {
	logtest.Capture(t)
	from := &source{storage: t.TempDir(), primaries: []string{"192.0.2.1:53"}}
	path := filepath.Join(from.storage, "db.example.org")
	first := newReplica("example.org.", from, newRooms())
	first.zone.Replace(build(t, 7))
	first.keep(true)
	stored, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var whole bytes.Buffer
	if err := first.zone.Current().WriteText(&whole); err != nil {
		t.Fatal(err)
	}
	served := func(b []byte) bool {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		r := newReplica("example.org.", from, newRooms())
		r.load()
		return r.zone.Current() != nil
	}
	if !served(stored) {
		t.Error("what is as it was stored is not served")
	}
	if !served(whole.Bytes()) {
		t.Error("what has no sum is not served")
	}
	for i := range stored {
		if served(stored[:i]) {
			t.Fatalf("%d octets of %d are served", i, len(stored))
		}
		damaged := bytes.Clone(stored)
		if damaged[i] ^= 1; served(damaged) {
			t.Fatalf("it is served with another octet %d", i)
		}
	}
}

// TestTextLikeSum: a zone of which an earlier version has stored no sum is served, though its last record looks like one.
func TestTextLikeSum(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	for text, want := range map[string]error{`z.org. 60 IN TXT "a; sum 1234567"` + "\n": nil, "z.org. 60 IN A 192.0.2.1\n; sum 12345678\n": errSum} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkSum(path, false); !errors.Is(err, want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestFilingInTurn: zones of one process that are stored at the same time do not wait for the folder's lock, which is not
// waited for as long as many of them may take.
func TestFilingInTurn(t *testing.T) {
	logtest.Capture(t)
	from := &source{storage: t.TempDir(), primaries: []string{"192.0.2.1:53"}}
	r := newReplica("example.org.", from, newRooms())
	r.zone.Replace(build(t, 7))
	r.folder().filing.Lock()
	done := make(chan struct{})
	go func() { r.keep(true); close(done) }()
	for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		unlock, err := zonefile.LockFolder(from.storage)
		if err != nil {
			t.Error(err)
			break
		}
		unlock()
	}
	r.folder().filing.Unlock()
	if <-done; readHead(r.path()).serial != 7 {
		t.Error("the zone is not stored")
	}
}

// TestSumOfShortFile: what is shorter than a sum has none.
func TestSumOfShortFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "db")
	for _, text := range []string{"", "x", "; the text of another one"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkSum(path, false); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if err := checkSum(path, true); !errors.Is(err, errSum) {
			t.Errorf("%q, which is to have one: %v", text, err)
		}
	}
}
