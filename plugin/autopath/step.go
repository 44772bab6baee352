package autopath

import (
	"crypto/tls"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// step is the writer for one entry of a list: denials are kept, all other replies go to the client.
type step struct {
	dns.ResponseWriter
	asked     string // the name that the client asked for
	completed bool   // another name is looked up

	answered bool
	denied   *dns.Msg // the denial for this entry
	first    *dns.Msg // the denial for the first one
}

// WriteMsg keeps m, or sends it as a reply to the client's question. m is not changed.
func (s *step) WriteMsg(m *dns.Msg) error {
	if m.Rcode == dns.RcodeNameError {
		s.denied = m
		if s.first == nil {
			s.first = m
		}
		return nil
	}
	s.answered = true
	if s.completed {
		m = s.adopt(m)
	}
	return s.ResponseWriter.WriteMsg(m)
}

// Write sends b as it is: nobody can tell what it says.
func (s *step) Write(b []byte) (int, error) {
	s.answered = true
	return s.ResponseWriter.Write(b)
}

// adopt is m as a reply to the client's question: with an alias that leads to the name that has been found.
func (s *step) adopt(m *dns.Msg) *dns.Msg {
	reply := *m
	reply.Question = slices.Clone(m.Question)
	if len(reply.Question) > 0 {
		reply.Question[0].Name = s.asked
	}
	if len(m.Answer) == 0 || strings.EqualFold(m.Answer[0].Header().Name, s.asked) {
		return &reply
	}
	h := m.Answer[0].Header()
	alias := &dns.CNAME{Hdr: dns.RR_Header{Name: s.asked, Rrtype: dns.TypeCNAME, Class: dns.ClassINET, Ttl: h.Ttl}, Target: h.Name}
	reply.Answer = append([]dns.RR{alias}, m.Answer...)
	return &reply
}

// giveUp answers with the denial of the name that the client asked for.
func (s *step) giveUp(err error) (int, error) {
	if werr := s.ResponseWriter.WriteMsg(s.first); err == nil {
		err = werr
	}
	return dns.RcodeNameError, err
}

// AskedName is the name that the client asked for, for plugins below that want to know it.
func (s *step) AskedName() string {
	if a, ok := s.ResponseWriter.(interface{ AskedName() string }); ok {
		return a.AskedName()
	}
	return s.asked
}

// ConnectionState is the TLS state of the query's connection, nil if there is none.
func (s *step) ConnectionState() *tls.ConnectionState {
	if c, ok := s.ResponseWriter.(dns.ConnectionStater); ok {
		return c.ConnectionState()
	}
	return nil
}
