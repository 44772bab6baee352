package tcp

import (
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/memory"
	"github.com/coredns/coredns/test/clients"
)

// What is answered goes out, though the query behind it has to wait for a worker.
func TestReaderWithoutWorkerWritesFirst(t *testing.T) {
	h := &coretest.Lane{Held: make(chan struct{})}
	defer close(h.Held)
	s := serve(t, h, nil, nil)
	exec.SetWaiting(1)
	defer exec.SetWaiting(memory.Waiting(memory.Limit()))
	if !exec.Enter(t.Context()) {
		t.Fatal("there is no place")
	}
	c := coretest.Dial(t, s.addr)
	c.Write(coretest.Frame(t, "hold.")) // it has a goroutine now
	eventually.Holds(t, "it is parked", func() bool { return h.Holding.Load() == 1 })
	c.Write(append(coretest.Frame(t, "www."), coretest.Frame(t, "unpack.")...))
	for i, want := range []string{"NOERROR 192.0.2.1", "NOERROR 192.0.2.3"} {
		c.SetReadDeadline(time.Now().Add(5 * time.Second))
		b, err := clients.ReadFrame(c)
		m := new(dns.Msg)
		if err != nil || m.Unpack(b) != nil || coretest.Describe(m) != want {
			t.Errorf("reply %d: %v, %v", i, m, err)
		}
		if i == 0 {
			exec.Leave()
		}
	}
}
