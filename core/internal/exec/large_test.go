package exec

import (
	"errors"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/wire"
)

// longer is the query of packet with so many octets behind it.
func longer(packet []byte, octets int) []byte {
	return append(packet[:len(packet):len(packet)], make([]byte, octets)...)
}

func TestPlacesOf(t *testing.T) {
	for octets, want := range map[int]int{0: 0, 12: 0, 4095: 0, 4096: 1, 65535: 15} {
		if got := placesOf(octets); got != want {
			t.Errorf("a query of %d octets takes %d places, want %d", octets, got, want)
		}
	}
}

// Large queries that wait have a part of the places. The next one waits, or is dropped, or refused; others go on.
func TestLargeQueries(t *testing.T) {
	defer SetWaiting(int(pool().most.Load()))
	SetWaiting(120) // of which large ones have 30: two with 15
	s := serviceOf(t, &decider{})
	small := packet(t, "www.")
	long := longer(small, 1<<16-1-len(small))
	hold := make(chan struct{})
	later := func(packet []byte, serve func()) *source {
		from := newSource()
		from.serve = serve
		go Later(from, s, packet, nil, wire.Unpack)
		return from
	}
	two := [...]*source{later(long, func() { <-hold }), later(long, func() { <-hold })}
	eventually.Holds(t, "two are at work", func() bool { n, _ := Waits(); return n == 2 })
	third := later(long, nil)
	eventually.Holds(t, "the third one has come", func() bool { return third.told() == "begin" })
	<-later(small, nil).over
	dropped := newSource()
	LaterOrDrop(dropped, s, long, nil, wire.Unpack)
	<-dropped.over
	if told := dropped.told(); told != "begin; end" {
		t.Errorf("what may be dropped: %s", told)
	}
	if err := Serve(t.Context(), s, new(queryWriter), long); !errors.Is(err, ErrCrowded) {
		t.Errorf("what has a goroutine: %v", err)
	}
	if told := third.told(); told != "begin" {
		t.Errorf("the third one: %s", told)
	}
	close(hold)
	for _, from := range append(two[:], third) {
		<-from.over
	}
	eventually.Holds(t, "all places are free", func() bool {
		large.mu.Lock()
		defer large.mu.Unlock()
		return large.taken == 0
	})
}

// One that is alone has room, were it more than there is.
func TestLargeQueryAlone(t *testing.T) {
	defer SetWaiting(int(pool().most.Load()))
	SetWaiting(2)
	s := serviceOf(t, &decider{})
	from := newSource()
	Later(from, s, longer(packet(t, "www."), 60000), nil, wire.Unpack)
	<-from.over
}

// Who waits for places has them in turn: those that need one do not pass for ever one that needs many.
func TestLargeQueriesInTurn(t *testing.T) {
	defer SetWaiting(int(pool().most.Load()))
	SetWaiting(120) // of which large ones have 30
	l := new(largePlaces)
	for range 30 {
		l.wait(1)
	}
	waits := func(n, before int) (have chan struct{}) {
		have = make(chan struct{})
		go func() { l.wait(n); close(have) }()
		eventually.Holds(t, "it waits", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return len(l.queue) == before+1
		})
		return have
	}
	many, one := waits(15, 0), waits(1, 1)
	l.give(1)
	if l.take(1) {
		t.Error("one was passed that waits")
	}
	for range 14 {
		l.give(1)
	}
	<-many
	l.give(1)
	<-one
	if l.give(30); l.taken != 0 || len(l.queue) != 0 {
		t.Errorf("%d are taken, %d wait", l.taken, len(l.queue))
	}
}
