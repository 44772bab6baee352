package dnsutil

import (
	"encoding/binary"
	"errors"

	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/miekg/dns"
)

// headerSize is the length of a message's header (RFC 1035 §4.1.1).
const headerSize = 12

var errRejected = errors.New("dns request rejected")

// UnpackRequest reads a request that came over a transport which is not served by miekg/dns itself, under the
// same rule, dns.DefaultMsgAcceptFunc: one question, opcode QUERY or NOTIFY, sections as short as a request's are.
//
// The error is dns.ErrBuf for less than a header and for a header alone that announces a question, "dns request
// rejected" for a message that the rule does not accept, and else what made the message unreadable. Octets after
// the message are ignored. The result holds nothing of msg.
func UnpackRequest(msg []byte) (*dns.Msg, error) {
	if len(msg) < headerSize {
		return nil, dns.ErrBuf
	}
	header := dns.Header{
		Id:      binary.BigEndian.Uint16(msg[0:]),
		Bits:    binary.BigEndian.Uint16(msg[2:]),
		Qdcount: binary.BigEndian.Uint16(msg[4:]),
		Ancount: binary.BigEndian.Uint16(msg[6:]),
		Nscount: binary.BigEndian.Uint16(msg[8:]),
		Arcount: binary.BigEndian.Uint16(msg[10:]),
	}
	if dns.DefaultMsgAcceptFunc(header) != dns.MsgAccept {
		return nil, errRejected
	}
	m, err := wire.UnpackQuery(msg)
	if err != nil {
		return nil, err
	}
	if len(m.Question) != int(header.Qdcount) { // the library takes a header alone for a message
		return nil, dns.ErrBuf
	}
	return m, nil
}
