package cache

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/metadata"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/test"

	"github.com/miekg/dns"
)

// TestLabelsOfVerification: who is asked before an old answer is used sees the labels of the query; what they set for
// themselves is not the query's, but for the wildcard that the answer was made from. A refresh for nobody has no labels.
func TestLabelsOfVerification(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*settings)
		want   []string // values of the label that the plugins below have seen, with and without a client
	}{
		"at once":         {func(s *settings) { s.verify = true }, []string{"NL", "NL"}},
		"within a time":   {func(s *settings) { s.verify, s.verifyTimeout = true, 10*time.Second }, []string{"NL", "NL"}},
		"in vain":         {func(s *settings) { s.verify, s.verifyTimeout = true, time.Millisecond }, []string{"NL", "NL"}},
		"for a later one": {func(*settings) {}, []string{"NL", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			seen := make(chan string, 2)
			w := newWorld(t, func(s *settings) { s.stale = time.Hour; tc.change(s) })
			slow := w.c.verifyTimeout == time.Millisecond
			w.c.Next = plugin.HandlerFunc(func(ctx context.Context, rw dns.ResponseWriter, r *dns.Msg) (int, error) {
				value := ""
				if f := metadata.ValueFunc(ctx, "geoip/country/code"); f != nil {
					value = f()
				}
				if slow {
					time.Sleep(20 * time.Millisecond)
				}
				metadata.SetValueFunc(ctx, "zone/wildcard", func() string { return "*.example.org." })
				metadata.SetValueFunc(ctx, "geoip/country/code", func() string { return "none" })
				m := new(dns.Msg).SetReply(r)
				m.Answer = []dns.RR{test.A("a.example.org. 300 IN A 192.0.2.1")}
				seen <- value
				return dns.RcodeSuccess, rw.WriteMsg(m)
			})
			var got []string
			for i, at := range []int64{0, 400} {
				w.clock.Store(at)
				ctx := metadata.ContextWithMetadata(context.Background())
				metadata.SetValueFunc(ctx, "geoip/country/code", func() string { return "NL" })
				rec := dnstest.NewRecorder(&test.ResponseWriter{})
				if _, err := w.c.ServeDNS(ctx, rec, new(dns.Msg).SetQuestion("a.example.org.", dns.TypeA)); err != nil || rec.Msg == nil {
					t.Fatal(rec.Msg, err)
				}
				if f := metadata.ValueFunc(ctx, "zone/wildcard"); f == nil || f() != "*.example.org." {
					t.Errorf("query %d does not know the wildcard", i)
				}
				if f := metadata.ValueFunc(ctx, "geoip/country/code"); i > 0 && w.c.verifyTimeout > 0 && f() != "NL" {
					t.Errorf("query %d: its own label is %q now", i, f())
				}
				got = append(got, <-seen)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("plugins below have seen %q, want %q", got, tc.want)
			}
		})
	}
}
