// Package loadbalance puts the records of replies into an order of its own, so that clients
// who take the first address do not all take the same.
//
//	reply of the next plugins ──▶ policy.arrange, section by section ──▶ order of its records
//
// The order is worked out from types and addresses alone, in one place for both lanes: as a message the
// reply gets new slices of the same records, as bytes its records change places. Start at policy.
package loadbalance

import (
	"context"
	"crypto/tls"

	"github.com/coredns/coredns/plugin"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

const pluginName = "loadbalance"

var log = clog.NewWithPlugin(pluginName)

// LoadBalance is the plugin. Without a policy it shuffles.
type LoadBalance struct {
	Next plugin.Handler

	policy *policy
}

// Name implements plugin.Handler.
func (lb LoadBalance) Name() string { return pluginName }

// ServeDNS implements plugin.Handler.
func (lb LoadBalance) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	return plugin.NextOrFailure(lb.Name(), lb.Next, ctx, &LoadBalanceResponseWriter{w, lb.policy}, r)
}

// ServeWire implements plugin.WireHandler.
func (lb LoadBalance) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	out := plugin.NextWire(lb.Name(), lb.Next, ctx, w, q)
	if out != wire.Done || !w.Holds() || !concerns(w.Rcode(), q.Type()) || len(w.Recs()) < 2 {
		return out
	}
	o := orders.Get().(*order)
	o.reply(w, lb.policy, q.Type())
	orders.Put(o)
	return out
}

// WireSelf implements plugin.WireHandler.
func (lb LoadBalance) WireSelf() plugin.Handler { return lb }

// Prompt implements plugin.Prompt.
func (lb LoadBalance) Prompt() bool { return true }

// concerns reports whether a reply is put into order: no errors, and no transfers, whose order has a meaning.
func concerns(rcode int, qtype uint16) bool {
	return rcode == dns.RcodeSuccess && qtype != dns.TypeAXFR && qtype != dns.TypeIXFR
}

// LoadBalanceResponseWriter puts the messages written to it into order.
type LoadBalanceResponseWriter struct {
	dns.ResponseWriter

	policy *policy
}

// WriteMsg implements dns.ResponseWriter. The sections of res become other slices; neither the slices
// that it had nor the records in them change, as whoever wrote may keep them.
func (w *LoadBalanceResponseWriter) WriteMsg(res *dns.Msg) error {
	if len(res.Question) > 0 && concerns(res.Rcode, res.Question[0].Qtype) {
		o := orders.Get().(*order)
		o.message(res, w.policy)
		orders.Put(o)
	}
	return w.ResponseWriter.WriteMsg(res)
}

// Write implements dns.ResponseWriter. Bytes stay as they are.
func (w *LoadBalanceResponseWriter) Write(buf []byte) (int, error) {
	log.Warning("LoadBalance called with Write: not shuffling records")
	return w.ResponseWriter.Write(buf)
}

// ConnectionState implements dns.ConnectionStater.
func (w *LoadBalanceResponseWriter) ConnectionState() *tls.ConnectionState {
	return plugin.ConnectionState(w.ResponseWriter)
}

// AskedName implements plugin.Asker.
func (w *LoadBalanceResponseWriter) AskedName() string { return plugin.AskedName(w.ResponseWriter) }
