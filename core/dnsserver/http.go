package dnsserver

import (
	"net/http"

	"github.com/coredns/coredns/core/internal/doh"
)

// What DNS over HTTPS and over HTTP/3 have in common, of which a build may have one without the other.

// DoHWriter is the dns.ResponseWriter of a query that came over HTTP.
type DoHWriter = doh.Writer

// validator is the function that decides whether an HTTP request is one for us: the last of the group; nil stands
// for: if its path is /dns-query.
func validator(group []*Config) (valid func(*http.Request) bool) {
	for _, cfg := range group {
		if cfg.HTTPRequestValidateFunc != nil {
			valid = cfg.HTTPRequestValidateFunc
		}
	}
	return valid
}

// headerSpace is the limit of headers that the libraries are told.
func (s *Server) headerSpace() int {
	return doh.HeaderSpace(s.limits.HeaderBytes, DefaultHTTPSMaxHeaderBytes)
}
