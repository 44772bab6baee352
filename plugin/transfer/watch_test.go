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

func (m *moving) Transfer(string, uint32) (<-chan []dns.RR, error) { return nil, ErrNotAuthoritative }
func (m *moving) TransferSerials() map[string]uint32 {
	if n := m.serial.Load(); n > 0 {
		return map[string]uint32{"example.org.": n}
	}
	return nil
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
