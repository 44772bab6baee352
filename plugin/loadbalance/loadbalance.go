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
	rcode, _, err := plugin.EditReplies(lb, lb.Next, ctx, w, r)
	return rcode, err
}

// ServeWire implements plugin.WireHandler.
func (lb LoadBalance) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	return plugin.EditWire(lb, lb.Next, ctx, w, q)
}

// Edit implements plugin.Editor.
func (lb LoadBalance) Edit(w *wire.Reply, q *wire.Query) {
	if !concerns(w.Rcode(), q.Type()) || len(w.Recs()) < 2 {
		return
	}
	o := orders.Get().(*order)
	o.reply(w, lb.policy, q.Type())
	orders.Put(o)
}

// EditMsg implements plugin.Editor. The sections of m become other slices; neither those that it had nor the records in
// them change, as whoever wrote may keep them. What another server has signed stays as it is; before it is signed here,
// there is no MAC.
func (lb LoadBalance) EditMsg(m, _ *dns.Msg) *dns.Msg {
	if t := m.IsTsig(); t != nil && t.MAC != "" {
		return m
	}
	if len(m.Question) > 0 && concerns(m.Rcode, m.Question[0].Qtype) {
		o := orders.Get().(*order)
		o.message(m, lb.policy)
		orders.Put(o)
	}
	return m
}

// RawWritten implements plugin.RawWatcher.
func (lb LoadBalance) RawWritten() {
	log.Warning("LoadBalance called with Write: not shuffling records")
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

// WriteMsg implements dns.ResponseWriter. It changes res as EditMsg does.
func (w *LoadBalanceResponseWriter) WriteMsg(res *dns.Msg) error {
	return w.ResponseWriter.WriteMsg(LoadBalance{policy: w.policy}.EditMsg(res, nil))
}

// Write implements dns.ResponseWriter. Bytes stay as they are.
func (w *LoadBalanceResponseWriter) Write(buf []byte) (int, error) {
	LoadBalance{}.RawWritten()
	return w.ResponseWriter.Write(buf)
}

// ConnectionState implements dns.ConnectionStater.
func (w *LoadBalanceResponseWriter) ConnectionState() *tls.ConnectionState {
	return plugin.ConnectionState(w.ResponseWriter)
}

// AskedName implements plugin.Asker.
func (w *LoadBalanceResponseWriter) AskedName() string { return plugin.AskedName(w.ResponseWriter) }
