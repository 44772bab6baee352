package dynupdate

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// TestReadersSeeWholeVersions: an update changes two names at once, and no query sees one of them without the other; nor
// does a later query see less than an earlier one.
func TestReadersSeeWholeVersions(t *testing.T) {
	b := newBed(t, t.TempDir(), "log off")
	const updates = 400
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			var last uint32
			for {
				select {
				case <-stop:
					return
				default:
				}
				v := b.d.store.served.Current()
				if v.Serial() < last {
					t.Errorf("serial %d after %d", v.Serial(), last)
					return
				}
				last = v.Serial()
				names := [2]string{}
				for i, name := range []string{"left.example.org.", "a.b.right.example.org."} {
					owner, _ := wire.LowerName(name)
					if n, ok := v.Lookup(owner, wire.Hash(owner)); ok {
						for r := range v.RecordsOf(owner, n.Set(dns.TypeTXT)) {
							names[i] = string(r.RData)
						}
					}
				}
				if names[0] != names[1] {
					t.Errorf("serial %d: %q beside %q", last, names[0], names[1])
					return
				}
				var q wire.Query
				var w wire.Reply
				p, _ := new(dns.Msg).SetQuestion("left.example.org.", dns.TypeTXT).Pack()
				q.Parse(p)
				w.Reset(make([]byte, 0, 1024))
				if b.d.ServeWire(context.Background(), &w, &q) != wire.Done {
					t.Error("a query is not done")
					return
				}
			}
		})
	}
	for i := range updates {
		lines := []string{"up ANY left.example.org. 0 ANY", "up ANY a.b.right.example.org. 0 ANY"}
		if i%3 > 0 {
			lines = append(lines, fmt.Sprintf("up IN left.example.org. 60 TXT n%d", i), fmt.Sprintf("up IN a.b.right.example.org. 60 TXT n%d", i))
		}
		if reply := b.send(newUpdate(t, lines...)); reply.Rcode != 0 {
			t.Fatal(reply)
		}
	}
	close(stop)
	readers.Wait()
}

// FuzzUpdate: whatever a message says, it is answered, and changes all or nothing: the serial tells.
func FuzzUpdate(f *testing.F) {
	for _, m := range []*dns.Msg{newUpdate(f, "pre ANY www.example.org. 0 ANY", "up IN a.example.org. 60 A 192.0.2.9"), newUpdate(f, "up ANY example.org. 0 ANY", "up NONE www.example.org. 0 A 192.0.2.1")} {
		p, err := m.Pack()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(p)
	}
	b := newBed(f, f.TempDir(), "log off\nmax_records 100")
	f.Fuzz(func(t *testing.T, p []byte) {
		m := new(dns.Msg)
		if m.Unpack(p) != nil || len(m.Question) != 1 {
			return
		}
		m.Opcode, m.Response = dns.OpcodeUpdate, false
		m.Extra = nil
		if packed, err := m.Pack(); err != nil || new(dns.Msg).Unpack(packed) != nil {
			return
		}
		b.t = t
		before, serial := b.text(), b.d.store.served.Current().Serial()
		reply := b.send(m)
		now := b.d.store.served.Current()
		changed := zoneText(t, now) != before
		if changed && reply.Rcode != 0 || changed != (now.Serial() != serial) {
			t.Errorf("%v: changed %v, serial %d after %d", reply, changed, now.Serial(), serial)
		}
		if now.Records() > 100 || now.Apex().Set(dns.TypeSOA) == nil || now.Apex().Set(dns.TypeNS) == nil {
			t.Errorf("%d records; is there no SOA record, or no NS record?", now.Records())
		}
	})
}
