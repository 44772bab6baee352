package transfer

import (
	"context"
	"net"
	"net/netip"
	"testing"

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

// Transfers of one connection follow each other, so that only one has built what the client does not take. Those of
// other connections do not wait for them.
func TestTransfersFollowEachOther(t *testing.T) {
	x := setupOf(t, "transfer {\nto *\n}")
	x.Transferers = []Transferer{&source{v: version(t, 7, "a", "b")}}
	run := func(s *stalled) (done chan struct{}) {
		done = make(chan struct{})
		go func() {
			defer close(done)
			if rcode, err := x.ServeDNS(context.Background(), s, axfr("example.org.")); rcode != 0 || err != nil {
				t.Errorf("rcode %d, %v", rcode, err)
			}
		}()
		return done
	}
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
