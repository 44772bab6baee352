package wire_test

import (
	"errors"
	"testing"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/pkg/wire/wiretest"

	"github.com/miekg/dns"
)

// TestHostileReplies takes replies over, puts them away, and sends them to clients of both sizes.
func TestHostileReplies(t *testing.T) {
	w := new(wire.Reply)
	buf := make([]byte, 0, wire.MaxMessage)
	wiretest.Compare(t, 2, func(t *testing.T, r *wiretest.Reply) {
		var q wire.Query
		if !q.Parse(r.Query()) {
			t.Fatal("the question is not eligible")
		}
		w.Reset(buf)
		if !w.LoadMessage(&q, r.Message) {
			return
		}
		p := w.Pack()
		for _, limit := range []uint16{0, wire.MaxMessage} {
			q.Peer.Limit = limit
			w.Reset(buf)
			w.Load(&p, &q)
			w.Finish(&q, 1232)
		}
	})
}

// TestHostilePackets reads messages as those that come from clients.
func TestHostilePackets(t *testing.T) {
	wiretest.Compare(t, 4, func(t *testing.T, r *wiretest.Reply) {
		var q wire.Query
		if q.Parse(r.Message) {
			t.Error("it is eligible")
		}
		wire.UnpackQuery(r.Message)
	})
}

// FuzzEffort counts what readers do: names in full cost no more than is allowed for a message of that length, whoever
// writes them.
func FuzzEffort(f *testing.F) {
	for _, r := range wiretest.Hostile() {
		f.Add(r.Message[:min(len(r.Message), 600)])
	}
	f.Fuzz(checkEffort)
}

func TestEffort(t *testing.T) {
	for _, r := range wiretest.Hostile() {
		checkEffort(t, r.Message)
	}
}

func checkEffort(t *testing.T, b []byte) {
	allowed := int(wire.EffortOf(len(b)))
	m, err := wire.UnpackQuery(b)
	switch {
	case wire.Affordable(b) == errors.Is(err, wire.ErrDear):
		t.Fatalf("affordable %v, and %v", wire.Affordable(b), err)
	case err == nil && plainLen(m) > allowed+2*len(b):
		t.Fatalf("%d octets are %d when unpacked", len(b), plainLen(m))
	case len(b) < wire.HeaderLen:
		return
	}
	var q wire.Query
	var w wire.Reply
	w.Reset(nil)
	n := wire.HeaderLen + wire.NameLen(b[wire.HeaderLen:]) + 4
	if n > len(b) || !q.Parse(append([]byte{0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}, b[wire.HeaderLen:n]...)) || !w.LoadMessage(&q, b) {
		return
	}
	if w.PlainLen() > allowed+len(b) {
		t.Fatalf("%d octets have names of %d", len(b), w.PlainLen())
	}
}

// plainLen is the length of m without compression, of which escapes in names are no part.
func plainLen(m *dns.Msg) (n int) {
	uncompressed := *m
	uncompressed.Compress = false
	return uncompressed.Len()
}
