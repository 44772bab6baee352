package dynupdate

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/zone"

	"github.com/miekg/dns"
)

// kills is how often TestKill kills; DYNUPDATE_KILLS tells another number.
const kills = 15

// TestKill kills a process that makes updates, again and again, at any moment: what was acknowledged is there, nothing
// is there by half, and the serial never goes back.
func TestKill(t *testing.T) {
	if dir := os.Getenv("DYNUPDATE_CHILD"); dir != "" {
		updateUntilKilled(t, dir)
		return
	}
	times := kills
	if n, err := strconv.Atoi(os.Getenv("DYNUPDATE_KILLS")); err == nil {
		times = n
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "zone.db")
	newBed(t, dir, "database "+path).stop()
	acked, serial := map[string]bool{}, uint32(0)
	for round := range times {
		for _, name := range runAndKill(t, dir, round, 50*time.Millisecond+rand.N(150*time.Millisecond)) {
			acked[name] = true
		}
		origin, _ := wire.LowerName("example.org.")
		begun := time.Now()
		d, c, err := openDatabase(path, origin, 10)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("opening took %s", took)
		}
		d.file.Close()
		d.unlock()
		has := func(name string, typ uint16) bool {
			owner, _ := wire.LowerName(name + ".example.org.")
			n, ok := c.version.Lookup(owner, wire.Hash(owner))
			return ok && n.Set(typ) != nil
		}
		for name := range acked {
			if !has("a"+name, dns.TypeA) || !has("b.b"+name, dns.TypeTXT) {
				t.Fatalf("round %d: %s was acknowledged, and is not there", round, name)
			}
		}
		for name := range c.version.Nodes() {
			text := strings.TrimSuffix(wire.Text(name), ".example.org.")
			if n, ok := strings.CutPrefix(text, "a"); ok && strings.Contains(n, "-") && !has("b.b"+n, dns.TypeTXT) {
				t.Fatalf("round %d: half of %s is there", round, n)
			}
		}
		if c.version.Serial() < serial {
			t.Fatalf("round %d: serial %d after %d", round, c.version.Serial(), serial)
		}
		serial = c.version.Serial()
	}
	t.Logf("%d updates were acknowledged over %d kills, serial %d", len(acked), times, serial)
	if len(acked) < times {
		t.Errorf("%d updates only", len(acked))
	}
}

// runAndKill lets a process of this program work for a while, and returns what it acknowledged.
func runAndKill(t *testing.T, dir string, round int, after time.Duration) (acked []string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestKill$")
	cmd.Env = append(os.Environ(), "DYNUPDATE_CHILD="+dir, "DYNUPDATE_ROUND="+strconv.Itoa(round))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var timer *time.Timer
	for lines.Scan() {
		name, ok := strings.CutPrefix(lines.Text(), "acked ")
		if !ok || len(name) == 0 || name[len(name)-1] != '.' {
			continue // the last line may be cut
		}
		if acked = append(acked, name[:len(name)-1]); timer == nil {
			timer = time.AfterFunc(after, func() { cmd.Process.Kill() })
		}
	}
	cmd.Wait()
	if timer == nil {
		t.Fatalf("round %d: nothing was acknowledged", round)
	}
	return acked
}

// updateUntilKilled makes updates by 16 writers, and says which of them are durable.
func updateUntilKilled(t *testing.T, dir string) {
	b := newBed(t, dir, "database "+filepath.Join(dir, "zone.db")+"\nmax_records 1000000\nmax_bytes 1000000000")
	var wg sync.WaitGroup
	for writer := range 16 {
		wg.Go(func() {
			for i := range 1_000_000 {
				name := fmt.Sprintf("%s-%d-%d", os.Getenv("DYNUPDATE_ROUND"), writer, i)
				u := decision{d: b.d, message: &message{}}
				for _, text := range []string{"a" + name + ".example.org. 60 IN A 192.0.2.9", "b.b" + name + ".example.org. 60 IN TXT half"} {
					rr, err := dns.NewRR(text)
					if err != nil {
						panic(err)
					}
					u.updates = append(u.updates, recordOf(withLength(rr)))
				}
				u.by.Key = "key."
				err := b.d.store.update(func(c *zone.Change) bool {
					u.c = c
					r, ok := u.run()
					if !ok {
						panic(fmt.Sprint(r))
					}
					return ok
				}, func(*zone.Zone, *zone.Delta) bool { return true })
				if err != nil {
					panic(err)
				}
				os.Stdout.WriteString("acked " + name + ".\n")
			}
		})
	}
	wg.Wait()
}

// withLength is a record as it comes from the wire, with the length of its data.
func withLength(rr dns.RR) dns.RR {
	rr.Header().Rdlength = uint16(dns.Len(rr) - len(rr.Header().Name) - 11)
	return rr
}
