package proxy

import (
	"errors"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/packed"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
)

// lookout is a loop's goroutine that reads when the test says so.
type lookout struct {
	mu      sync.Mutex
	watched map[int32]eventloop.Readable
	next    int32
	ended   bool
}

func (l *lookout) Watch(_ int, r eventloop.Readable) (int32, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return 0, os.ErrClosed
	}
	l.next++
	if l.watched == nil {
		l.watched = map[int32]eventloop.Readable{}
	}
	l.watched[l.next] = r
	return l.next, nil
}

func (l *lookout) Unwatch(index int32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.watched, index)
}

func (l *lookout) all() (all []eventloop.Readable) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range l.watched {
		all = append(all, r)
	}
	return all
}

// A socket that was opened in a loop whose goroutine watches is read there, and nowhere else; when that goroutine
// ends, what comes is read all the same.
func TestLaneReadsItsSockets(t *testing.T) {
	p := proxyTo(t, udpUpstream(t, func(q []byte, _ *net.UDPAddr, send func([]byte)) { send(replyTo(q)) }), transport.DNS)
	loop, watch := eventloop.New(), new(lookout)
	defer loop.Close()
	loop.WatchWith(watch)
	ends := make(told, 1)
	begin := func() *Exchange {
		x := &Exchange{Query: packed.Message(t, "www.example.org.", dns.TypeA), Owner: ends}
		loop.Enter()
		p.BeginIn(x, loop)
		loop.Done(0)
		loop.Leave()
		return x
	}
	waits := func() {
		t.Helper()
		select {
		case <-ends:
			t.Fatal("was read elsewhere")
		case <-time.After(50 * time.Millisecond):
		}
	}
	gets := func(want *Exchange, in *eventloop.Loop) {
		t.Helper()
		select {
		case x := <-ends:
			if x != want || x.Err != nil || in != nil && x.Loop != in || in == nil && x.Loop == loop {
				t.Errorf("ended with %v, in the lane: %v", x.Err, x.Loop == loop)
			}
		case <-time.After(time.Second):
			t.Fatal("no reply")
		}
	}

	x := begin()
	waits()
	loop.Enter()
	for _, r := range watch.all() {
		r.ReadIn(loop)
	}
	loop.Leave()
	gets(x, loop)

	x = begin()
	waits()
	for _, r := range watch.all() { // the loop's goroutine ends
		r.Orphaned()
	}
	watch.ended = true
	gets(x, nil)
	gets(begin(), nil)
}

// What is closed is not watched any more, and its late reading or end does no harm.
func TestClosedSocketIsNotWatched(t *testing.T) {
	p := proxyTo(t, udpUpstream(t, func([]byte, *net.UDPAddr, func([]byte)) {}), transport.DNS)
	loop, watch := eventloop.New(), new(lookout)
	defer loop.Close()
	loop.WatchWith(watch)
	ends := make(told, 1)
	loop.Enter()
	p.BeginIn(&Exchange{Query: packed.Message(t, "www.example.org.", dns.TypeA), Owner: ends}, loop)
	loop.Done(0)
	loop.Leave()
	before := watch.all()
	p.Stop()
	if x := <-ends; !errors.Is(x.Err, errStopped) {
		t.Error(x.Err)
	}
	if after := watch.all(); len(before) != 1 || len(after) != 0 {
		t.Errorf("%d sockets were watched, %d are after the end", len(before), len(after))
	}
	loop.Enter()
	before[0].ReadIn(loop)
	loop.Leave()
	before[0].Orphaned()
}
