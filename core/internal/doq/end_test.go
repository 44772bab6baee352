package doq

import (
	"context"
	"sync"
	"testing"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/qlog"
	"github.com/quic-go/quic-go/qlogwriter"

	"github.com/coredns/coredns/core/internal/coretest"
	"github.com/coredns/coredns/test/clients"
)

// ends notes of each stream of a connection whether its end came with the last octets.
type ends struct {
	mu    sync.Mutex
	with  int
	alone int
}

func (e *ends) AddProducer() qlogwriter.Recorder { return e }
func (e *ends) SupportsSchemas(string) bool      { return true }
func (e *ends) Close() error                     { return nil }

func (e *ends) RecordEvent(ev qlogwriter.Event) {
	packet, ok := ev.(qlog.PacketReceived)
	if !ok {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range packet.Frames {
		s, ok := f.Frame.(*qlog.StreamFrame)
		switch {
		case !ok || !s.Fin:
		case s.Length == 0:
			e.alone++
		default:
			e.with++
		}
	}
}

// The end of a stream comes with the last octets of its reply: kdig asks no more on a connection where it comes behind
// them. What is scheduled may part the two now and then.
func TestEndComesWithTheReply(t *testing.T) {
	s := serve(t, new(coretest.Lane), 100, nil)
	for _, name := range []string{"www.", "long."} {
		seen := new(ends)
		conf := clients.Trusting.Clone()
		conf.NextProtos = []string{"doq"}
		c, err := quic.DialAddr(t.Context(), s.addr, conf, &quic.Config{
			Tracer: func(context.Context, bool, quic.ConnectionID) qlogwriter.Trace { return seen },
		})
		if err != nil {
			t.Fatal(err)
		}
		client := &clients.QUICClient{Conn: c}
		for range 20 {
			if _, err := client.Ask(query(name)); err != nil {
				t.Fatal(err)
			}
		}
		seen.mu.Lock()
		if seen.with == 0 {
			t.Errorf("%s: %d ends came with the last octets, and %d alone", name, seen.with, seen.alone)
		}
		seen.mu.Unlock()
		client.Close()
	}
}
