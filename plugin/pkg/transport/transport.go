// Package transport names the transports over which DNS is served and asked, and their default ports.
//
// A name is what stands before "://" in a server block's key and in an upstream's address. Splitting such
// a text is done by package parse; the transports themselves stand in core/dnsserver. Start at DNS.
package transport

// Schemes, in lower case.
const (
	DNS    = "dns"    // UDP and TCP (RFC 1035 §4.2)
	TLS    = "tls"    // DNS over TLS (RFC 7858)
	QUIC   = "quic"   // DNS over dedicated QUIC connections (RFC 9250)
	GRPC   = "grpc"   // the service of package pb
	HTTPS  = "https"  // DNS over HTTP/1.1 and HTTP/2 (RFC 8484)
	HTTPS3 = "https3" // DNS over HTTP/3 (RFC 8484, RFC 9114)
	UNIX   = "unix"   // a socket in the file system, as an upstream only
)

// Default ports. HTTPS3 shares HTTPSPort, with UDP in the place of TCP.
const (
	Port      = "53"
	TLSPort   = "853"
	QUICPort  = "853"
	GRPCPort  = "443"
	HTTPSPort = "443"
)

// QUICPacket is the size of a datagram of QUIC, in octets, before it is known which size the path takes: all paths of
// QUIC take it (RFC 9000 §14.1). quic-go's own 1280 do not fit, with their headers, into links of that MTU, as tunnels
// are, and no handshake would come to its end there.
const QUICPacket = 1200
