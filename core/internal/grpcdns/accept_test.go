package grpcdns

import (
	"syscall"
	"testing"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/plugin/pkg/log/logtest"
	"github.com/coredns/coredns/plugin/pkg/loopback"
)

// What the system cannot accept for a moment does not end the service.
func TestAcceptFails(t *testing.T) {
	out := logtest.Capture(t)
	s := serviceFor(t, new(coretest.Lane), nil, nil)
	from := loopback.Failing(coretest.ListenTCP(t), 3, syscall.ENOBUFS)
	g := New(s)
	g.ListenOn(from)
	end := coretest.Serving(t, g, func() error { return g.Serve(from) })
	client := coretest.Dial(t, from.Addr().String())
	client.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
	if n, err := client.Read(make([]byte, 9)); n == 0 || err != nil {
		t.Errorf("no settings: %v", err)
	}
	out.Await(t, "accept tcp: no buffer space available")
	if err := end(); err != nil {
		t.Error(err)
	}
}
