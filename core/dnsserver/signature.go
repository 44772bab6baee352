package dnsserver

import "github.com/miekg/dns"

// signature is what a writer knows of the TSIG signature of its query, and needs to sign the reply (RFC 8945).
type signature struct {
	secrets    map[string]string // of the listener, base64 by key name
	status     error             // what is wrong with the query's signature
	mac        string            // of the message before: the query's, or the last reply's
	timersOnly bool
}

// check checks the signature of the query r, which came as packet (RFC 8945 §5.2).
func (s *signature) check(server *Server, packet []byte, r *dns.Msg) {
	t := r.IsTsig()
	if t == nil || server == nil || server.tsigSecret == nil {
		return
	}
	s.secrets, s.mac = server.tsigSecret, t.MAC
	secret, ok := s.secrets[dns.CanonicalName(t.Hdr.Name)]
	if !ok {
		s.status = dns.ErrSecret
		return
	}
	s.status = dns.TsigVerify(packet, secret, "", false)
}

// pack packs m as it is, signed if it has a TSIG record.
func (s *signature) pack(m *dns.Msg) ([]byte, error) {
	t := m.IsTsig()
	if t == nil || s.secrets == nil {
		return m.Pack()
	}
	b, mac, err := dns.TsigGenerate(m, s.secrets[dns.CanonicalName(t.Hdr.Name)], s.mac, s.timersOnly)
	if err != nil {
		return nil, err
	}
	s.mac = mac
	return b, nil
}

// TsigStatus is nil if the query is not signed, or well; TsigTimersOnly is for the second and further messages of a transfer.
func (s *signature) TsigStatus() error      { return s.status }
func (s *signature) TsigTimersOnly(on bool) { s.timersOnly = on }
