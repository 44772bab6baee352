package proxy

import (
	"errors"
	"net"
	"net/http"

	"github.com/quic-go/quic-go/http3"
)

// http3Client is a client for DNS over HTTP/3 (RFC 8484, RFC 9114) made of the TLS settings. It dials on the socket of
// the QUIC pool.
func (p *Proxy) http3Client() *http.Client {
	cfg := namedTLS(p.transport.conf.Load().tls, p.hostPort).Clone()
	cfg.NextProtos = []string{http3.NextProtoH3}
	if cfg.ServerName == "" { // nobody verifies it
		cfg.ServerName, _, _ = net.SplitHostPort(p.hostPort)
	}
	t := streamTransport{&http3Transport{pool: &p.engine.quic, cfg: cfg}, &p.clients}
	return &http.Client{Transport: t, CheckRedirect: onlyHTTPS}
}

// closedHTTP reports whether err is the end of an HTTP/3 connection that the upstream brought about without a
// complaint.
func closedHTTP(err error) bool {
	var h *http3.Error
	if errors.As(err, &h) {
		return h.Remote && (h.ErrorCode == http3.ErrCodeNoError || h.ErrorCode == http3.ErrCodeRequestRejected)
	}
	var op *net.OpError
	return lost(err) && !(errors.As(err, &op) && op.Op == "dial")
}
