// Package request is a query as plugins look at it: the message and its writer, with
// what is asked of them again and again read once.
//
// A Request is a value that belongs to one goroutine. Handlers make one where they
// need it: state := request.Request{W: w, Req: r}. Scrub and ScrubWriter make a
// reply fit its client. Start at Request.
package request

import (
	"net"
	"strings"

	"github.com/coredns/coredns/plugin/pkg/edns"

	"github.com/miekg/dns"
)

// Request is a query with its writer. The zero values of the fields that are not set
// mean unknown; the methods then give the empty answers that their comments name.
type Request struct {
	Req *dns.Msg
	W   dns.ResponseWriter

	// Zone is the zone that a plugin found to match the name, for its own use.
	Zone string

	// What the methods found out; Clear forgets it.
	name              string
	ip, port          string
	localIP, localPrt string
	size              int32 // 0 is not yet known
	do                int8  // 0 is not yet known, 1 no, 2 yes
	family            int8
}

// NewWithQuestion is a Request for a deep copy of the message with another name
// and type, class IN. W and Zone stay.
func (r *Request) NewWithQuestion(name string, typ uint16) Request {
	req := r.Req.Copy()
	req.Question = []dns.Question{{Name: dns.Fqdn(name), Qtype: typ, Qclass: dns.ClassINET}}
	return Request{W: r.W, Req: req, Zone: r.Zone}
}

// Clear forgets what the methods found out, for a message that was changed.
func (r *Request) Clear() { *r = Request{Req: r.Req, W: r.W, Zone: r.Zone} }

func (r *Request) question() *dns.Question {
	if r.Req == nil || len(r.Req.Question) == 0 {
		return nil
	}
	return &r.Req.Question[0]
}

// Name is the name asked for, in lower case; "." if there is none.
func (r *Request) Name() string {
	if r.name == "" {
		r.name = "."
		if q := r.question(); q != nil {
			r.name = strings.ToLower(q.Name)
		}
	}
	return r.name
}

// QName is the name as it was asked; "." if there is none.
func (r *Request) QName() string {
	if q := r.question(); q != nil {
		return q.Name
	}
	return "."
}

// QType is the type asked for, 0 if there is none.
func (r *Request) QType() uint16 {
	if q := r.question(); q != nil {
		return q.Qtype
	}
	return 0
}

// Type is the type's mnemonic, "" if there is none.
func (r *Request) Type() string {
	if q := r.question(); q != nil {
		return dns.Type(q.Qtype).String()
	}
	return ""
}

// QClass is the class asked for, 0 if there is none.
func (r *Request) QClass() uint16 {
	if q := r.question(); q != nil {
		return q.Qclass
	}
	return 0
}

// Class is the class's mnemonic, "" if there is none.
func (r *Request) Class() string {
	if q := r.question(); q != nil {
		return dns.Class(q.Qclass).String()
	}
	return ""
}

// IP is the client's address, with its zone if it is a link-local one.
func (r *Request) IP() string {
	r.remote()
	return r.ip
}

// Port is the client's port, "0" if it is not known.
func (r *Request) Port() string {
	r.remote()
	return r.port
}

func (r *Request) remote() {
	if r.port == "" {
		r.ip, r.port = split(r.W.RemoteAddr())
	}
}

// LocalIP is the server's address that the query was sent to.
func (r *Request) LocalIP() string {
	r.local()
	return r.localIP
}

// LocalPort is the server's port, "0" if it is not known.
func (r *Request) LocalPort() string {
	r.local()
	return r.localPrt
}

func (r *Request) local() {
	if r.localPrt == "" {
		r.localIP, r.localPrt = split(r.W.LocalAddr())
	}
}

// split takes an address apart; one without a port is all host.
func split(a net.Addr) (ip, port string) {
	if a == nil {
		return "", "0"
	}
	ip, port, err := net.SplitHostPort(a.String())
	if err != nil {
		return a.String(), "0"
	}
	return ip, port
}

// RemoteAddr is the client's address and port.
func (r *Request) RemoteAddr() string { return r.W.RemoteAddr().String() }

// LocalAddr is the server's address and port.
func (r *Request) LocalAddr() string { return r.W.LocalAddr().String() }

// Proto is "udp" or "tcp", by the kind of the client's address; unknown kinds are udp.
func (r *Request) Proto() string {
	if stream(r.W) {
		return "tcp"
	}
	return "udp"
}

func stream(w dns.ResponseWriter) bool {
	_, ok := w.RemoteAddr().(*net.TCPAddr)
	return ok
}

// Family is 1 for a client with an IPv4 address, also one mapped into IPv6, else 2.
func (r *Request) Family() int {
	if r.family == 0 {
		r.family = 2
		var ip net.IP
		switch a := r.W.RemoteAddr().(type) {
		case *net.UDPAddr:
			ip = a.IP
		case *net.TCPAddr:
			ip = a.IP
		}
		if ip.To4() != nil {
			r.family = 1
		}
	}
	return int(r.family)
}

// Do reports whether the query has the DO bit (RFC 3225).
func (r *Request) Do() bool {
	r.readOPT()
	return r.do == 2
}

// Size is the length that a reply may have, in octets: 65535 on streams, else what
// the client's OPT record says, at least 512.
func (r *Request) Size() int {
	r.readOPT()
	return int(r.size)
}

func (r *Request) readOPT() {
	if r.do != 0 {
		return
	}
	r.do = 1
	size := uint16(0)
	if r.Req != nil {
		if opt := r.Req.IsEdns0(); opt != nil {
			size = opt.UDPSize()
			if opt.Do() {
				r.do = 2
			}
		}
	}
	r.size = int32(edns.Size(r.Proto(), size))
}

// Len is the length of the query's message without compression, in octets.
func (r *Request) Len() int {
	if r.Req == nil {
		return 0
	}
	m := *r.Req
	m.Compress = false
	return m.Len()
}

// Match reports whether reply is a reply to this query: QR is set, and its only
// question has the same name but for case, type and class.
func (r *Request) Match(reply *dns.Msg) bool {
	q := r.question()
	if q == nil || reply == nil || !reply.Response || len(reply.Question) != 1 {
		return false
	}
	got := &reply.Question[0]
	return strings.EqualFold(got.Name, q.Name) && got.Qtype == q.Qtype && got.Qclass == q.Qclass
}
