package doh

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"

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
	packet, err := Packet(req)
	if err != nil {
		return nil, nil, err
	}
	m, err := dnsutil.UnpackRequest(packet)
	if err != nil {
		return nil, nil, err
	}
	return m, packet, nil
}

// Packet returns the octets of the message in req, as RequestToMsgWire does, without looking at them.
func Packet(req *http.Request) ([]byte, error) {
	switch req.Method {
	case http.MethodPost:
		return readMessage(req.Body)
	case http.MethodGet:
		return AppendQuery(nil, req.URL.RawQuery)
	}
	return nil, errMethod(req.Method)
}

// AppendQuery appends to b the octets of the message that the part of the URL of a GET request after "?" carries. With
// an error b is returned as it was.
func AppendQuery(b []byte, rawQuery string) ([]byte, error) {
	if len(rawQuery) > maxQuery {
		return b, errTooLong
	}
	// What nearly all clients send needs no taking apart.
	if text, ok := strings.CutPrefix(rawQuery, "dns="); ok && !strings.ContainsAny(text, "&;%+#") {
		return appendDecoded(b, text)
	}
	values, _ := url.ParseQuery(rawQuery) // what is wrong with other parameters does not matter
	switch dns := values["dns"]; len(dns) {
	case 0:
		return b, errNoParameter
	case 1:
		return appendDecoded(b, dns[0])
	}
	return b, errParameters
}

// appendDecoded appends the octets that the parameter dns stands for.
func appendDecoded(b []byte, text string) ([]byte, error) {
	if len(text) > base64.RawURLEncoding.EncodedLen(maxSize) {
		return b, errTooLong
	}
	out, err := base64.RawURLEncoding.AppendDecode(b, []byte(text))
	if err != nil {
		return b, err
	}
	return out, nil
}
