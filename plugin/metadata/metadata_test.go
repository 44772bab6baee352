package metadata

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/request"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// visited is a context key: a provider with so many labels was asked.
type visited int

// provider offers labels, and adds a value to the context.
type provider map[string]string

func (p provider) Metadata(ctx context.Context, state request.Request) context.Context {
	for label, value := range p {
		SetValueFunc(ctx, label, func() string { return value + " " + state.Name() })
	}
	return context.WithValue(ctx, visited(len(p)), true)
}

func (p provider) Name() string { return "provider" }
func (p provider) ServeDNS(context.Context, dns.ResponseWriter, *dns.Msg) (int, error) {
	return 0, nil
}

func query(name string) request.Request {
	return request.Request{W: &test.ResponseWriter{}, Req: new(dns.Msg).SetQuestion(name, dns.TypeA)}
}

func TestCollect(t *testing.T) {
	m := &Metadata{Zones: []string{"example.org."}, Providers: []Provider{provider{"a/x": "1", "a/y": "2"}, provider{"b/z": "3"}}}

	ctx := m.Collect(t.Context(), query("WWW.example.org."))
	got := Labels(ctx)
	slices.Sort(got)
	if !slices.Equal(got, []string{"a/x", "a/y", "b/z"}) {
		t.Errorf("got labels %q", got)
	}
	if v := ValueFunc(ctx, "b/z")(); v != "3 www.example.org." {
		t.Errorf("got %q", v)
	}
	if all := ValueFuncs(ctx); len(all) != 3 || all["a/x"]() != "1 www.example.org." {
		t.Errorf("got %v", all)
	}
	if ctx.Value(visited(1)) == nil || ctx.Value(visited(2)) == nil {
		t.Error("a provider's context is lost")
	}

	// Outside of the zones there are no labels, nor those of a context further out.
	ctx = m.Collect(ctx, query("www.example.net."))
	if got := Labels(ctx); len(got) > 0 || ValueFunc(ctx, "a/x") != nil {
		t.Errorf("got labels %q", got)
	}
	if !SetValueFunc(ctx, "c/d", func() string { return "" }) {
		t.Error("no label can be set")
	}
}

func TestLabelsOfAQuery(t *testing.T) {
	one, two := func() string { return "one" }, func() string { return "two" }
	if SetValueFunc(t.Context(), "a/b", one) || ValueFunc(t.Context(), "a/b") != nil || Labels(t.Context()) != nil || ValueFuncs(t.Context()) != nil {
		t.Error("a context without metadata has labels")
	}
	ctx := ContextWithMetadata(t.Context())
	for _, label := range []string{"", "a", "/", "/a", "a/"} {
		if SetValueFunc(ctx, label, one) || IsLabel(label) {
			t.Errorf("%q is taken for a label", label)
		}
	}
	if !SetValueFunc(ctx, "a/b", one) || !SetValueFunc(ctx, "a/b/c", one) || !SetValueFunc(ctx, "a/b", two) {
		t.Error("labels are not taken")
	}
	if v := ValueFunc(ctx, "a/b"); v == nil || v() != "two" {
		t.Error("the last value does not count")
	}
	if got := Labels(ctx); len(got) != 2 {
		t.Errorf("got %q", got)
	}
}

func TestLabelsFromManyGoroutines(t *testing.T) {
	ctx := ContextWithMetadata(t.Context())
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 100 {
				label := fmt.Sprintf("p%d/l%d", i, j%10)
				SetValueFunc(ctx, label, func() string { return label })
				if v := ValueFunc(ctx, label); v == nil || v() != label {
					t.Errorf("%s is not there", label)
				}
				Labels(ctx)
				ValueFuncs(ctx)
			}
		})
	}
	wg.Wait()
	if n := len(Labels(ctx)); n != 80 {
		t.Errorf("%d labels, want 80", n)
	}
}

// reader is a plugin with a wire lane that may read labels.
type reader struct {
	provider
	reads bool
}

func (r reader) ReadsMetadata() bool { return r.reads }
func (r reader) ServeWire(context.Context, *wire.Reply, *wire.Query) wire.Outcome {
	return wire.Done
}
func (r reader) WireSelf() plugin.Handler { return r }

func TestWireLane(t *testing.T) {
	for _, tc := range []struct {
		next plugin.Handler
		want wire.Outcome
	}{
		{reader{}, wire.Done},
		{reader{reads: true}, wire.Unpack},
		{provider{}, wire.Unpack}, // no wire lane
	} {
		m := &Metadata{Zones: []string{"."}, Next: tc.next}
		m.discover([]plugin.Handler{m, tc.next})
		if got := m.ServeWire(t.Context(), new(wire.Reply), new(wire.Query)); got != tc.want {
			t.Errorf("%#v: got %v, want %v", tc.next, got, tc.want)
		}
	}
}

func TestAllProvidersOfAChainAreAsked(t *testing.T) {
	m := new(Metadata)
	m.discover([]plugin.Handler{m, provider{"a/b": ""}, provider{"c/d": ""}, test.NextHandler(0, nil)})
	if len(m.Providers) != 2 {
		t.Errorf("%d providers, want 2 though they have one name", len(m.Providers))
	}
}

func TestSetup(t *testing.T) {
	for _, tc := range []struct {
		input string
		zones []string
		err   string
	}{
		{"metadata", []string{"example.org."}, ""},
		{"metadata {\n}", []string{"example.org."}, ""},
		{"metadata example.COM. net", []string{"example.com.", "net."}, ""},
		{"metadata 10.0.0.0/23", []string{"0.0.10.in-addr.arpa.", "1.0.10.in-addr.arpa."}, ""},
		{"metadata a {\nb\n}", nil, "plugin/metadata: Testfile:2 - Error during parsing: Wrong argument count or unexpected line ending after 'b'"},
		{"metadata a..b", nil, `invalid zone "a..b"`},
		{"metadata\nmetadata", nil, "Wrong argument count or unexpected line ending after 'metadata'"},
	} {
		c := caddy.NewTestController("dns", tc.input)
		c.ServerBlockKeys = []string{"dns://example.org.:53"}
		m, err := parse(c)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q: got error %v, want %q", tc.input, err, tc.err)
			}
			continue
		}
		if err != nil || !slices.Equal(m.Zones, tc.zones) {
			t.Errorf("%q: got %q, %v", tc.input, m.Zones, err)
		}
	}
	c := caddy.NewTestController("dns", "metadata")
	if err := setup(c); err != nil || len(dnsserver.GetConfig(c).Plugin) != 1 {
		t.Errorf("setup: %v", err)
	}
}

func TestReadme(t *testing.T) {
	got, err := corefile.ReadmeSyntax("README.md")
	if err != nil || got != directive.Doc().Syntax {
		t.Errorf("README says %q (%v), the table %q", got, err, directive.Doc().Syntax)
	}
}

func BenchmarkCollect(b *testing.B) {
	m := &Metadata{Zones: []string{"."}, Providers: []Provider{viewLike{}}}
	state := query("www.example.org.")
	b.ReportAllocs()
	for b.Loop() {
		m.Collect(b.Context(), state)
	}
}

type viewLike struct{}

func (viewLike) Metadata(ctx context.Context, _ request.Request) context.Context {
	SetValueFunc(ctx, "view/name", func() string { return "v" })
	return ctx
}
