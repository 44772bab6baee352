// Package clients has a client for each way in which a server can be asked: one that keeps a connection, where there are connections, and asks
// several questions on it at one time. It trusts every certificate, and counts how often it connects, so that tests can tell whether a
// connection has lived on. Start at Connect.
package clients

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/miekg/dns"
	"google.golang.org/grpc/credentials"
)

// Client asks one server, on one connection where there are connections. Any goroutine may use it.
type Client interface {
	// Ask is the reply to m. After an error of a connection, clients of DNS over HTTP and gRPC make another one by themselves.
	Ask(m *dns.Msg) (*dns.Msg, error)
	// Raw sends a packet as it is, and returns the reply as it came. Nobody else may ask meanwhile.
	Raw(b []byte) ([]byte, error)
	Close()
	// Dials is how often the client has connected.
	Dials() int
}

// AskTime is how long a client waits for a reply, or for a connection: longer than any machine is busy, and than any time limit that tests set.
const AskTime = 30 * time.Second

// ErrTimeout says that no reply came in AskTime.
var ErrTimeout = errors.New("no answer in time")

// Trusting is a TLS configuration that takes every certificate.
var Trusting = &tls.Config{InsecureSkipVerify: true}

// Frame is b with its length before it, as DNS over TCP and QUIC has it.
func Frame(b []byte) []byte { return append(binary.BigEndian.AppendUint16(nil, uint16(len(b))), b...) }

// Connect makes a client for a server of the scheme.
func Connect(t testing.TB, scheme, addr string) Client {
	t.Helper()
	switch scheme {
	case "dns":
		return DialFrames(t, addr, nil)
	case "tls":
		return DialFrames(t, addr, Trusting)
	case "https", "https/2":
		return DialHTTP(t, addr, http.MethodPost, 2)
	case "https/2/get":
		return DialHTTP(t, addr, http.MethodGet, 2)
	case "https/1":
		return DialHTTP(t, addr, http.MethodPost, 1)
	case "https/1/get":
		return DialHTTP(t, addr, http.MethodGet, 1)
	case "https3":
		return DialHTTP3(t, addr, http.MethodPost)
	case "https3/get":
		return DialHTTP3(t, addr, http.MethodGet)
	case "quic":
		return DialQUIC(t, addr)
	case "grpc":
		return DialGRPC(t, addr, credentials.NewTLS(Trusting))
	}
	t.Fatalf("no client for %s", scheme)
	return nil
}
