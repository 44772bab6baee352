//go:build linux

package dynupdate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestFullDisk: on a disk that is full updates fail, the zone is served as it was, and it goes on when there is room;
// what was acknowledged is there.
func TestFullDisk(t *testing.T) {
	every := retryEvery
	defer func() { retryEvery = every }()
	retryEvery = 20 * time.Millisecond
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("no disk to fill: %v: run as root", err)
	}
	t.Cleanup(func() { syscall.Unmount(disk, syscall.MNT_DETACH) })
	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, make([]byte, 800<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, path := t.TempDir(), filepath.Join(disk, "zone.db")
	b := newBed(t, dir, "log off\ndatabase "+path)
	text := strings.Repeat("x", 250)
	add := func(i int) *dns.Msg { return newUpdate(t, fmt.Sprintf("up IN h%d.example.org. 60 TXT %s", i, text)) }
	n := 0
	for ; n < 2000; n++ {
		before := b.text()
		reply := b.send(add(n))
		if reply.Rcode == dns.RcodeServerFailure {
			if b.text() != before {
				t.Error("the zone has changed")
			}
			break
		}
		if reply.Rcode != dns.RcodeSuccess {
			t.Fatal(reply)
		}
	}
	if n < 100 || n == 2000 {
		t.Fatalf("the disk was full after %d updates", n)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); !b.d.Ready(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not recover")
		}
	}
	if reply := b.send(add(n)); reply.Rcode != dns.RcodeSuccess {
		t.Fatal(reply)
	}
	after := b.text()
	b.stop()
	if text, _, err := reopen(path); err != nil || sorted(text) != after || strings.Count(after, "xxx") < n+1 {
		t.Errorf("%v: %v", err, difference(after, text))
	}
}
