package file_test

import (
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin/file"
	"github.com/coredns/coredns/plugin/transfer"

	"github.com/miekg/dns"
)

// newPrimary is a primary of example.org. with the zone of an atomic pointer; none: it refuses.
func newPrimary(t testing.TB) (addr string, served *atomic.Pointer[file.Zone]) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served = new(atomic.Pointer[file.Zone])
	s := &dns.Server{Listener: l, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		m := new(dns.Msg).SetReply(r)
		z := served.Load()
		if z == nil {
			m.Rcode = dns.RcodeRefused
			w.WriteMsg(m)
			return
		}
		ch, err := z.Transfer(0)
		if err != nil {
			t.Error(err)
		}
		for rrs := range ch {
			m.Answer = append(m.Answer, rrs...)
		}
		if r.Question[0].Qtype == dns.TypeSOA {
			m.Answer = m.Answer[:1]
		}
		w.WriteMsg(m)
	})}
	started, done := make(chan struct{}), make(chan struct{})
	s.NotifyStartedFunc = func() { close(started) } // one that has not started cannot be shut down
	go func() {
		defer close(done)
		s.ActivateAndServe()
	}()
	<-started
	t.Cleanup(func() {
		s.Shutdown()
		<-done
	})
	return l.Addr().String(), served
}

func TestTransferIn(t *testing.T) {
	none, _ := newPrimary(t)
	addr, served := newPrimary(t)
	served.Store(parse(t, porchZone))
	z := file.NewZone("example.org.", "")
	if err := z.TransferIn(nil); err == nil || !strings.Contains(err.Error(), "there is no primary to transfer from") {
		t.Errorf("without primaries: %v", err)
	}
	z.TransferFrom = []string{none, addr}
	bad := errors.New("do not like it")
	records := 0
	if err := z.TransferInWithRecords(nil, func(rrs []dns.RR) error { records = len(rrs); return bad }); !errors.Is(err, bad) || z.Current() != nil || records != 11 {
		t.Errorf("a validator that refuses: %v, %d records", err, records)
	}
	if err := z.TransferIn(new(transfer.Transfer)); err != nil {
		t.Fatal(err)
	}
	if got, result := lookup(z, "www.example.org.", dns.TypeA); result != file.Success || z.SOASerialIfDefined() != 7 {
		t.Errorf("got %s, %d", got, result)
	}
}

func TestUpdate(t *testing.T) {
	addr, served := newPrimary(t)
	z := file.NewZone("example.org.", "")
	z.TransferFrom = []string{addr}
	shutdown, done := make(chan bool), make(chan error)
	fetched := 0
	go func() {
		done <- z.UpdateWithTransfer(shutdown, nil, func(z *file.Zone, t *transfer.Transfer) error {
			fetched++
			return z.TransferIn(t)
		})
	}()
	quick := strings.Replace(porchZone, "7 7200 3600 1209600", "7 1 1 2", 1)
	served.Store(parse(t, quick))
	becomes := func(what string, want file.Result, serial int64) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if _, result := lookup(z, "ns.example.org.", dns.TypeA); result == want && z.SOASerialIfDefined() == serial {
				return
			}
		}
		t.Fatalf("%s: serial %d", what, z.SOASerialIfDefined())
	}
	becomes("the first version", file.Success, 7)
	served.Store(nil)
	becomes("the primary is gone for too long", file.ServerFailure, 7)
	served.Store(parse(t, strings.Replace(quick, " 7 1 ", " 8 1 ", 1)))
	becomes("the next version", file.Success, 8)
	close(shutdown)
	if err := <-done; err != nil || fetched < 2 {
		t.Errorf("%v, fetched %d times", err, fetched)
	}
}
