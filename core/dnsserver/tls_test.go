package dnsserver

import (
	"crypto/tls"
	"errors"
	"slices"
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

// What a configuration chooses for certain clients gets the same protocols as the listener's own.
func TestTLSOfListeners(t *testing.T) {
	a, b := &tls.Config{ServerName: "a"}, &tls.Config{ServerName: "b"}
	if tlsConfigOf([]*Config{{}}) != nil || dotConfig(nil) != nil {
		t.Error("a configuration out of nothing")
	}
	c := tlsConfigOf([]*Config{{}, {TLSConfig: a}, {TLSConfig: b}}, "h2")
	if c == a || c.ServerName != "a" || !slices.Equal(c.NextProtos, []string{"h2"}) || a.NextProtos != nil {
		t.Errorf("got %+v", c)
	}
	special, refused := &tls.Config{ServerName: "special"}, errors.New("as asked")
	choosing := &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		switch hello.ServerName {
		case "special":
			return special, nil
		case "refused":
			return nil, refused
		}
		return nil, nil
	}}
	for _, tc := range []struct {
		name    string
		c       *tls.Config
		server  string
		offers  []string
		chosen  string // ServerName of the one that is chosen, "-" for the listener's own
		agreed  []string
		refused bool
	}{
		{"no offer", dotConfig(a.Clone()), "", nil, "-", nil, false},
		{"another offer", dotConfig(a.Clone()), "", []string{"h2"}, "-", nil, false},
		{"dot", dotConfig(a.Clone()), "", []string{"h2", "dot"}, "a", []string{"dot"}, false},
		{"dot, special", dotConfig(choosing.Clone()), "special", []string{"dot"}, "special", []string{"dot"}, false},
		{"no offer, special", dotConfig(choosing.Clone()), "special", nil, "special", nil, false},
		{"dot, refused", dotConfig(choosing.Clone()), "refused", []string{"dot"}, "-", nil, true},
		{"h2, special", tlsConfigOf([]*Config{{TLSConfig: choosing}}, "h2"), "special", nil, "special", []string{"h2"}, false},
		{"h2, refused", tlsConfigOf([]*Config{{TLSConfig: choosing}}, "h2"), "refused", nil, "-", nil, true},
		{"h2, not special", tlsConfigOf([]*Config{{TLSConfig: choosing}}, "h2"), "", nil, "-", nil, false},
	} {
		got, err := tc.c.GetConfigForClient(&tls.ClientHelloInfo{ServerName: tc.server, SupportedProtos: tc.offers})
		if (err != nil) != tc.refused || (got == nil) != (tc.chosen == "-") {
			t.Errorf("%s: %v, %v", tc.name, got, err)
			continue
		}
		if got != nil && (got.ServerName != tc.chosen || !slices.Equal(got.NextProtos, tc.agreed)) {
			t.Errorf("%s: %s, %v", tc.name, got.ServerName, got.NextProtos)
		}
	}
	if special.NextProtos != nil {
		t.Error("somebody else's configuration was changed")
	}
}

// Blocks of a listener with different certificates cannot share it.
func TestOneIdentity(t *testing.T) {
	with := func(identity string) *Config {
		return &Config{Transport: "tls", TLSConfig: new(tls.Config), TLSIdentity: identity}
	}
	plain := &Config{Transport: "dns", TLSConfig: new(tls.Config), TLSIdentity: "c"}
	for _, tc := range []struct {
		name  string
		group []*Config
		ok    bool
	}{
		{"none", []*Config{{}, {}}, true},
		{"the same", []*Config{with("a"), {}, with("a")}, true},
		{"one says nothing", []*Config{with("a"), with("")}, true},
		{"plain DNS", []*Config{with("a"), plain}, true},
		{"different ones", []*Config{with("a"), {}, with("b")}, false},
	} {
		if err := oneIdentity("tls://:853", tc.group); (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}
