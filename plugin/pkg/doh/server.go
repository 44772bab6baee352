package doh

import (
	"encoding/base64"
	"errors"
	"net/http"

	"github.com/miekg/dns"

	"github.com/coredns/coredns/plugin/pkg/dnsutil"
)

// maxQuery bounds the part of the URL after "?" before it is taken apart. It leaves room for other parameters beside
// the longest message.
const maxQuery = 128 << 10

var (
	errNoParameter = errors.New("no 'dns' query parameter found")
	errParameters  = errors.New("multiple 'dns' query values found")
)

// RequestToMsg is RequestToMsgWire without the packet.
func RequestToMsg(req *http.Request) (*dns.Msg, error) {
	m, _, err := RequestToMsgWire(req)
	return m, err
}

// RequestToMsgWire returns the message that req carries, and the packet it was read from: the one parameter dns of a
// GET request, in base64url without padding, or the body of a POST request, which it closes. The media type is not
// looked at. Other methods are errors, and so is a message that dnsutil.UnpackRequest does not accept.
//
// The packet belongs to the caller; the message holds nothing of it.
func RequestToMsgWire(req *http.Request) (*dns.Msg, []byte, error) {
	wire, err := packet(req)
	if err != nil {
		return nil, nil, err
	}
	m, err := dnsutil.UnpackRequest(wire)
	if err != nil {
		return nil, nil, err
	}
	return m, wire, nil
}

// packet returns the octets of the message in req.
func packet(req *http.Request) ([]byte, error) {
	switch req.Method {
	case http.MethodPost:
		return readMessage(req.Body)
	case http.MethodGet:
		if len(req.URL.RawQuery) > maxQuery {
			return nil, errTooLong
		}
		return decode(req.URL.Query()["dns"])
	}
	return nil, errMethod(req.Method)
}

// decode returns the octets that the parameter dns, given with all its values, stands for.
func decode(values []string) ([]byte, error) {
	switch {
	case len(values) == 0:
		return nil, errNoParameter
	case len(values) > 1:
		return nil, errParameters
	case len(values[0]) > base64.RawURLEncoding.EncodedLen(maxSize):
		return nil, errTooLong
	}
	return base64.RawURLEncoding.DecodeString(values[0])
}
