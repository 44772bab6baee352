package proxy

import (
	"net"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
)

// endings are the exchanges that have ended, in order.
type endings struct {
	mu  sync.Mutex
	all []*Exchange
}

func (e *endings) EndExchange(x *Exchange) {
	e.mu.Lock()
	e.all = append(e.all, x)
	e.mu.Unlock()
}

func (e *endings) list() []*Exchange {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]*Exchange(nil), e.all...)
}

// The oldest one gives way, whoever asks it; not those that are too young, do not give way, or have ended.
func TestGiveWay(t *testing.T) {
	silent := func([]byte, *net.UDPAddr, func([]byte)) {}
	two := []*Proxy{proxyTo(t, udpUpstream(t, silent), transport.DNS), proxyTo(t, udpUpstream(t, silent), transport.DNS)}
	var ended endings
	begin := func(p *Proxy, givesWay bool) *Exchange {
		m := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
		b, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		x := &Exchange{Query: b, Owner: &ended, GivesWay: givesWay, Timeout: time.Minute}
		p.Begin(x)
		time.Sleep(2 << tickBits) // the order is that of ticks
		return x
	}
	start := time.Now()
	begin(two[0], false)
	first, second, third := begin(two[1], true), begin(two[0], true), begin(two[1], true)
	now := time.Now()
	young := begin(two[0], true)
	if GiveWay(start) {
		t.Error("one gave way that had not been there")
	}
	for i, want := range []*Exchange{first, second, third} {
		if !GiveWay(now) {
			t.Fatalf("number %d does not give way", i)
		}
		if got := ended.list(); len(got) != i+1 || got[i] != want || want.Err != ErrGaveWay {
			t.Fatalf("%d have ended, want %d; error %v", len(got), i+1, want.Err)
		}
	}
	if GiveWay(now) {
		t.Error("one more gave way")
	}
	two[0].Stop()
	if GiveWay(time.Now()) || young.Err == ErrGaveWay {
		t.Error("one gave way that had ended")
	}
	if got := len(ended.list()); got != 5 {
		t.Errorf("%d have ended, want 5", got)
	}
	two[1].Stop()
	for _, e := range ticking.list() {
		if e == &two[0].engine || e == &two[1].engine {
			t.Error("a stopped engine is looked at")
		}
	}
}
