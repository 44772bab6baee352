package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"

	"github.com/coredns/coredns/plugin/pkg/stamp"

	"k8s.io/client-go/rest"
)

// The authorities that vouch for the API are renewed now and then: the cluster writes the new ones into the file, and later the
// API shows a certificate of theirs. Client-go reads tokens and certificates of its own again, but not that file.

// access is how the API is reached, with the authorities that were in the file then.
type access struct {
	rest *rest.RESTClient
	file stamp.Stamp
}

// access makes an access, and tells the file with the authorities, "" for none. Nothing is sent.
func (c Config) access() (a *access, authorities string, err error) {
	cfg, err := c.rest()
	if err != nil {
		return nil, "", err
	}
	a = &access{file: stamp.At(cfg.CAFile)} // before it is read: it may change at any time
	hc, err := rest.HTTPClientFor(cfg)
	if err == nil {
		a.rest, err = rest.RESTClientForConfigAndClient(cfg, hc)
	}
	if err != nil {
		return nil, "", fmt.Errorf("kubernetes API client: %w", err)
	}
	return a, cfg.CAFile, nil
}

// stream sends what request makes, and returns the body of the answer. If the API shows a certificate that is not trusted and
// the file with the authorities is another one by now, it is read, and the request is sent once more.
func (c *Client) stream(ctx context.Context, request func(*rest.RESTClient) *rest.Request) (io.ReadCloser, error) {
	used := c.access.Load()
	body, err := request(used.rest).Stream(ctx)
	if err == nil || !errors.As(err, new(*tls.CertificateVerificationError)) {
		return body, err
	}
	next := c.renewed(used)
	if next == used {
		return nil, err
	}
	return request(next.rest).Stream(ctx)
}

// renewed is the access that takes the place of used, which is that itself if nothing is new.
func (c *Client) renewed(used *access) *access {
	c.renewing.Lock()
	defer c.renewing.Unlock()
	if now := c.access.Load(); now != used || c.authorities == "" || stamp.At(c.authorities) == used.file {
		return now
	}
	next, _, err := c.config.access()
	if err != nil {
		return used // the file is being written, or is of no use
	}
	c.access.Store(next)
	return next
}
