package doh

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/wire"

	"github.com/miekg/dns"
)

// NewRequest is NewRequestWithContext without a way to give up.
func NewRequest(method, url, host string, m *dns.Msg) (*http.Request, error) {
	return NewRequestWithContext(context.Background(), method, url, host, m)
}

// NewRequestWithContext returns the request that asks m, with the method GET (RFC 8484 §4.1, the message in the
// parameter dns) or POST (the message as body). The message keeps its ID; 0 lets HTTP caches do their work.
//
// url is the server's address: "192.0.2.1:443" or "https://dns.example.org". It gets the scheme https if it has none,
// and Path at its end. host is the name for the Host header, "" for that in url.
func NewRequestWithContext(ctx context.Context, method, url, host string, m *dns.Msg) (*http.Request, error) {
	wire, err := m.Pack()
	if err != nil {
		return nil, err
	}
	target := endpoint(url)

	var req *http.Request
	switch method {
	case http.MethodGet:
		target += "?dns=" + base64.RawURLEncoding.EncodeToString(wire)
		req, err = http.NewRequestWithContext(ctx, method, target, nil)
	case http.MethodPost:
		req, err = http.NewRequestWithContext(ctx, method, target, bytes.NewReader(wire))
	default:
		return nil, errMethod(method)
	}
	if err != nil {
		return nil, err
	}
	if host != "" {
		req.Host = host
	}
	req.Header.Set("Content-Type", MimeType)
	req.Header.Set("Accept", MimeType)
	return req, nil
}

// endpoint completes the address of a server.
func endpoint(url string) string {
	if !strings.Contains(url, "://") {
		url = "https://" + url
	}
	if strings.HasSuffix(url, Path) {
		return url
	}
	return url + Path
}

// ResponseToMsg returns the message in resp, and closes resp's body. It is an error if the status says that there is no
// answer (RFC 8484 §4.2.1).
func ResponseToMsg(resp *http.Response) (*dns.Msg, error) {
	if resp.StatusCode >= http.StatusMultipleChoices {
		if resp.Body != nil {
			resp.Body.Close()
		}
		return nil, fmt.Errorf("http status %d instead of an answer", resp.StatusCode)
	}
	packet, err := readMessage(resp.Body)
	if err != nil {
		return nil, err
	}
	m, err := wire.UnpackMsg(packet)
	if err != nil {
		return nil, err
	}
	return m, nil
}
