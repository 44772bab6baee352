package dnsserver

import (
	"crypto/tls"
	"errors"
	"testing"
)

// Clients that offer the protocol of zone transfers get it; what others offer does not matter.
func TestDoTProtocol(t *testing.T) {
	s := serving(t, blockFor(t, "tls", new(laneHandler)))
	for _, tc := range []struct {
		offered []string
		want    string
	}{{nil, ""}, {[]string{"dot"}, "dot"}, {[]string{"h2", "dot"}, "dot"}, {[]string{"h2"}, ""}} {
		c, err := tls.Dial("tcp", s.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: tc.offered})
		if err != nil {
			t.Errorf("%v: %v", tc.offered, err)
			continue
		}
		if got := c.ConnectionState().NegotiatedProtocol; got != tc.want {
			t.Errorf("%v: got %q", tc.offered, got)
		}
		c.Close()
	}
}

// A configuration of a client's own gets the same protocols.
func TestOwnConfigGetsProtocols(t *testing.T) {
	own, failure := &tls.Config{NextProtos: []string{"x"}}, errors.New("as asked")
	var chosen *tls.Config
	var err error
	c := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, err }}
	offers := &tls.ClientHelloInfo{SupportedProtos: []string{"h2", "dot"}}
	for _, tc := range []struct {
		name   string
		chosen *tls.Config
		err    error
		dot    string // the protocols of tls://, "-" for no configuration
		https  string // and of https://
	}{
		{"none", nil, nil, "dot", "-"},
		{"one", own, nil, "dot", "h2"},
		{"an error", nil, failure, "-", "-"},
	} {
		chosen, err = tc.chosen, tc.err
		for scheme, config := range map[string]*tls.Config{tc.dot: dotConfig(c.Clone()), tc.https: withProtocols(c, []string{"h2"})} {
			got, gerr := config.GetConfigForClient(offers)
			protocols := "-"
			if got != nil && len(got.NextProtos) == 1 {
				protocols = got.NextProtos[0]
			}
			if gerr != tc.err || protocols != scheme {
				t.Errorf("%s: got %s, %v, want %s", tc.name, protocols, gerr, scheme)
			}
		}
	}
	if own.NextProtos[0] != "x" {
		t.Error("somebody's own configuration was changed")
	}
	if dotConfig(nil) != nil || tlsConfigOf([]*Config{{}}) != nil {
		t.Error("there is TLS where none is configured")
	}
}
