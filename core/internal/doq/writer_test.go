package doq

import (
	"bytes"
	"context"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/core/internal/exec"
	"github.com/coredns/coredns/test/clients"

	"github.com/miekg/dns"
)

var _ exec.QueryWriter = new(Writer)

// A Writer that somebody else has made has no stream, and says so.
func TestWriterWithoutStream(t *testing.T) {
	w := new(Writer)
	for what, err := range map[string]error{"WriteMsg": w.WriteMsg(coretest.Query("www.")), "Close": w.Close()} {
		if err == nil || err.Error() != "stream is nil" {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if _, err := w.Write(nil); err == nil || err.Error() != "stream is nil" {
		t.Errorf("got %v", err)
	}
	if w.Msg == nil || w.TsigStatus() != nil || w.Network() != "" || w.ConnectionState() != nil {
		t.Errorf("got %v", w)
	}
	if w.RemoteAddr() != nil || w.LocalAddr() != nil {
		t.Errorf("from %v to %v", w.RemoteAddr(), w.LocalAddr())
	}
	w.Hijack()
}

// Of several goroutines that write at one time, as of a plugin that takes whoever of its upstreams answers first, one has
// written, and the others are told that they have not: a stream has one reply (RFC 9250 §4.2).
func TestSeveralWrite(t *testing.T) {
	const writers = 4
	s := serve(t, coretest.Handler(func(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		var wg sync.WaitGroup
		var written atomic.Int32
		begin := make(chan struct{})
		for range writers {
			wg.Go(func() {
				m := new(dns.Msg).SetReply(r)
				<-begin
				if w.WriteMsg(m) == nil {
					written.Add(1)
				}
			})
		}
		close(begin)
		wg.Wait()
		if n := written.Load(); n != 1 {
			t.Errorf("%d were told that they have written", n)
		}
		return 0, nil
	}), 100, nil)
	c := clients.DialQUIC(t, s.addr)
	want := Frame(coretest.Packed(t, new(dns.Msg).SetReply(query("www."))))
	for range 100 {
		got, err := io.ReadAll(send(t, c.Conn, framed(t, query("www.")), true))
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("got %x, %v", got, err)
		}
	}
}
