// Package webconfig serves HTTP as a web configuration file of the Prometheus project says: with TLS, for users with
// passwords, at a limited rate, with more headers. The file's form is that of github.com/prometheus/exporter-toolkit,
// which the tests compare with; that module itself would bring templates, a tracer's pages and a fifth more program.
//
//	file ──read──▶ file.tls ──▶ tls.Config, for each connection anew
//	          └──▶ gate: rate, headers, user ──▶ the server's handler
//
// A file that changes is obeyed by the next connection and request; whether there is TLS at all, and the rate, stay as
// they were. Any number of requests run at a time. Start at Serve.
package webconfig

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"

	"golang.org/x/time/rate"
)

// Validate reports what is wrong with the file at path, its certificate and its passwords. An empty path is right.
func Validate(path string) error {
	if path == "" {
		return nil
	}
	f, err := read(path)
	if err != nil {
		return err
	}
	if err := f.checkUsers(); err != nil {
		return err
	}
	if _, err := f.TLS.config(); err != nil && !errors.Is(err, errNoTLS) {
		return err
	}
	return nil
}

// Serve serves l with s, as the file at path says; an empty path stands for plain HTTP. It returns what s.Serve does,
// or what is wrong with the file. s must not be serving, and is changed.
func Serve(l net.Listener, s *http.Server, path string) error {
	if path == "" {
		return s.Serve(l)
	}
	if err := Validate(path); err != nil {
		return err
	}
	f, err := read(path)
	if err != nil {
		return err
	}
	// The handler is wrapped before TLS is looked at, as users and headers are for plain HTTP, too.
	g := &gate{path: path, next: s.Handler, known: map[login]bool{}}
	if g.next == nil {
		g.next = http.DefaultServeMux
	}
	// The rate is one for all clients together, and for all connections.
	if f.Rate.Interval != 0 {
		g.limiter = rate.NewLimiter(rate.Every(f.Rate.Interval), f.Rate.Burst)
	}
	s.Handler = g
	// A file that gets a TLS part later would need another listener: that takes a restart.
	config, err := f.TLS.config()
	if errors.Is(err, errNoTLS) {
		return s.Serve(l)
	}
	if err != nil {
		return err
	}
	if !f.HTTP.HTTP2 {
		// An empty map is how net/http is told to speak HTTP/1.1 alone.
		s.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	}
	s.TLSConfig = config
	// A file that is wrong by now fails the handshakes, not the server.
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		f, err := read(path)
		if err != nil {
			return nil, err
		}
		now, err := f.TLS.config()
		if err != nil {
			return nil, err
		}
		now.NextProtos = s.TLSConfig.NextProtos // which ServeTLS has completed
		return now, nil
	}
	return s.ServeTLS(l, "", "")
}
