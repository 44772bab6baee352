package autopath

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin"
)

// step is the writer for one entry of a list: denials are kept, all other replies go to the client.
type step struct {
	plugin.Wrapped
	asked     string // the name that the client asked for
	completed bool   // another name is looked up
	validates bool   // AD is what *validator* found out

	answered bool
	denied   *dns.Msg // the denial for this entry
	first    *dns.Msg // the denial for the first one; nil if there is none
	errs     []error  // of all entries so far
}

// begin makes s the writer for entry i.
func (s *step) begin(i int) {
	if i == 1 {
		s.first = s.denied
	}
	s.completed, s.denied = i > 0, nil
}

// WriteMsg keeps m, or sends it as a reply to the client's question. m is not changed.
func (s *step) WriteMsg(m *dns.Msg) error {
	if m.Rcode == dns.RcodeNameError {
		s.denied = m
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
	if s.validates {
		reply.AuthenticatedData = false // nobody has signed the alias
	}
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

// err is what went wrong, nil if nothing did.
func (s *step) err() error {
	s.errs = slices.DeleteFunc(s.errs, func(err error) bool { return err == nil })
	if len(s.errs) == 1 {
		return s.errs[0]
	}
	return errors.Join(s.errs...)
}

// giveUp answers with the denial of the name that the client asked for, or with SERVFAIL if there is none.
func (s *step) giveUp() (int, error) {
	if s.first == nil && !s.completed { // the list has one entry
		s.first = s.denied
	}
	if s.first == nil {
		return dns.RcodeServerFailure, s.err()
	}
	s.errs = append(s.errs, s.ResponseWriter.WriteMsg(s.first))
	return dns.RcodeNameError, s.err()
}

// AskedName is the name that the client asked for, for plugins below that want to know it.
func (s *step) AskedName() string {
	return cmp.Or(s.Wrapped.AskedName(), s.asked)
}
