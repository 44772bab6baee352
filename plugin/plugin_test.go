package plugin_test

import (
	"context"
	"errors"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
	ot "github.com/opentracing/opentracing-go"
	"github.com/opentracing/opentracing-go/mocktracer"
)

// hop is a plugin that writes, passes on, or both.
type hop struct {
	name   string
	writes bool
	next   plugin.Handler
}

func (h hop) Name() string { return h.name }
func (h hop) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if h.writes {
		w.WriteMsg(new(dns.Msg).SetReply(r))
		return dns.RcodeSuccess, nil
	}
	return plugin.NextOrFailure(h.name, h.next, ctx, w, r)
}

// tracker is a writer that wants to know who wrote.
type tracker struct {
	test.ResponseWriter
	name  string
	wrote int
}

func (t *tracker) SetPlugin(name string)   { t.name = name }
func (t *tracker) GetPlugin() string       { return t.name }
func (t *tracker) WriteMsg(*dns.Msg) error { t.wrote++; return nil }

// wrapped hides what its writer can do beside being a dns.ResponseWriter, as plugins that look at replies do.
type wrapped struct{ dns.ResponseWriter }

func TestTrackerLearnsTheInnermostWriter(t *testing.T) {
	chain := hop{name: "a", next: hop{name: "b", next: hop{name: "c", writes: true}}}
	w := &tracker{}
	rc, err := plugin.NextOrFailure("metrics", chain, t.Context(), w, new(dns.Msg).SetQuestion("example.org.", dns.TypeA))
	if rc != dns.RcodeSuccess || err != nil || w.wrote != 1 {
		t.Fatalf("got %d, %v, %d messages", rc, err, w.wrote)
	}
	if w.name != "c" {
		t.Errorf("%q wrote, want c", w.name)
	}
}

func TestPathKnowsTheWriterBehindForeignWrappers(t *testing.T) {
	path := new(plugin.Path)
	ctx := context.WithValue(t.Context(), plugin.PathKey{}, path)
	wraps := test.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		return plugin.NextOrFailure("wraps", hop{name: "inner", writes: true}, ctx, wrapped{w}, r)
	})
	path.Enter("outer")
	if _, err := plugin.NextOrFailure("outer", wraps, ctx, &pathWriter{path: path}, new(dns.Msg)); err != nil {
		t.Fatal(err)
	}
	if got := path.Wrote(); got != "inner" {
		t.Errorf("%q wrote, want inner", got)
	}
}

// pathWriter notes writes as the server's writer does.
type pathWriter struct {
	test.ResponseWriter
	path *plugin.Path
}

func (w *pathWriter) WriteMsg(*dns.Msg) error { w.path.Write(); return nil }

func TestNoNext(t *testing.T) {
	rc, err := plugin.NextOrFailure("last", nil, t.Context(), nil, nil)
	if rc != dns.RcodeServerFailure || err == nil || err.Error() != "plugin/last: no next plugin found" {
		t.Errorf("got %d, %v", rc, err)
	}
}

func TestNextHasASpan(t *testing.T) {
	tracer := mocktracer.New()
	root := tracer.StartSpan("servedns")
	ctx := ot.ContextWithSpan(t.Context(), root)
	plugin.NextOrFailure("trace", hop{name: "a", next: hop{name: "b", writes: true}}, ctx, &test.ResponseWriter{}, new(dns.Msg))
	var names []string
	for _, s := range tracer.FinishedSpans() {
		names = append(names, s.OperationName)
	}
	if len(names) != 2 || names[0] != "b" || names[1] != "a" {
		t.Errorf("got spans %q", names)
	}
}

func TestError(t *testing.T) {
	inner := errors.New("inner")
	if err := plugin.Error("x", inner); err.Error() != "plugin/x: inner" || !errors.Is(err, inner) {
		t.Errorf("got %v", err)
	}
}

func TestClientWrite(t *testing.T) {
	for rc := range 24 {
		want := rc != dns.RcodeServerFailure && rc != dns.RcodeRefused && rc != dns.RcodeFormatError && rc != dns.RcodeNotImplemented
		if got := plugin.ClientWrite(rc); got != want {
			t.Errorf("%d: %t", rc, got)
		}
	}
}

func TestDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if plugin.Done(ctx) {
		t.Error("done before its end")
	}
	cancel()
	if !plugin.Done(ctx) {
		t.Error("not done after its end")
	}
}

func TestHandlerFunc(t *testing.T) {
	f := plugin.HandlerFunc(func(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) { return 7, nil })
	if rc, _ := f.ServeDNS(t.Context(), nil, nil); rc != 7 || f.Name() != "handlerfunc" {
		t.Errorf("got %d %s", rc, f.Name())
	}
}
