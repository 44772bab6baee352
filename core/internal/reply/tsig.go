package reply

import (
	"encoding/binary"
	"errors"

	"github.com/coredns/coredns/plugin/pkg/keyring"

	"github.com/miekg/dns"
)

// Signature is what a writer knows of the TSIG signature of its query, and needs to sign the reply (RFC 8945).
type Signature struct {
	secret     string // of the key that the query is signed with, in base64
	checked    bool   // the signature was looked at
	status     error  // what is wrong with the query's signature
	mac        string // of the message before: the query's, or the last reply's
	timersOnly bool
	packet     []byte // of an UPDATE, as it came; nil for all else
}

// Verify checks the signature of the query r, which came as packet (RFC 8945 §5.2). f may be nil.
func (f *Finisher) Verify(s *Signature, packet []byte, r *dns.Msg) {
	if r.Opcode == dns.OpcodeUpdate { // who passes it on must not change it (RFC 2136 §6)
		s.packet = append([]byte(nil), packet...)
	}
	t := r.IsTsig()
	if t == nil || f == nil || f.Secrets == nil {
		return
	}
	s.checked = true
	var ok bool
	if s.secret, ok = f.secretOf(dns.CanonicalName(t.Hdr.Name)); !ok {
		s.status = dns.ErrSecret
		return
	}
	s.status = keyring.Verify(packet, s.secret, "", false)
	if s.status == nil || errors.Is(s.status, dns.ErrTime) { // replies to all others are not signed
		s.mac = t.MAC
	}
	binary.BigEndian.PutUint16(packet, r.Id) // it was checked as it was signed, perhaps with another id
}

// secretOf is the secret of a key, in base64. It is asked for once for each query: so a reply, and all messages of a
// transfer, are signed with the secret that the query was checked with, though keys are replaced meanwhile.
func (f *Finisher) secretOf(name string) (string, bool) {
	if secret, ok := f.Secrets[name]; ok {
		return secret, true
	}
	for _, r := range f.Keyrings {
		if k, ok := r.Key(name); ok {
			return k.Secret, true
		}
	}
	return "", false
}

// Sign has m signed, which the server itself replies to r by w, if r was signed well (RFC 8945 §5.3). The replies of
// plugins are signed by plugin tsig. f may be nil.
func (f *Finisher) Sign(m, r *dns.Msg, w dns.ResponseWriter) {
	t := r.IsTsig()
	if t == nil || f == nil || f.Secrets == nil || w.TsigStatus() != nil {
		return
	}
	keyring.Sign(m, t.Hdr.Name, t.Algorithm)
}

// signedElsewhere reports whether t, a reply's TSIG record or nil, is another server's: one that is still to be signed
// here has no MAC.
func signedElsewhere(t *dns.TSIG) bool { return t != nil && t.MAC != "" }

// Pack packs m as it is, signed if it has a TSIG record. One of another server stays where the key is unknown.
func (s *Signature) Pack(m *dns.Msg) ([]byte, error) {
	t := m.IsTsig()
	if t == nil || !s.checked || s.secret == "" && signedElsewhere(t) {
		return m.Pack()
	}
	b, mac, err := dns.TsigGenerate(m, s.secret, s.mac, s.timersOnly)
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint16(b, m.Id) // the library leaves the one that was signed, t.OrigId
	s.mac = mac
	return b, nil
}

// Packet is the query as it came, if it is an UPDATE; nil for all else.
func (s *Signature) Packet() []byte { return s.packet }

// TsigStatus is nil if the query is not signed, or well; TsigTimersOnly is for the second and further messages of a
// transfer.
func (s *Signature) TsigStatus() error      { return s.status }
func (s *Signature) TsigTimersOnly(on bool) { s.timersOnly = on }
