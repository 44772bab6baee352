package transfer

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// moving is a Transferer whose zone changes by itself.
type moving struct{ serial atomic.Uint32 }

func (m *moving) Transfer(zone string, serial uint32) (<-chan []dns.RR, error) {
	now := m.serial.Load()
	if zone != "example.org." || now == 0 {
		return nil, ErrNotAuthoritative
	}
	ch := make(chan []dns.RR, 1)
	ch <- []dns.RR{&dns.SOA{Hdr: dns.RR_Header{Name: zone, Rrtype: dns.TypeSOA, Class: dns.ClassINET}, Ns: "a.", Mbox: "b.", Serial: now}}
	if serial != now {
		ch <- nil // which would never be taken: the whole zone is not asked for
	}
	close(ch)
	return ch, nil
}

func (m *moving) TransferSerials() map[string]uint32 {
	if n := m.serial.Load(); n > 0 {
		return map[string]uint32{"example.org.": n}
	}
	return nil
}

// What tells of a zone whose serials are looked at has the SOA record, too, if it is known.
func TestNotificationOfChanging(t *testing.T) {
	m := new(moving)
	x := &Transfer{Transferers: []Transferer{m}}
	if n := x.notification("example.org."); len(n.Answer) != 0 {
		t.Error(n)
	}
	m.serial.Store(7)
	if n := x.notification("example.org."); len(n.Answer) != 1 || n.Answer[0].(*dns.SOA).Serial != 7 {
		t.Error(n)
	}
	if n := x.notification("example.net."); len(n.Answer) != 0 {
		t.Error(n)
	}
}

// Over UDP such a zone is not read to tell its SOA record.
func TestUDPOfChanging(t *testing.T) {
	m := new(moving)
	m.serial.Store(7)
	x := setupOf(t, "transfer {\nto *\n}")
	x.Transferers = []Transferer{m}
	for _, serial := range []uint32{5, 7, 8} {
		if got := transferOf(t, x, &client{}, ixfr(serial)); got != "SOA7" {
			t.Errorf("from %d: got %s", serial, got)
		}
	}
}

func TestWatch(t *testing.T) {
	m := new(moving)
	told := make(chan string, 10)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		(&Transfer{Transferers: []Transferer{m}}).watch(ctx, time.Millisecond, func(zone string) { told <- zone })
		close(ended)
	}()
	for serial := range uint32(3) {
		m.serial.Store(serial + 1)
		select {
		case zone := <-told:
			if zone != "example.org." {
				t.Error(zone)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("serial %d was not told", serial+1)
		}
	}
	time.Sleep(20 * time.Millisecond)
	if len(told) > 0 {
		t.Error("told, though nothing has changed")
	}
	cancel()
	<-ended
}
