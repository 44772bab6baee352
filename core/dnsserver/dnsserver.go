package dnsserver

import (
	"crypto/tls"
	"net/http"
	"time"

	"github.com/coredns/coredns/core/internal/chain"
	"github.com/coredns/coredns/core/internal/doh"
	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/corefile"
	"github.com/coredns/coredns/plugin/pkg/keyring"
	"github.com/coredns/coredns/plugin/pkg/transport"

	"github.com/miekg/dns"
	"github.com/pires/go-proxyproto"
)

// DefaultPort is the port of keys without one, for the plain transport.
const DefaultPort = transport.Port

var (
	// Port is the port of keys of the plain transport that name none; the flag -dns.port sets it.
	Port = DefaultPort
	// Quiet leaves out the listing of zones at start; the flag -quiet sets it.
	Quiet bool
	// GracefulTimeout is kept for programs that set it; each Server waits for its own grace period.
	GracefulTimeout time.Duration
	// EnableChaos names the plugins that want queries of other classes than IN. If one of
	// them stands in a block, its listener takes such queries.
	EnableChaos = map[string]struct{}{"chaos": {}, "forward": {}, "proxy": {}}
)

// Context keys of a query's context.
type (
	// Key holds the *Server.
	Key = plugin.ServerKey
	// LoopKey holds an int: how often the query has come back through the server's chain.
	LoopKey = plugin.LoopKey
	// ViewKey holds a string: the view that the query was led to, "" if none.
	ViewKey = plugin.ViewKey
	// HTTPRequestKey holds the *http.Request of a query that came over HTTP.
	HTTPRequestKey = doh.RequestKey
)

type (
	// FilterFunc decides whether a query belongs to a block. All of a block's filters must say so.
	FilterFunc = chain.FilterFunc
	// Viewer is a plugin that makes its block a view: one of several blocks for the same
	// zone, chosen query by query.
	Viewer = chain.Viewer
	// WireViewer is a Viewer that can also decide on a query that is not unpacked.
	WireViewer = chain.WireViewer
	// MetadataCollector is a plugin that gathers metadata about a query before it is
	// led to a block.
	MetadataCollector = chain.Collector
)

// Config is what one key of a server block configures: a zone at a port. The keys
// of a block share the settings that its directives make.
type Config struct {
	// Zone is the zone, fully qualified and in lower case.
	Zone string
	// ListenHosts are the addresses to listen on; "" is any address.
	ListenHosts []string
	// Port is the port to listen on.
	Port string
	// NumSockets is the number of servers on each listen address, with one socket each; 0 means one server, which may
	// have several UDP sockets.
	NumSockets int
	// Direct is network interfaces on which the UDP listeners read queries past the kernel's network stack, where the
	// system can do that; see package afxdp.
	Direct []string
	// Root is the folder of relative file names, "" for the working directory.
	Root string
	// Debug turns recovering from panics off.
	Debug bool
	// Stacktrace adds the stack to the log line of a panic.
	Stacktrace bool
	// Transport is the transport's scheme: dns, tls, quic, grpc, https or https3.
	Transport string
	// HTTPRequestValidateFunc decides whether the server answers an HTTP request; nil means:
	// if its path is /dns-query.
	HTTPRequestValidateFunc func(*http.Request) bool
	// UDPDecorateWriterFunc, if set, is called for each UDP socket and gives the decorator of its writers. It sees all
	// replies, so none is made in the wire lane.
	UDPDecorateWriterFunc func(*Server) dns.DecorateWriter
	// FilterFuncs further decide whether a query belongs to this block.
	FilterFuncs []FilterFunc
	// ViewName is the name of the Viewer of this block.
	ViewName string
	// TLSConfig is for the encrypted transports.
	TLSConfig *tls.Config
	// TLSIdentity tells what certificates TLSConfig has, in any form, such as the names that they are for with blanks
	// between these; "" tells nothing. Blocks with different ones cannot share a listener.
	TLSIdentity string

	// Limits of the transports; nil means the default, 0 none.
	MaxQUICStreams        *int
	MaxQUICConnections    *int
	MaxQUICWorkerPoolSize *int
	MaxGRPCStreams        *int
	MaxGRPCConnections    *int
	MaxHTTPSConnections   *int
	MaxHTTPS3Streams      *int
	MaxHTTPS3Connections  *int

	// Shed makes UDP listeners drop replies that a socket does not take, rather than wait; see Server.Shed.
	Shed bool
	// Limits are the other limits of the listeners, and of the process.
	Limits Limits
	// Cookies is about DNS cookies.
	Cookies Cookies

	// ProxyProtoConnPolicy, if set, makes the listeners understand the PROXY protocol.
	ProxyProtoConnPolicy                    proxyproto.ConnPolicyFunc
	ProxyProtoUDPSessionTrackingTTL         time.Duration
	ProxyProtoUDPSessionTrackingMaxSessions int
	// ProxyProtoIdentity tells what these say, in any form; "" tells nothing. Of blocks that share a listener and
	// have different ones, the first in the Corefile counts, with a warning.
	ProxyProtoIdentity string

	// Times of connections; 0 means the default.
	ReadTimeout  time.Duration
	WriteTimeout time.Duration
	IdleTimeout  time.Duration
	// MaxTCPQueries is how many queries a connection may send; nil means the default, -1 any number.
	MaxTCPQueries *int

	// TsigSecret is the secrets by key name, base64.
	TsigSecret map[string]string

	// TsigKeys is more of them, which may be replaced while the server runs; nil if there are none.
	TsigKeys *keyring.Ring

	// Plugin is the block's plugins in the order of the chain.
	Plugin []plugin.Plugin

	opcodes  uint16                    // bit n: AllowOpcode(n) was called
	handlers map[string]plugin.Handler // by name, once the chain is made; of several the first
	chain    []plugin.Handler          // all of them in the chain's order
	first    *Config                   // the config of the block's first key
	pos      keyPos                    // where it stands in the Corefile
	word     corefile.Word             // the key there; without a place if that is not known
}

// TsigKey is the block's TSIG key of a name, fully qualified and in lower case, as it is now.
func (c *Config) TsigKey(name string) (keyring.Key, bool) {
	k, ok := c.TsigKeys.Key(name)
	if secret, static := c.TsigSecret[name]; static {
		return keyring.Key{Secret: secret, Algorithm: k.Algorithm}, true
	}
	return k, ok
}

// AddPlugin puts a plugin at the end of the block's chain.
func (c *Config) AddPlugin(m plugin.Plugin) { c.Plugin = append(c.Plugin, m) }

// AllowOpcode has the block take messages of an opcode beside QUERY and NOTIFY, which it takes anyway;
// dns.OpcodeUpdate, say. It is called in setup. They come over UDP, TCP and TLS only, have one question and any
// number of other records, and take the message lane. Where no block of a listener takes them, and in the blocks
// that do not, they get NOTIMP, and no plugin sees them; so they do over other transports. What is no opcode changes
// nothing.
func (c *Config) AllowOpcode(opcode int) {
	if opcode >= 0 && opcode < 16 {
		c.opcodes |= 1 << opcode
	}
}

// Handler is the block's handler of that name, nil if there is none. Handlers exist once
// the servers are made, so it is of use from OnStartup on.
func (c *Config) Handler(name string) plugin.Handler { return c.handlers[name] }

// Handlers is the block's handlers in the order of Directives. See Handler.
func (c *Config) Handlers() []plugin.Handler {
	var hs []plugin.Handler
	for _, name := range Directives {
		if h, ok := c.handlers[name]; ok {
			hs = append(hs, h)
		}
	}
	return hs
}

// Chain is all of the block's handlers in the order of the chain, also several of one name. See Handler.
func (c *Config) Chain() []plugin.Handler { return c.chain }
