package transfer

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// stalled is a client that takes nothing before it is told to.
type stalled struct {
	*client
	remote *net.TCPAddr
	began  chan struct{} // closed when something is written
	may    chan struct{}
}

func stalledAt(port int) *stalled {
	return &stalled{tcp(), &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: port}, make(chan struct{}), make(chan struct{})}
}

func (s *stalled) RemoteAddr() net.Addr { return s.remote }

func (s *stalled) TakeReply(w *wire.Reply, r *dns.Msg) (bool, error) {
	if len(s.messages) == 0 {
		close(s.began)
	}
	<-s.may
	return s.client.TakeReply(w, r)
}

// of is how many transfers of the client's connection have their turn or wait for it.
func (t *turns) of(s *stalled) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.conns[netip.MustParseAddrPort(s.remote.String())]
	if c == nil {
		return 0
	}
	return c.users
}

// starting returns a function that starts a transfer to a client, and what is closed when it has ended.
func starting(ctx context.Context, t *testing.T) (x *Transfer, run func(s *stalled) (done chan struct{})) {
	x = setupOf(t, "transfer {\nto *\n}")
	x.Transferers = []Transferer{&source{v: version(t, 7, "a", "b")}}
	return x, func(s *stalled) chan struct{} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			if rcode, err := x.ServeDNS(ctx, s, axfr("example.org.")); rcode != 0 || err != nil {
				t.Errorf("rcode %d, %v", rcode, err)
			}
		}()
		return done
	}
}

// Transfers of one connection follow each other, so that only one has built what the client does not take. Those of
// other connections do not wait for them.
func TestTransfersFollowEachOther(t *testing.T) {
	x, run := starting(context.Background(), t)
	first, second, other := stalledAt(1000), stalledAt(1000), stalledAt(1001)
	close(second.may)
	close(other.may)
	firstDone := run(first)
	<-first.began
	secondDone := run(second)
	eventually.Holds(t, "the second transfer waits", func() bool { return x.turns.of(first) == 2 })
	<-run(other)
	select {
	case <-second.began:
		t.Error("the second transfer of a connection begins before the first has ended")
	default:
	}
	close(first.may)
	<-firstDone
	<-secondDone
	if len(first.messages) != 1 || len(second.messages) != 1 || x.turns.of(first) != 0 || x.turns.of(other) != 0 {
		t.Errorf("%d and %d messages, and %d transfers are left", len(first.messages), len(second.messages), x.turns.of(first)+x.turns.of(other))
	}
}

// Transfers over one connection of QUIC are some at one time, for its client need not read them in their order.
func TestTransfersOverQUIC(t *testing.T) {
	ctx := context.WithValue(context.Background(), dnsserver.Key{}, &dnsserver.Server{Addr: "quic://:853"})
	x, run := starting(ctx, t)
	var all []*stalled
	var done []chan struct{}
	for i := range atOnceQUIC + 1 {
		s := stalledAt(1000)
		all, done = append(all, s), append(done, run(s))
		if i < atOnceQUIC {
			<-s.began
		}
	}
	last := all[atOnceQUIC]
	eventually.Holds(t, "the last transfer waits", func() bool { return x.turns.of(last) == atOnceQUIC+1 })
	select {
	case <-last.began:
		t.Error("more transfers are built at one time")
	default:
	}
	close(all[2].may) // whichever is taken
	<-done[2]
	<-last.began
	for i, s := range all {
		if i != 2 {
			close(s.may)
		}
		<-done[i]
	}
	if x.turns.of(last) != 0 {
		t.Error("transfers are left")
	}
}

// Clients without an address of IP do not wait for each other.
func TestTurnsWithoutAddress(t *testing.T) {
	var all turns
	for range 3 {
		defer all.take(unnamed{}, 1)()
	}
}

type unnamed struct{ dns.ResponseWriter }

func (unnamed) RemoteAddr() net.Addr { return &net.UnixAddr{Name: "@"} }

// A zone that is not here goes to the next plugin without a turn: one that waits for an upstream does not hold up what
// else the connection asks for, and one that comes back here does not wait for itself.
func TestNextHasNoTurn(t *testing.T) {
	x, run := starting(context.Background(), t)
	first, second := stalledAt(1000), stalledAt(1000)
	close(second.may)
	next, end := make(chan struct{}), make(chan struct{})
	x.Next = plugin.HandlerFunc(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
		close(next)
		<-first.may
		return dns.RcodeRefused, nil
	})
	go func() {
		defer close(end)
		if rcode, err := x.ServeDNS(context.Background(), first, axfr("other.example.org.")); rcode != dns.RcodeRefused || err != nil {
			t.Errorf("rcode %d, %v", rcode, err)
		}
	}()
	<-next
	if n := x.turns.of(first); n != 0 {
		t.Errorf("%d turns are taken", n)
		close(first.may)
		<-end
		return
	}
	<-run(second)
	close(first.may)
	<-end
}
