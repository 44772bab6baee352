package plugin_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// withAA is an Editor that sets AA, and counts how often.
type withAA struct {
	plugin.Handler
	wires, messages, raws int
}

func (e *withAA) Name() string { return "withaa" }

func (e *withAA) Edit(w *wire.Reply, _ *wire.Query) {
	e.wires++
	w.SetFlag(wire.FlagAA, true)
}

func (e *withAA) EditMsg(m, _ *dns.Msg) *dns.Msg {
	e.messages++
	edited := *m
	edited.Authoritative = true
	return &edited
}

var answer = netip.MustParseAddr("192.0.2.1")

// ours answers by a WireAdapter, as sources of ours do.
func ours(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	a, err := plugin.NewWireAdapter(w, r)
	if err != nil {
		return dns.RcodeServerFailure, err
	}
	defer a.Free()
	a.Reply.Begin(&a.Query)
	a.Reply.Addr(wire.Answer, a.Query.Name(), 60, answer)
	return a.Write()
}

// foreign answers by a message.
func foreign(_ context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	m := new(dns.Msg).SetReply(r)
	m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: answer.AsSlice()}}
	return dns.RcodeSuccess, w.WriteMsg(m)
}

// taking is a writer that takes replies as they lie, as those of the server do.
type taking struct {
	test.ResponseWriter
	taken int
	aa    bool
}

func (w *taking) TakeReply(reply *wire.Reply, _ *dns.Msg) (bool, error) {
	w.taken++
	w.aa = reply.Flag(wire.FlagAA)
	return true, nil
}

// keeping keeps what is written.
type keeping struct {
	test.ResponseWriter
	all []*dns.Msg
	raw string
}

func (w *keeping) Write(b []byte) (int, error) {
	w.raw += string(b)
	return len(b), nil
}

func (w *keeping) WriteMsg(m *dns.Msg) error {
	w.all = append(w.all, m)
	return nil
}

// A reply is edited once, whoever wrote it and whoever gets it, and is written once.
func TestEditReplies(t *testing.T) {
	r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	for name, c := range map[string]struct {
		source          plugin.HandlerFunc
		wires, messages int
	}{"ours": {ours, 1, 0}, "foreign": {foreign, 0, 1}} {
		e := new(withAA)
		k := new(keeping)
		rcode, wrote, err := plugin.EditReplies(e, c.source, context.Background(), k, r)
		if rcode != dns.RcodeSuccess || err != nil || !wrote || e.wires != c.wires || e.messages != c.messages {
			t.Errorf("%s to a foreign writer: %d %v %v, edited as %d and %d", name, rcode, wrote, err, e.wires, e.messages)
		}
		if len(k.all) != 1 || !k.all[0].Authoritative || len(k.all[0].Answer) != 1 {
			t.Errorf("%s to a foreign writer: wrote %v", name, k.all)
		}
	}
	// Two editors, one above the other, and a writer that takes replies: nothing is unpacked.
	upper, lower, w := new(withAA), new(withAA), new(taking)
	next := plugin.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		rcode, _, err := plugin.EditReplies(lower, plugin.HandlerFunc(ours), ctx, w, r)
		return rcode, err
	})
	if _, wrote, err := plugin.EditReplies(upper, next, context.Background(), w, r); !wrote || err != nil {
		t.Error(wrote, err)
	}
	if upper.wires != 1 || lower.wires != 1 || upper.messages+lower.messages != 0 || w.taken != 1 || !w.aa {
		t.Errorf("edited as %d and %d, taken %d times, AA %v", upper.wires, lower.wires, w.taken, w.aa)
	}
}

// refusing is a writer that can write nothing.
type refusing struct{ test.ResponseWriter }

func (refusing) WriteMsg(*dns.Msg) error { return errors.New("as asked") }

// What could not be written is no reply.
func TestEditRepliesUnwritten(t *testing.T) {
	r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	for name, source := range map[string]plugin.HandlerFunc{"ours": ours, "foreign": foreign} {
		if _, wrote, err := plugin.EditReplies(new(withAA), source, context.Background(), new(refusing), r); wrote || err == nil {
			t.Errorf("%s: %v, %v", name, wrote, err)
		}
	}
}

// RawWritten implements plugin.RawWatcher.
func (e *withAA) RawWritten() { e.raws++ }

// Octets go through as they are, and the editor is told.
func TestEditRaw(t *testing.T) {
	raw := plugin.HandlerFunc(func(_ context.Context, w dns.ResponseWriter, _ *dns.Msg) (int, error) {
		_, err := w.Write([]byte("octets"))
		return dns.RcodeSuccess, err
	})
	e, k := new(withAA), new(keeping)
	_, wrote, err := plugin.EditReplies(e, raw, context.Background(), k, new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA))
	if wrote || err != nil || e.raws != 1 || e.wires+e.messages != 0 || k.raw != "octets" {
		t.Errorf("%v %v, %+v, %q", wrote, err, e, k.raw)
	}
}

// Nothing was written, and the return code says so.
func TestEditNothing(t *testing.T) {
	silent := plugin.HandlerFunc(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) { return dns.RcodeServerFailure, nil })
	r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	rcode, wrote, err := plugin.EditReplies(new(withAA), silent, context.Background(), new(keeping), r)
	if rcode != dns.RcodeServerFailure || wrote || err != nil {
		t.Error(rcode, wrote, err)
	}
}

// What a reply costs on its way through an editor: from a source of ours or a foreign one, to a writer of ours or a
// foreign one.
func BenchmarkEditReplies(b *testing.B) {
	r := new(dns.Msg).SetQuestion("www.example.org.", dns.TypeA)
	for source, h := range map[string]plugin.HandlerFunc{"ours": ours, "foreign": foreign} {
		for writer, w := range map[string]dns.ResponseWriter{"ours": new(taking), "foreign": new(test.ResponseWriter)} {
			b.Run("from="+source+"/to="+writer, func(b *testing.B) {
				b.ReportAllocs()
				e := new(withAA)
				for b.Loop() {
					if _, _, err := plugin.EditReplies(e, h, context.Background(), w, r); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
