package doq

import (
	"testing"
	"time"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/service"
	"github.com/coredns/coredns/test/clients"
)

// A connection that is ended for an error counts once, however many of its streams have one at the same time.
func TestEndIsCountedOnce(t *testing.T) {
	const conns = 10
	s := serve(t, new(coretest.Lane), 100, func(s *service.Service) { s.Read = 100 * time.Millisecond })
	for range conns {
		c := clients.DialQUIC(t, s.addr)
		for range maxReaders {
			send(t, c.Conn, []byte{0}, false)
		}
		if got := closeCode(t, c.Conn); got != int(CodeProtocolError) {
			t.Errorf("closed with %d", got)
		}
	}
	if err := s.end(); err != nil { // until then streams may find out
		t.Error(err)
	}
	if n := s.counted("0x2"); n != conns {
		t.Errorf("counted %d of %d", n, conns)
	}
}
