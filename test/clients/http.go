package clients

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/miekg/dns"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"github.com/coredns/coredns/plugin/pkg/doh"
)

// HTTPClient is a client of DNS over HTTP.
type HTTPClient struct {
	Client *http.Client
	URL    string
	Method string
	dials  atomic.Int32
	end    func()
}

// Close closes the connections.
func (c *HTTPClient) Close() { c.end() }

// Dials implements Client.
func (c *HTTPClient) Dials() int { return int(c.dials.Load()) }

// Ask implements Client.
func (c *HTTPClient) Ask(m *dns.Msg) (*dns.Msg, error) {
	req, err := doh.NewRequest(c.Method, c.URL, "", m)
	if err != nil {
		return nil, err
	}
	resp, err := c.Client.Do(req)
	if err != nil {
		return nil, err
	}
	return doh.ResponseToMsg(resp)
}

// DialHTTP makes a client for a server of https://, with HTTP/1.1 or HTTP/2, that asks by GET or POST.
func DialHTTP(t testing.TB, addr, method string, version int) *HTTPClient {
	tr := &http.Transport{TLSClientConfig: Trusting.Clone(), ForceAttemptHTTP2: version == 2}
	if version == 1 {
		tr.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	c := &HTTPClient{Client: &http.Client{Transport: tr, Timeout: AskTime}, URL: "https://" + addr, Method: method, end: tr.CloseIdleConnections}
	tr.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c.dials.Add(1)
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	t.Cleanup(c.Close)
	return c
}

// DialHTTP3 makes a client for a server of https3://, that asks by GET or POST.
func DialHTTP3(t testing.TB, addr, method string) *HTTPClient {
	tr := &http3.Transport{TLSClientConfig: Trusting.Clone()}
	c := &HTTPClient{Client: &http.Client{Transport: tr, Timeout: AskTime}, URL: "https://" + addr, Method: method, end: func() { tr.Close() }}
	tr.Dial = func(ctx context.Context, addr string, conf *tls.Config, qconf *quic.Config) (*quic.Conn, error) {
		c.dials.Add(1)
		return quic.DialAddrEarly(ctx, addr, conf, qconf)
	}
	t.Cleanup(c.Close)
	return c
}

// Raw implements Client.
func (c *HTTPClient) Raw(b []byte) ([]byte, error) {
	var resp *http.Response
	var err error
	if c.Method == http.MethodGet {
		resp, err = c.Client.Get(c.URL + doh.Path + "?dns=" + base64.RawURLEncoding.EncodeToString(b))
	} else {
		resp, err = c.Client.Post(c.URL+doh.Path, doh.MimeType, bytes.NewReader(b))
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}
