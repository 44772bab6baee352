package minimal

import (
	"context"
	"testing"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/nonwriter"
	"github.com/coredns/coredns/plugin/test"
	"github.com/coredns/coredns/plugin/whoami"

	"github.com/miekg/dns"
)

// The reply to a NOTIFY stays as it is, whether the plugin below has it in an adapter or as a message.
func TestNotifyPasses(t *testing.T) {
	message := test.HandlerFunc(func(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
		rec := nonwriter.New(w)
		rcode, err := whoami.Whoami{}.ServeDNS(ctx, rec, r)
		w.WriteMsg(rec.Msg)
		return rcode, err
	})
	for name, next := range map[string]plugin.Handler{"adapter": whoami.Whoami{}, "message": message} {
		rec := dnstest.NewRecorder(&test.ResponseWriter{})
		handler{next}.ServeDNS(t.Context(), rec, new(dns.Msg).SetNotify("example.org."))
		if rec.Msg == nil || len(rec.Msg.Extra) != 2 {
			t.Errorf("%s: got %v", name, rec.Msg)
		}
	}
}
