package doh

import (
	"bytes"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/http2"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/plugin/pkg/eventually"
	"github.com/coredns/coredns/plugin/pkg/memory"
)

// What is answered goes out, though a long query behind it has no place yet.
func TestLongQueryWritesFirst(t *testing.T) {
	exec.SetWaiting(4) // long ones have one place
	defer exec.SetWaiting(memory.Waiting(memory.Limit()))
	h := &coretest.Lane{Held: make(chan struct{})}
	defer close(h.Held)
	s := serve(t, serviceFor(t, h), tlsConfig(t))
	long := coretest.Query("hold.")
	long.SetEdns0(1232, false)
	long.IsEdns0().Option = append(long.IsEdns0().Option, &dns.EDNS0_PADDING{Padding: make([]byte, 5000)})
	coretest.ConnectH2(t, s.addr).Post(1, coretest.Packed(t, long))
	eventually.Holds(t, "it is parked", func() bool { return h.Holding.Load() == 1 })
	p := coretest.ConnectH2(t, s.addr)
	p.Conn.SetDeadline(time.Now().Add(5 * time.Second))
	var piece bytes.Buffer
	to := p.Framer
	p.Framer = http2.NewFramer(&piece, p.Conn)
	p.Framer.ReadMetaHeaders = to.ReadMetaHeaders
	p.Post(1, coretest.Packed(t, coretest.Query("www.")))
	p.Post(3, coretest.Packed(t, long))
	p.Conn.Write(piece.Bytes())
	if id, status, _ := p.Reply(); id != 1 || status != "200" {
		t.Errorf("stream %d: %s", id, status)
	}
}
