package dnsserver

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/coredns/caddy"
	"github.com/miekg/dns"
)

// Configs is the Configs of the whole configuration that c sets up, in file order: those of other blocks, too. A
// block's keys share what its directives make.
func Configs(c *caddy.Controller) []*Config { return c.Context().(*dnsContext).configs }

// Block is the Config of the first key of c's block, which the directives of the block have set up.
func (c *Config) Block() *Config {
	if c.first == nil {
		return c
	}
	return c.first
}

// Servers is the servers of the configuration that c sets up, in file order. They exist from OnStartup on.
func Servers(c *caddy.Controller) []*Server { return c.Context().(*dnsContext).servers }

// Step is what one plugin did with a question that is explained.
type Step = plugin.TrailStep

// Explanation is what happened to a question that was asked to be explained.
type Explanation struct {
	Server string        `json:"server"`         // the listener that it was led to, as metrics have it
	Zone   string        `json:"zone,omitempty"` // of the block; "" if there is none for the name
	View   string        `json:"view,omitempty"`
	Took   time.Duration `json:"tookNs"`
	Steps  []Step        `json:"steps"`
	Reply  *dns.Msg      `json:"-"` // nil if there is none on purpose
}

// Question is a question to be explained.
type Question struct {
	Name      string         // fully qualified
	Type      uint16         //
	Client    netip.AddrPort // who is said to ask; not valid is an address of loopback
	Transport string         // scheme of the listener, or udp and tcp for dns; "" is any, over UDP if it can be
	DO        bool           // with the DO bit
}

// ErrNoListener is the error of a question for a transport that no server has.
var ErrNoListener = errors.New("no server listens for that transport")

// Explain asks a question of one of servers, as if a client had sent it, and tells what happened to it: it is counted,
// logged and cached as any other. It takes the message lane.
func Explain(ctx context.Context, servers []*Server, q Question) (*Explanation, error) {
	scheme, stream := q.Transport, true
	switch q.Transport {
	case "udp", "tcp", "":
		scheme, stream = transport.DNS, q.Transport == "tcp"
	case transport.DNS:
		stream = false
	}
	s := nearestServer(servers, q.Name, scheme)
	if s == nil && q.Transport == "" {
		if s = nearestServer(servers, q.Name, ""); s != nil {
			stream = true
		}
	}
	if s == nil {
		return nil, ErrNoListener
	}
	m := new(dns.Msg).SetQuestion(q.Name, q.Type)
	m.SetEdns0(1232, q.DO)
	client := q.Client
	if !client.IsValid() {
		client = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 40000)
	}
	w := &keptReply{local: s.localAddr(stream), remote: addrFor(client, stream)}
	ctx, trail := plugin.WithTrail(ctx)
	begin := time.Now()
	s.ServeDNS(ctx, w, m)
	e := &Explanation{Server: s.Addr, Took: time.Since(begin), Steps: trail.Steps(), Reply: w.reply}
	e.Zone, e.View = trail.Block()
	return e, w.err
}

// nearestServer is the first of servers for the scheme, "" for any, that has the longest zone which name lies in; one
// that has none if there is no better.
func nearestServer(servers []*Server, name, scheme string) (best *Server) {
	longest := -1
	for _, s := range servers {
		trans, _, _ := strings.Cut(s.Addr, "://")
		if scheme != "" && trans != scheme {
			continue
		}
		n := 0
		for _, c := range s.configs {
			if plugin.Name(c.Zone).Matches(name) {
				n = max(n, len(c.Zone))
			}
		}
		if n > longest {
			best, longest = s, n
		}
	}
	return best
}

// localAddr is an address that a query of s may have come to.
func (s *Server) localAddr(stream bool) net.Addr {
	_, host, port, err := SplitProtocolHostPort(s.Addr)
	if err != nil {
		return addrFor(netip.AddrPort{}, stream)
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	n, _ := net.LookupPort("tcp", port)
	return addrFor(netip.AddrPortFrom(addr, uint16(n)), stream)
}

func addrFor(a netip.AddrPort, stream bool) net.Addr {
	if stream {
		return net.TCPAddrFromAddrPort(a)
	}
	return net.UDPAddrFromAddrPort(a)
}

// keptReply is a writer that keeps what is written.
type keptReply struct {
	local, remote net.Addr
	reply         *dns.Msg
	err           error
}

func (w *keptReply) LocalAddr() net.Addr  { return w.local }
func (w *keptReply) RemoteAddr() net.Addr { return w.remote }

func (w *keptReply) WriteMsg(m *dns.Msg) error {
	w.reply = m.Copy()
	return nil
}

func (w *keptReply) Write(b []byte) (int, error) {
	m := new(dns.Msg)
	if w.err = wire.UnpackInto(m, b); w.err == nil {
		w.reply = m
	}
	return len(b), w.err
}

func (w *keptReply) Close() error        { return nil }
func (w *keptReply) TsigStatus() error   { return nil }
func (w *keptReply) TsigTimersOnly(bool) {}
func (w *keptReply) Hijack()             {}

// Serves reports whether c is a block of s.
func (s *Server) Serves(c *Config) bool { return slices.Contains(s.configs, c) }

// LimitsInForce is the limits of the listener as they are in force, by the names of the directive limits; 0 is none,
// and times are in seconds. Those of the process are waiting and in_flight_bytes.
func (s *Server) LimitsInForce() map[string]float64 {
	l := &s.limits
	return map[string]float64{
		"connections": float64(l.Connections), "client_connections": float64(l.Client), "client_bits4": float64(l.Bits4),
		"client_bits6": float64(l.Bits6), "streams": float64(l.Streams), "pipeline": float64(l.Pipeline), "query_bytes": float64(l.QueryBytes),
		"header_bytes": float64(l.HeaderBytes), "unread_bytes": float64(l.Unread), "handshake": l.Handshake.Seconds(),
		"waiting": float64(l.waiting), "in_flight_bytes": float64(l.inFlightBytes),
		"read": s.ReadTimeout.Seconds(), "write": s.WriteTimeout.Seconds(), "idle": s.IdleTimeout.Seconds(), "queries": float64(s.MaxTCPQueries),
	}
}
