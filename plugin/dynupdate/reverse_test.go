package dynupdate

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/dynupdate/database"
	"github.com/coredns/coredns/plugin/pkg/eventually"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

const (
	reverse4 = "2.0.192.in-addr.arpa."
	reverse6 = "8.b.d.0.1.0.0.2.ip6.arpa."

	reverseSeed = `$TTL 300
@ SOA ns1.example.org. hostmaster.example.org. 7 7200 3600 1209600 60
@ NS ns1.example.org.
1 PTR www.example.org.
1 PTR other.example.net.
9 PTR gone.Example.ORG.
20 PTR guest.example.net.
30 CNAME 30.lower.example.net.
`
	// reverseRecords is what the seeds of both zones make.
	reverseRecords = `1 PTR other.example.net.
1 PTR www.example.org.
2 PTR www.example.org.
20 PTR guest.example.net.
30 CNAME 30.lower.example.net.
53 PTR ns1.example.org.
54 PTR ns2.example.org.
55 PTR ns.sub.example.org.`
)

// newReverse is a zone with the PTR records for the addresses of others.
func newReverse(t testing.TB, dir, zone, text, options string, follows ...*bed) *bed {
	t.Helper()
	for _, f := range follows {
		options += "\nreverse_of " + f.d.Zone
	}
	b, err := tryZone(t, dir, zone, text, options, follows...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// pointers is the PTR and CNAME records that are served, without the zone's name.
func (b *bed) pointers() string {
	var lines []string
	for l := range strings.SplitSeq(b.text(), "\n") {
		f := strings.Fields(l)
		if f[3] == "PTR" || f[3] == "CNAME" {
			lines = append(lines, strings.TrimSuffix(f[0], "."+b.d.Zone)+" "+f[3]+" "+f[4])
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// forReverse makes an UPDATE one for a zone of reverse names.
func forReverse(zone string, m *dns.Msg) *dns.Msg {
	m.Question[0].Name = zone
	return m
}

func (b *bed) serial() uint32 { return b.d.store.served.Current().Serial() }

// TestReverse: what updates of addresses do to PTR records.
func TestReverse(t *testing.T) {
	for _, kept := range []bool{false, true} {
		t.Run(fmt.Sprintf("database %v", kept), func(t *testing.T) { testReverse(t, kept) })
	}
}

func testReverse(t *testing.T, kept bool) {
	option := func(dir string) string {
		if !kept {
			return ""
		}
		return "database " + filepath.Join(dir, "zone.db")
	}
	dirs := [...]string{t.TempDir(), t.TempDir(), t.TempDir()}
	fwd := newBed(t, dirs[0], option(dirs[0]))
	v4 := newReverse(t, dirs[1], reverse4, reverseSeed, option(dirs[1])+"\nttl 30 600", fwd)
	v6 := newReverse(t, dirs[2], reverse6, "@ 60 SOA ns1.example.org. x. 1 2 3 4 5\n@ 60 NS ns1.example.org.\n", option(dirs[2]), fwd)
	if got := v4.pointers(); got != reverseRecords {
		t.Fatalf("at the start there are\n%s\nwant\n%s", got, reverseRecords)
	}
	const host6 = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0"
	for i, step := range []struct {
		lines  []string
		v4, v6 []string // what comes and goes
		rcode  int
	}{
		{lines: []string{"up IN a.example.org. 60 A 192.0.2.10", "up IN a.example.org. 5 AAAA 2001:db8::1"},
			v4: []string{"+10." + reverse4 + " 60 IN PTR a.example.org."}, v6: []string{"+" + host6 + "." + reverse6 + " 5 IN PTR a.example.org."}},
		{lines: []string{"up IN a.example.org. 5 A 192.0.2.10"}, // another TTL, within the bounds of both
			v4: []string{"+10." + reverse4 + " 30 IN PTR a.example.org.", "-10." + reverse4 + " 60 IN PTR a.example.org."}},
		{lines: []string{"up IN B.example.org. 60 A 192.0.2.10"}, // all of the name have one TTL
			v4: []string{"+10." + reverse4 + " 60 IN PTR a.example.org.", "+10." + reverse4 + " 60 IN PTR b.example.org.", "-10." + reverse4 + " 30 IN PTR a.example.org."}},
		{lines: []string{"up ANY a.example.org. 0 A"}, v4: []string{"-10." + reverse4 + " 60 IN PTR a.example.org."}},
		{lines: []string{"up ANY b.example.org. 0 ANY"}, v4: []string{"-10." + reverse4 + " 60 IN PTR b.example.org."}},
		{lines: []string{"up NONE a.example.org. 0 AAAA 2001:db8::1"}, v6: []string{"-" + host6 + "." + reverse6 + " 5 IN PTR a.example.org."}},
		{lines: []string{"up IN a.example.org. 60 A 198.51.100.1", "up IN a.example.org. 60 AAAA 2001:db9::1", "up IN a.example.org. 60 TXT x"}},
		{lines: []string{"up IN a.example.org. 60 AAAA ::ffff:192.0.2.11"}}, // an IPv6 address
		{lines: []string{"up IN *.dyn.example.org. 60 A 192.0.2.12"}},
		{lines: []string{"up IN a.example.org. 60 A 192.0.2.30"}}, // beside a CNAME record
		{lines: []string{"up IN c.example.org. 60 A 192.0.2.40", "pre NONE www.example.org. 0 ANY"}, rcode: dns.RcodeYXDomain},
		{lines: []string{"up IN c.example.org. 60 A 192.0.2.40", "up NONE c.example.org. 0 A 192.0.2.40"}},
		{lines: []string{"up NONE www.example.org. 0 A 192.0.2.1", "up IN www2.example.org. 300 A 192.0.2.1"},
			v4: []string{"+1." + reverse4 + " 300 IN PTR www2.example.org.", "-1." + reverse4 + " 300 IN PTR www.example.org."}},
	} {
		before4, before6, serial4, serial6 := v4.text(), v6.text(), v4.serial(), v6.serial()
		if reply := fwd.send(newUpdate(t, step.lines...)); reply.Rcode != step.rcode {
			t.Fatalf("%d: %v", i, reply)
		}
		for _, z := range []struct {
			b      *bed
			before string
			serial uint32
			want   []string
		}{{v4, before4, serial4, step.v4}, {v6, before6, serial6, step.v6}} {
			slices.Sort(z.want)
			if got := difference(z.before, z.b.text()); !slices.Equal(got, z.want) {
				t.Errorf("%d, %s: %q, want %q", i, z.b.d.Zone, got, z.want)
			}
			if raised := z.b.serial() - z.serial; raised != uint32(min(len(z.want), 1)) {
				t.Errorf("%d, %s: the serial is raised by %d", i, z.b.d.Zone, raised)
			}
		}
	}
	// It is as the zones on disk have it.
	after := v4.text()
	v4.stop()
	fwd.stop()
	if kept {
		if text, _, err := reopenZone(filepath.Join(dirs[1], "zone.db"), reverse4); err != nil || sorted(text) != after {
			t.Errorf("%v: %v", err, difference(after, text))
		}
	}
}

// TestReverseIsKept: clients cannot change what addresses make, and everything else.
func TestReverseIsKept(t *testing.T) {
	fwd := newBed(t, t.TempDir(), "")
	rev := newReverse(t, t.TempDir(), reverse4, reverseSeed, "", fwd)
	for i, step := range []struct {
		lines []string
		want  []string
	}{
		{lines: []string{"up IN 1.2.0.192.in-addr.arpa. 300 PTR www.example.org."}},
		{lines: []string{"up IN 1.2.0.192.in-addr.arpa. 300 PTR nobody.example.org."}},
		{lines: []string{"up NONE 1.2.0.192.in-addr.arpa. 0 PTR WWW.example.org."}},
		{lines: []string{"up ANY 2.2.0.192.in-addr.arpa. 0 PTR"}},
		{lines: []string{"up ANY 1.2.0.192.in-addr.arpa. 0 ANY"}, want: []string{"-1." + reverse4 + " 300 IN PTR other.example.net."}},
		{lines: []string{"up IN 1.2.0.192.in-addr.arpa. 300 PTR new.example.net.", "up IN 1.2.0.192.in-addr.arpa. 300 TXT x"},
			want: []string{"+1." + reverse4 + " 300 IN PTR new.example.net.", "+1." + reverse4 + ` 300 IN TXT "x"`}},
		{lines: []string{"up ANY 1.2.0.192.in-addr.arpa. 0 PTR", "up IN 1.2.0.192.in-addr.arpa. 300 PTR www.example.org."}, // as DHCP servers do
			want: []string{"-1." + reverse4 + " 300 IN PTR new.example.net."}},
	} {
		before := rev.text()
		if reply := rev.send(forReverse(reverse4, newUpdate(t, step.lines...))); reply.Rcode != 0 {
			t.Fatalf("%d: %v", i, reply)
		}
		if got := difference(before, rev.text()); !slices.Equal(got, step.want) {
			t.Errorf("%d: %q, want %q", i, got, step.want)
		}
	}
}

// TestReverseOfSeveral: of nested zones the one with the longest name tells of an address.
func TestReverseOfSeveral(t *testing.T) {
	fwd := newBed(t, t.TempDir(), "")
	sub, err := tryZone(t, t.TempDir(), "sub.example.org", "@ 60 SOA a. b. 1 2 3 4 5\n@ 60 NS a.\nhost 60 A 192.0.2.77\n", "")
	if err != nil {
		t.Fatal(err)
	}
	rev := newReverse(t, t.TempDir(), reverse4, reverseSeed, "", fwd, sub)
	want := strings.Replace(reverseRecords, "55 PTR ns.sub.example.org.", "77 PTR host.sub.example.org.", 1)
	if got := rev.pointers(); got != want {
		t.Errorf("there are\n%s\nwant\n%s", got, want)
	}
	fwd.send(newUpdate(t, "up IN host.sub.example.org. 60 A 192.0.2.77")) // glue
	fwd.send(newUpdate(t, "up ANY host.sub.example.org. 0 ANY"))
	if got := rev.pointers(); got != want {
		t.Errorf("after glue came and went there are\n%s\nwant\n%s", got, want)
	}
}

// TestReverseAtHandOver: that another process has one database as yet keeps the addresses of no other zone away.
func TestReverseAtHandOver(t *testing.T) {
	fwd := newBed(t, t.TempDir(), "")
	sub, err := tryZone(t, t.TempDir(), "sub.example.org", "@ 60 SOA a. b. 1 2 3 4 5\n@ 60 NS a.\nhost 60 A 192.0.2.77\n", "")
	if err != nil {
		t.Fatal(err)
	}
	fwd.d.store.handing = &group{done: make(chan struct{})}
	rev := newReverse(t, t.TempDir(), reverse4, reverseSeed, "", fwd, sub)
	if got := rev.pointers(); !strings.Contains(got, "77 PTR host.sub.example.org.") || strings.Contains(got, "ns1.example.org.") {
		t.Errorf("before the end there are\n%s", got)
	}
	fwd.d.store.mu.Lock()
	close(fwd.d.store.handing.done)
	fwd.d.store.handing = nil
	fwd.d.store.agreeLater()
	fwd.d.store.mu.Unlock()
	want := strings.Replace(reverseRecords, "55 PTR ns.sub.example.org.", "77 PTR host.sub.example.org.", 1)
	eventually.Holds(t, "all are made afterwards", func() bool { return rev.pointers() == want })
}

// TestReverseRefused: an address that the other zone cannot have a PTR record for does not come.
func TestReverseRefused(t *testing.T) {
	fwd := newBed(t, t.TempDir(), "")
	rev := newReverse(t, t.TempDir(), reverse4, reverseSeed, "max_records 12", fwd)
	add := newUpdate(t, "up IN a.example.org. 60 A 192.0.2.10", "up IN b.example.org. 60 A 192.0.2.11", "up IN c.example.org. 60 A 192.0.2.12")
	add.SetEdns0(1232, false)
	before, pointers := fwd.text(), rev.text()
	none := func(what string, reply *dns.Msg) {
		t.Helper()
		if reply.Rcode != dns.RcodeRefused || fwd.text() != before || rev.text() != pointers {
			t.Fatalf("%s: %v\n%v\n%v", what, reply, difference(before, fwd.text()), difference(pointers, rev.text()))
		}
		ede, ok := reply.IsEdns0().Option[0].(*dns.EDNS0_EDE)
		if !ok || !strings.Contains(ede.ExtraText, reverse4) {
			t.Errorf("%s: %v", what, reply.IsEdns0())
		}
	}
	none("no room", fwd.send(add))
	less := newUpdate(t, "up IN a.example.org. 60 A 192.0.2.10")
	less.SetEdns0(1232, false)
	rev.d.Freeze(true)
	none("frozen", fwd.send(less))
	if reply := fwd.send(newUpdate(t, "up IN elsewhere.example.org. 60 A 198.51.100.1")); reply.Rcode != 0 {
		t.Errorf("elsewhere: %v", reply)
	}
	rev.d.Freeze(false)
	if reply := fwd.send(less); reply.Rcode != 0 || !strings.Contains(rev.text(), "PTR a.example.org.") { // the same request again
		t.Errorf("thawed: %v, %s", reply, rev.text())
	}
}

// TestReverseAfterAlias: addresses have the PTR records that a CNAME record kept away as soon as it is gone.
func TestReverseAfterAlias(t *testing.T) {
	for _, gone := range []string{"up ANY 30." + reverse4 + " 0 CNAME", "up ANY 30." + reverse4 + " 0 ANY", "up NONE 30." + reverse4 + " 0 CNAME 30.lower.example.net."} {
		fwd := newBed(t, t.TempDir(), "")
		rev := newReverse(t, t.TempDir(), reverse4, reverseSeed, "", fwd)
		if reply := fwd.send(newUpdate(t, "up IN a.example.org. 60 A 192.0.2.30")); reply.Rcode != 0 || rev.pointers() != reverseRecords {
			t.Fatalf("%v\n%s", reply, rev.pointers())
		}
		if reply := rev.send(forReverse(reverse4, newUpdate(t, gone))); reply.Rcode != 0 {
			t.Fatalf("%s: %v", gone, reply)
		}
		if want := strings.Replace(reverseRecords, "CNAME 30.lower.example.net.", "PTR a.example.org.", 1); rev.pointers() != want {
			t.Errorf("%s: there are\n%s\nwant\n%s", gone, rev.pointers(), want)
		}
	}
}

// TestReverseFailing: what one of two databases does not take has not happened in either.
func TestReverseFailing(t *testing.T) {
	var bad [2]atomic.Bool
	var never atomic.Bool
	open, every := database.TheDisk.Open, retryEvery
	defer func() { database.TheDisk.Open, retryEvery = open, every }()
	retryEvery = 20 * time.Millisecond
	dirs := [...]string{t.TempDir(), t.TempDir()}
	database.TheDisk.Open = func(path string, create bool) (database.Medium, error) {
		f, err := open(path, create)
		for i, dir := range dirs {
			if strings.HasPrefix(path, dir) {
				f = badMedium{f, &bad[i], &never, &never}
			}
		}
		return f, err
	}
	fwd := newBed(t, dirs[0], "database "+filepath.Join(dirs[0], "zone.db"))
	rev := newReverse(t, dirs[1], reverse4, reverseSeed, "database "+filepath.Join(dirs[1], "zone.db"), fwd)
	for i := range bad {
		before, pointers := fwd.text(), rev.text()
		bad[i].Store(true)
		add := newUpdate(t, fmt.Sprintf("up IN h%d.example.org. 60 A 192.0.2.1%d", i, i))
		if reply := fwd.send(add); reply.Rcode != dns.RcodeServerFailure || fwd.text() != before {
			t.Fatalf("%d: %v, %v", i, reply, difference(before, fwd.text()))
		}
		eventually.Holds(t, "what did not happen leaves the other zone", func() bool { return len(difference(pointers, rev.text())) == 0 })
		if i == 1 && !fwd.d.Ready() {
			t.Errorf("the zone with the addresses takes no updates, as the other one does not")
		}
		if reply := fwd.send(newUpdate(t, fmt.Sprintf("up IN e%d.example.org. 60 A 198.51.100.1", i))); (reply.Rcode == 0) != (i == 1) {
			t.Errorf("%d: an address elsewhere: %v", i, reply)
		}
		bad[i].Store(false)
		eventually.Holds(t, "it recovers", func() bool { return fwd.d.Ready() && rev.d.Ready() })
		if reply := fwd.send(add); reply.Rcode != 0 { // the same request again
			t.Fatalf("%d: %v", i, reply)
		}
		if got := difference(pointers, rev.text()); len(got) != 1 {
			t.Errorf("%d: %q", i, got)
		}
	}
}

// TestReverseAfterCrash: a crash between the two syncs leaves PTR records that the next start takes away, and makes those
// that are missing.
func TestReverseAfterCrash(t *testing.T) {
	dirs := [...]string{t.TempDir(), t.TempDir()}
	database := func(i int) string { return "database " + filepath.Join(dirs[i], "zone.db") }
	fwd := newBed(t, dirs[0], database(0))
	rev := newReverse(t, dirs[1], reverse4, reverseSeed, database(1), fwd)
	rev.stop()
	fwd.send(newUpdate(t, "up IN a.example.org. 60 A 192.0.2.10", "up ANY www.example.org. 0 A")) // nobody follows
	want := strings.ReplaceAll(strings.ReplaceAll(reverseRecords, "1 PTR www.example.org.\n", ""), "2 PTR www.example.org.\n", "10 PTR a.example.org.\n")
	rev = newReverse(t, dirs[1], reverse4, reverseSeed, database(1), fwd)
	lines := strings.Split(want, "\n")
	slices.Sort(lines)
	if got := rev.pointers(); got != strings.Join(lines, "\n") {
		t.Errorf("there are\n%s\nwant\n%s", got, want)
	}
	serial := rev.serial()
	rev.stop()
	if rev = newReverse(t, dirs[1], reverse4, reverseSeed, database(1), fwd); rev.serial() != serial {
		t.Errorf("a start without a difference raises the serial")
	}
}

// TestReverseAfterReload: a configuration that comes later decides, once the one before has left.
func TestReverseAfterReload(t *testing.T) {
	dirs := [...]string{t.TempDir(), t.TempDir()}
	database := func(i int) string { return "database " + filepath.Join(dirs[i], "zone.db") }
	fwd := newBed(t, dirs[0], database(0))
	before, err := tryZone(t, dirs[1], reverse4, reverseSeed, database(1))
	if err != nil {
		t.Fatal(err)
	}
	seed := before.pointers()
	failed := newReverse(t, dirs[1], reverse4, reverseSeed, database(1), fwd)
	if got := before.pointers(); got != seed {
		t.Errorf("a configuration that may yet fail made\n%s", got)
	}
	failed.stop()
	after := newReverse(t, dirs[1], reverse4, reverseSeed, database(1), fwd)
	before.stop()
	eventually.Holds(t, "the PTR records", func() bool { return after.pointers() == reverseRecords })
	fwd.send(newUpdate(t, "up IN a.example.org. 60 A 192.0.2.10"))
	if !strings.Contains(after.pointers(), "10 PTR a.example.org.") {
		t.Errorf("an address that came has none: %s", after.pointers())
	}
	without, err := tryZone(t, dirs[1], reverse4, reverseSeed, database(1))
	if err != nil {
		t.Fatal(err)
	}
	after.stop()
	fwd.send(newUpdate(t, "up IN b.example.org. 60 A 192.0.2.11"))
	if strings.Contains(without.pointers(), " b.example.org.") {
		t.Errorf("without reverse_of there is one for a new address")
	}
}

// TestReverseLeaves: a zone that leaves has no update of those that it followed fail.
func TestReverseLeaves(t *testing.T) {
	fwd := newBed(t, t.TempDir(), "")
	rev := newReverse(t, t.TempDir(), reverse4, reverseSeed, "", fwd)
	to, from := fwd.d.store, rev.d.store
	to.mu.Lock() // an update is being made
	left := make(chan struct{})
	go func() { rev.stop(); close(left) }()
	eventually.Holds(t, "it leaves", func() bool {
		from.mu.Lock()
		defer from.mu.Unlock()
		return len(from.users) == 0
	})
	if followed := len(to.followers) > 0; followed && from.closing() {
		t.Errorf("it is closed, but follows as yet")
	}
	to.mu.Unlock()
	<-left
	if reply := fwd.send(newUpdate(t, "up IN a.example.org. 60 A 192.0.2.10")); reply.Rcode != 0 || !from.closing() {
		t.Errorf("afterwards: %v", reply)
	}
}

// TestReverseConcurrently: whatever comes at one time, the zones agree at the end, and the one that is signed is signed as it should be.
func TestReverseConcurrently(t *testing.T) {
	dirs := [...]string{t.TempDir(), t.TempDir()}
	fwd := newBed(t, dirs[0], "database "+filepath.Join(dirs[0], "zone.db"))
	key := newKeyOf(t, dirs[1], reverse4, dns.ECDSAP256SHA256)
	rev := newReverse(t, dirs[1], reverse4, reverseSeed, "sign key file "+key+"\ndatabase "+filepath.Join(dirs[1], "zone.db"), fwd)
	checkSigned(t, rev.d.store.served.Current(), 1, time.Now())
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(w), 7))
			for range 60 {
				host, addr := r.IntN(12), 100+r.IntN(12)
				lines := []string{fmt.Sprintf("up IN h%d.example.org. %d A 192.0.2.%d", host, 60+r.IntN(3), addr)}
				switch r.IntN(4) {
				case 0:
					lines = []string{fmt.Sprintf("up ANY h%d.example.org. 0 A", host)}
				case 1:
					lines = append(lines, fmt.Sprintf("up NONE h%d.example.org. 0 A 192.0.2.%d", r.IntN(12), addr))
				case 2:
					rev.send(forReverse(reverse4, newUpdate(t, fmt.Sprintf("up ANY %d.%s 0 ANY", addr, reverse4), fmt.Sprintf("up IN %d.%s 60 PTR x%d.example.net.", addr, reverse4, host))))
				}
				if reply := fwd.send(newUpdate(t, lines...)); reply.Rcode != 0 {
					t.Errorf("%v", reply)
				}
			}
		})
	}
	wg.Wait()
	s := rev.d.store
	s.mu.Lock()
	f := follower{s, &rev.d.settings}
	left := f.differences(fwd.d.store.served.Current())
	s.mu.Unlock()
	checkSigned(t, rev.d.store.served.Current(), 1, time.Now())
	if len(left) > 0 {
		t.Errorf("%d PTR records are not as the addresses make them", len(left))
	}
	if n := strings.Count(rev.pointers(), ".example.org."); n < 10 {
		t.Errorf("there are %d PTR records only", n)
	}
}

// TestReverseFound: which zones reverse_of may name.
func TestReverseFound(t *testing.T) {
	kept := t.TempDir()
	plain := newBed(t, t.TempDir(), "")
	other := newBed(t, t.TempDir(), "")
	for name, tc := range map[string]struct {
		options string
		follows []*bed
		want    string
	}{
		"none":        {"reverse_of example.org", nil, `reverse_of: there is no dynupdate for zone "example.org."`},
		"two":         {"reverse_of example.org", []*bed{plain, other}, `reverse_of: zone "example.org." is there several times`},
		"no database": {"reverse_of example.org\ndatabase " + filepath.Join(kept, "zone.db"), []*bed{plain}, `reverse_of: zone "example.org." has no database, but "2.0.192.in-addr.arpa." has one`},
	} {
		if _, err := tryZone(t, kept, reverse4, reverseSeed, tc.options, tc.follows...); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	// Without a rule nobody but the other zone changes it.
	c := caddy.NewTestController("dns", "dynupdate {\nfile "+filepath.Join(kept, "db")+"\nreverse_of example.org\n}")
	c.ServerBlockKeys = []string{reverse4}
	if err := setup(c); err != nil {
		t.Error(err)
	}
}

// TestFollowersInOrder: whoever locks followers does so in one order, also of two zones of one name.
func TestFollowersInOrder(t *testing.T) {
	fwd, other := newBed(t, t.TempDir(), ""), newBed(t, t.TempDir(), "")
	a := newReverse(t, t.TempDir(), reverse4, reverseSeed, "", fwd).d
	b := newReverse(t, t.TempDir(), reverse4, reverseSeed, "", fwd).d
	other.d.store.setFollower(b.store, &b.settings)
	other.d.store.setFollower(a.store, &a.settings)
	for i, f := range fwd.d.store.followers {
		if g := other.d.store.followers[i]; g.store != f.store {
			t.Fatalf("follower %d is another one", i)
		}
	}
	if n := len(fwd.d.store.followers); n != 2 {
		t.Errorf("%d followers", n)
	}
}
