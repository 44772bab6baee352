package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/coredns/coredns/plugin/pkg/eventloop"
	"github.com/coredns/coredns/plugin/pkg/neterr"
)

var (
	// ErrNoHealthy means that no upstream is left to be asked.
	ErrNoHealthy = errors.New("no healthy proxies")
	// ErrNoForward means that there is no upstream at all.
	ErrNoForward = errors.New("no forwarder defined")
	// ErrCachedClosed means that an upstream closed an open connection under a query, several times over.
	ErrCachedClosed = errors.New("cached connection was closed by peer")
	// ErrInvalidRequest means that there is no question to be asked.
	ErrInvalidRequest = errors.New("proxy: invalid request")
	// ErrMismatch means that a connection brought, under the query's id, what is no reply to it.
	ErrMismatch = errors.New("proxy: the reply does not match the query")
	// ErrMalformed means that a Peer's reply to the query cannot be unpacked.
	ErrMalformed = errors.New("proxy: the reply is malformed")
	// ErrBusy means that an upstream has as many queries as it may have at one time.
	ErrBusy = errors.New("proxy: too many queries wait for this upstream")
	// ErrGaveWay means that there was no reply for 200 ms, and another query came for which there was no room. It is an
	// eventloop.ErrGaveWay.
	ErrGaveWay = fmt.Errorf("proxy: %w", eventloop.ErrGaveWay)
)

// ErrTransportStopped is the text of the error of what is asked of a stopped Proxy or Transport.
const ErrTransportStopped = "proxy: transport stopped"

var errStopped = errors.New(ErrTransportStopped)

// late is the error of waiting in vain during op; from is nil before there is a connection.
func late(op, network string, from, to net.Addr) error {
	return &net.OpError{Op: op, Net: network, Source: from, Addr: to, Err: os.ErrDeadlineExceeded}
}

// closedByPeer reports whether a connection's error is its end by the other side.
func closedByPeer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || neterr.Is(err, syscall.ECONNRESET, syscall.EPIPE)
}

// refusal reports whether an error of opening a connection is the other side's, which is there. Where the network is
// away, or was, the next attempt may succeed at any moment.
func refusal(err error) bool {
	return !timedOut(err) && !neterr.Is(err, syscall.EHOSTUNREACH, syscall.ENETUNREACH)
}

func timedOut(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}
