package plugin

import (
	"context"

	"github.com/coredns/coredns/plugin/etcd/msg"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// ServiceBackend is a store of services from which the functions A, AAAA, TXT, CNAME, PTR, MX, SRV, NS and
// SOA make records.
//
//	plugin ──A, SRV, …──▶ Services, Reverse ──▶ []msg.Service ──▶ records
//	                            Lookup ◀── names that are no services of this zone
//
// A plugin implements it and calls, for each type that is asked for, the function of that name. The methods are called
// by many goroutines at once. state is the query, or a query that a function derived from it; it belongs to the
// callee for the time of the call, and its message is only to be read.
type ServiceBackend interface {
	// Services returns what stands at the name of state, and below it unless exact is set.
	Services(ctx context.Context, state request.Request, exact bool, opt Options) ([]msg.Service, error)
	// Reverse returns the services that have the address which the reverse name of state stands for.
	Reverse(ctx context.Context, state request.Request, exact bool, opt Options) ([]msg.Service, error)
	// Lookup resolves a name that is not in the zone, mostly by upstream.Lookup. Nil without an error says that there
	// was no reply.
	Lookup(ctx context.Context, state request.Request, name string, typ uint16) (*dns.Msg, error)
	// Records returns all services below the name of state, as for a zone transfer.
	Records(ctx context.Context, state request.Request, exact bool) ([]msg.Service, error)
	// IsNameError reports whether err, which another method returned, says that the name does not exist.
	IsNameError(err error) bool
	// Serial is the SOA serial of the zone of state.
	Serial(state request.Request) uint32
	// MinTTL is the SOA minimum of the zone of state, in seconds.
	MinTTL(state request.Request) uint32
}

// Options is handed on to the backend; there are none yet.
type Options struct{}

// BackendError writes a reply with rcode, AA, and the SOA record of zone in the authority section (RFC 2308 §2), and
// returns NOERROR and err, as ServeDNS is to return them.
func BackendError(ctx context.Context, b ServiceBackend, zone string, rcode int, state request.Request, err error, opt Options) (int, error) {
	m := new(dns.Msg).SetRcode(state.Req, rcode)
	m.Authoritative = true
	m.Ns, _ = SOA(ctx, b, zone, state, opt)

	if werr := state.W.WriteMsg(m); err == nil {
		err = werr
	}
	return dns.RcodeSuccess, err
}

// asking is state with another question, of class IN. The message is a copy as far as it is changed, so that the
// query itself stays as it is for others who read it.
func asking(state request.Request, name string, typ uint16) request.Request {
	var m dns.Msg
	if state.Req != nil {
		m = *state.Req
	}
	m.Question = []dns.Question{{Name: dns.Fqdn(name), Qtype: typ, Qclass: dns.ClassINET}}
	return request.Request{Req: &m, W: state.W, Zone: state.Zone}
}
