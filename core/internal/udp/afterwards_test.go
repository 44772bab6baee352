package udp

import (
	"context"
	"errors"
	"net"
	"testing"

	"github.com/coredns/coredns/core/internal/coretest"

	"github.com/miekg/dns"
)

// A plugin that keeps a writer, and answers when the listener has ended, as after a reload, is told that it has not
// answered.
func TestWriteAfterTheEnd(t *testing.T) {
	for name, p := range map[string]net.PacketConn{"plain": shareable(t), "wrapped": wrapped{coretest.ListenUDP(t)}} {
		kept := make(chan dns.ResponseWriter, 1)
		h := coretest.Handler(func(_ context.Context, w dns.ResponseWriter, _ *dns.Msg) (int, error) {
			kept <- w
			return dns.RcodeSuccess, nil
		})
		s := serveOn(t, coretest.Service(t, coretest.Label(t), h), p, Options{})
		query := coretest.Query("www.")
		if err := connected(t, s).WriteMsg(query); err != nil {
			t.Fatal(err)
		}
		w := <-kept
		if err := w.WriteMsg(new(dns.Msg).SetReply(query)); err != nil {
			t.Errorf("%s: before: %v", name, err)
		}
		if err := s.end(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := w.WriteMsg(new(dns.Msg).SetReply(query)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
