package client

import (
	"io"
	"net/http"
	"sync"

	"k8s.io/client-go/transport"
)

// inflight returns a wrapper that lets n requests at a time wait for their answer. A list
// counts until its body is closed, a watch, which has no end, until its header is there.
func inflight(n int) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper {
		return &limited{next: next, slots: make(chan struct{}, n)}
	}
}

type limited struct {
	next  http.RoundTripper
	slots chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (l *limited) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case l.slots <- struct{}{}:
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	resp, err := l.next.RoundTrip(req)
	if err != nil || req.URL.Query().Get("watch") == "true" {
		<-l.slots
		return resp, err
	}
	resp.Body = &slotBody{ReadCloser: resp.Body, free: func() { <-l.slots }}
	return resp, nil
}

// slotBody gives its request's slot back when it is closed.
type slotBody struct {
	io.ReadCloser
	once sync.Once
	free func()
}

func (b *slotBody) Close() error {
	defer b.once.Do(b.free)
	return b.ReadCloser.Close()
}
