package dynupdate

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
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

// kills is how often TestKill kills; DYNUPDATE_KILLS tells another number, such as that of make kills.
const kills = 15

// What the process that is killed does: each writer changes its names one after the other, again and again, so that the
// zone stays small however often it is killed.
const (
	killWriters = 16
	killNames   = 50
	killEvery   = 8 * time.Millisecond // 2,000 updates a second in all
)

// TestKill kills a process that makes updates, again and again, at any moment: what was acknowledged is there, nothing
// is there by half, and the serial never goes back.
func TestKill(t *testing.T) {
	if dir := os.Getenv("DYNUPDATE_CHILD"); dir != "" {
		updateUntilKilled(newBed(t, dir, "log off\ndatabase "+filepath.Join(dir, "zone.db")))
		return
	}
	times := kills
	if n, err := strconv.Atoi(os.Getenv("DYNUPDATE_KILLS")); err == nil {
		times = n
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "zone.db")
	newBed(t, dir, "database "+path).stop()
	origin, _ := wire.LowerName("example.org.")
	acked, updates, serial := map[string]uint32{}, 0, uint32(0)
	for round := range times {
		n, last := runAndKill(t, dir, round, 20*time.Millisecond+rand.N(150*time.Millisecond), acked)
		updates += n
		begun := time.Now()
		d, c, err := openDatabase(path, origin, 10)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("opening took %s", took)
		}
		d.Close()
		there := 0
		for writer := range killWriters {
			for name := range killNames {
				label := fmt.Sprintf("%d-%d", writer, name)
				left, right := valueOf(c.Version, "a"+label, dns.TypeA), valueOf(c.Version, "b.b"+label, dns.TypeTXT)
				if left != right {
					t.Fatalf("round %d: half of %s is there: %d, and %d", round, label, left, right)
				}
				if left < acked[label] {
					t.Fatalf("round %d: %s has %d, though %d was acknowledged", round, label, left, acked[label])
				}
				if left > 0 {
					there += 2
				}
			}
		}
		if now := c.Version.Serial(); now < serial || now < last {
			t.Fatalf("round %d: serial %d after %d, of which %d was acknowledged", round, now, serial, last)
		}
		serial = c.Version.Serial()
		if want := there + seedRecords(t); c.Version.Records() != want {
			t.Fatalf("round %d: %d records, want %d", round, c.Version.Records(), want)
		}
	}
	t.Logf("%d updates were acknowledged over %d kills, serial %d", updates, times, serial)
	if updates < times {
		t.Errorf("%d updates only", updates)
	}
}

// seedRecords is how many records a zone begins with.
func seedRecords(t *testing.T) int {
	v, err := parseSeed(strings.NewReader(seedText), "db", "example.org.")
	if err != nil {
		t.Fatal(err)
	}
	return v.Records()
}

// valueOf is the number that a record of a name has, 0 if there is none: as an address, or as text.
func valueOf(v *zone.Zone, name string, typ uint16) uint32 {
	owner, _ := wire.LowerName(name + ".example.org.")
	n, ok := v.Lookup(owner, wire.Hash(owner))
	if !ok || n.Set(typ) == nil {
		return 0
	}
	data := n.Set(typ).Records().Data()
	if typ == dns.TypeA {
		return binary.BigEndian.Uint32(data)
	}
	number, _ := strconv.Atoi(string(data[1:]))
	return uint32(number)
}

// runAndKill lets a process of this program work for a while, and notes what it acknowledged: how many updates, and the
// last serial.
func runAndKill(t *testing.T, dir string, round int, after time.Duration, acked map[string]uint32) (updates int, serial uint32) {
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
		var label, end string
		var number, at uint32
		if n, _ := fmt.Sscanf(lines.Text(), "acked %s %d %d %s", &label, &number, &at, &end); n != 4 || end != "." {
			continue // the last line may be cut
		}
		acked[label], serial = max(acked[label], number), max(serial, at)
		if updates++; timer == nil {
			timer = time.AfterFunc(after, func() { cmd.Process.Kill() })
		}
	}
	cmd.Wait()
	if timer == nil {
		t.Fatalf("round %d: nothing was acknowledged", round)
	}
	return updates, serial
}

// updateUntilKilled makes updates, and says which of them are durable. Each gives two names the next number.
func updateUntilKilled(b *bed) {
	round, _ := strconv.Atoi(os.Getenv("DYNUPDATE_ROUND"))
	var wg sync.WaitGroup
	for writer := range killWriters {
		wg.Go(func() {
			tick := time.NewTicker(killEvery)
			for i := 1; ; i++ {
				number := uint32(round<<16 + i)
				label := fmt.Sprintf("%d-%d", writer, i%killNames)
				b.renumber(label, number)
				<-tick.C
			}
		})
	}
	wg.Wait()
}

// renumber gives two names a number, and says so.
func (b *bed) renumber(label string, number uint32) {
	address := net.IP(binary.BigEndian.AppendUint32(nil, number))
	u := decision{d: b.d, message: &message{}}
	for _, text := range []string{fmt.Sprintf("a%s.example.org. 60 IN A %s", label, address), fmt.Sprintf("b.b%s.example.org. 60 IN TXT %d", label, number)} {
		rr, err := dns.NewRR(text)
		if err != nil {
			panic(err)
		}
		add := recordOf(withLength(rr))
		u.updates = append(u.updates, record{owner: add.owner, typ: add.typ, class: dns.ClassANY}, add)
	}
	u.by.Key = "key."
	var serial uint32
	err := b.d.store.update(func(c *zone.Change) bool {
		u.c = c
		r, ok := u.run()
		if !ok {
			panic(fmt.Sprint(r))
		}
		return ok
	}, func(_ *zone.Zone, d *zone.Delta) bool {
		serial = d.To
		return true
	})
	if err != nil {
		panic(err)
	}
	fmt.Printf("acked %s %d %d .\n", label, number, serial)
}

// withLength is a record as it comes from the wire, with the length of its data.
func withLength(rr dns.RR) dns.RR {
	rr.Header().Rdlength = uint16(dns.Len(rr) - len(rr.Header().Name) - 11)
	return rr
}
