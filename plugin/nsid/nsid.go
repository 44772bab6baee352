// Package nsid tells clients that ask which server answers them, with the option of RFC 5001. Of several servers behind one
// address it is the only way to find out.
//
//	query with NSID ──▶ plugins below ──reply, or its return code──▶ reply with NSID ──▶ client
//
// Queries without the option pass untouched. Start at Nsid.ServeDNS.
package nsid

import (
	"context"
	"crypto/tls"
	"encoding/hex"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

const pluginName = "nsid"

// Nsid tells Data, any text, to clients that ask for it.
type Nsid struct {
	Next plugin.Handler
	Data string
}

// Name is the plugin's name.
func (n Nsid) Name() string { return pluginName }

// ServeDNS passes the query on. If it has the option, so has the reply, also one that the server would otherwise write.
func (n Nsid) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if !asked(r.IsEdns0()) {
		return plugin.NextOrFailure(n.Name(), n.Next, ctx, w, r)
	}
	nw := &ResponseWriter{ResponseWriter: w, Data: n.Data, query: r}
	rcode, err := plugin.NextOrFailure(n.Name(), n.Next, ctx, nw, r)
	if plugin.ClientWrite(rcode) {
		return rcode, err
	}
	nw.why = err
	m := new(dns.Msg).SetRcode(r, rcode)
	m.RecursionAvailable = edns.Resolves(err)
	if werr := nw.WriteMsg(m); err == nil {
		err = werr
	}
	return dns.RcodeSuccess, err
}

// ServeWire passes the query on. If it has the option, so has the reply.
func (n Nsid) ServeWire(ctx context.Context, w *wire.Reply, q *wire.Query) wire.Outcome {
	out := plugin.NextWire(n.Name(), n.Next, ctx, w, q)
	if out == wire.Done && q.EDNS().Set&wire.HasNSID != 0 {
		w.DropOption(wire.OptionNSID) // that of an upstream
		w.AddOption(wire.OptionNSID, []byte(n.Data))
	}
	return out
}

// WireSelf returns n.
func (n Nsid) WireSelf() plugin.Handler { return n }

// Prompt implements plugin.Prompt.
func (n Nsid) Prompt() bool { return true }

func asked(opt *dns.OPT) bool {
	if opt == nil {
		return false
	}
	for _, o := range opt.Option {
		if o.Option() == dns.EDNS0NSID {
			return true
		}
	}
	return false
}

// ResponseWriter puts the option into each message that is written to it.
type ResponseWriter struct {
	dns.ResponseWriter
	Data string

	query *dns.Msg // nil: not known
	why   error    // there is no reply but an error: the client is told of it as the server would tell it
}

// WriteMsg writes res with the option. res is not changed, but learns whether it was cut.
func (w *ResponseWriter) WriteMsg(res *dns.Msg) error {
	m := *res
	m.Extra = make([]dns.RR, 0, len(res.Extra)+1)
	opt := &dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT, Class: dns.DefaultMsgSize}}
	if w.query != nil {
		if q := w.query.IsEdns0(); q != nil {
			opt.SetUDPSize(q.UDPSize())
			opt.SetDo(q.Do()) // RFC 3225 §3
		}
	}
	for _, rr := range res.Extra {
		if own, ok := rr.(*dns.OPT); ok {
			opt.Hdr = own.Hdr
			for _, o := range own.Option {
				if o.Option() != dns.EDNS0NSID {
					opt.Option = append(opt.Option, o)
				}
			}
			continue
		}
		m.Extra = append(m.Extra, rr)
	}
	opt.Option = append(opt.Option, &dns.EDNS0_NSID{Code: dns.EDNS0NSID, Nsid: hex.EncodeToString([]byte(w.Data))})
	edns.Explain(opt, w.why)
	m.Extra = append(m.Extra, opt)
	if n := len(m.Extra); n > 1 && m.Extra[n-2].Header().Rrtype == dns.TypeTSIG {
		m.Extra[n-2], m.Extra[n-1] = m.Extra[n-1], m.Extra[n-2] // a signature stands last (RFC 8945 §5.1)
	}
	err := w.ResponseWriter.WriteMsg(&m)
	res.Truncated = m.Truncated
	return err
}

// ConnectionState implements dns.ConnectionStater.
func (w *ResponseWriter) ConnectionState() *tls.ConnectionState {
	return plugin.ConnectionState(w.ResponseWriter)
}

// AskedName implements plugin.Asker.
func (w *ResponseWriter) AskedName() string { return plugin.AskedName(w.ResponseWriter) }
