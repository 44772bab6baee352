package dnsserver

import "testing"

func TestListing(t *testing.T) {
	for addr, want := range map[string]string{
		"dns://:53":             ".:53\nWarning: Domain \"_odd.\" does not follow RFC1035 preferred syntax\n_odd.:53\norg.:53\n",
		"tls://127.0.0.1:853":   "tls://.:853 on 127.0.0.1\nWarning: Domain \"_odd.\" does not follow RFC1035 preferred syntax\ntls://_odd.:853 on 127.0.0.1\ntls://org.:853 on 127.0.0.1\n",
		"what programs make up": "what programs make up\n",
	} {
		s := &Server{Addr: addr, configs: []*Config{{Zone: "org."}, {Zone: "."}, {Zone: "_odd."}, {Zone: "org."}}}
		if got := s.listing(); got != want {
			t.Errorf("%s: %q", addr, got)
		}
	}
}
