package proxy

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/packed"
	"github.com/coredns/coredns/plugin/pkg/udpsockets"

	"github.com/miekg/dns"
)

// told gets the ends of exchanges.
type told chan *Exchange

func (t told) EndExchange(x *Exchange) { t <- x }

// Queries of a batch are sent when it is over, but those that ended before are not.
func TestQueriesAreSentWithTheBatch(t *testing.T) {
	bothSockets(t, func(t *testing.T, proxyTo func(string) *Proxy) {
		var mu sync.Mutex
		var seen []string
		ports := map[int]bool{}
		addr := udpUpstream(t, func(q []byte, from *net.UDPAddr, send func([]byte)) {
			m := new(dns.Msg)
			m.Unpack(q)
			mu.Lock()
			seen = append(seen, m.Question[0].Name)
			ports[from.Port] = true
			mu.Unlock()
			send(replyTo(q))
		})
		p := proxyTo(addr)
		loop := eventloop.New()
		defer loop.Close()
		const n = udpsockets.MaxRun + 8
		gone := errors.New("gone")
		var want []string
		for range 2 {
			loop.Enter()
			ends := make(told, n)
			all := make([]Exchange, n)
			for i := range all {
				name := fmt.Sprintf("x%02d.example.org.", i)
				all[i] = Exchange{Query: packed.Message(t, name, dns.TypeA), Owner: ends}
				p.BeginIn(&all[i], loop)
				if i%4 != 0 {
					want = append(want, name)
				}
			}
			for i := 0; i < n; i += 4 {
				p.Cancel(&all[i], gone)
				if x := <-ends; x != &all[i] || !errors.Is(x.Err, gone) {
					t.Fatalf("cancelled: %v", x.Err)
				}
			}
			time.Sleep(10 * time.Millisecond)
			mu.Lock()
			if len(seen) != len(want)-n*3/4 {
				t.Errorf("%d queries were sent before the end of the batch", len(seen))
			}
			mu.Unlock()
			loop.Done(0)
			loop.Leave()
			for range n * 3 / 4 {
				if x := <-ends; x.Err != nil {
					t.Error(x.Err)
				}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(seen)
		slices.Sort(want)
		if !slices.Equal(seen, want) {
			t.Errorf("the upstream saw %q, want %q", seen, want)
		}
		if len(ports) != 4 { // there are more in a batch than one port has
			t.Errorf("queries of two batches came from %d ports", len(ports))
		}
	})
}

// Of a batch, that query ends which cannot be sent, also if the others go before it.
func TestOneOfABatchCannotBeSent(t *testing.T) {
	bothSockets(t, func(t *testing.T, proxyTo func(string) *Proxy) {
		p := proxyTo(udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) { send(replyTo(q)) }))
		loop := eventloop.New()
		defer loop.Close()
		loop.Enter()
		ends := make(told, 3)
		all := make([]Exchange, 3)
		for i, name := range []string{"a.example.org.", "b.example.org.", "longer.example.org."} {
			q := packed.Message(t, name, dns.TypeA)
			if i == 1 {
				q = append(q, make([]byte, 65530-len(q))...)
			}
			all[i] = Exchange{Query: q, Owner: ends}
			p.BeginIn(&all[i], loop)
		}
		loop.Done(0)
		loop.Leave()
		for range all {
			if x := <-ends; errors.Is(x.Err, syscall.EMSGSIZE) != (x == &all[1]) {
				t.Errorf("query of %d octets: %v", len(x.Query), x.Err)
			}
		}
	})
}
