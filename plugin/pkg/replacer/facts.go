package replacer

import (
	"net"
	"net/netip"
	"time"

	"github.com/coredns/coredns/plugin/pkg/dnstest"
	"github.com/coredns/coredns/plugin/pkg/edns"
	"github.com/coredns/coredns/plugin/pkg/wire"
	"github.com/coredns/coredns/request"

	"github.com/miekg/dns"
)

// Facts are what can be told about one query and its reply. They may be filled in by hand; SetRequest or SetQuery
// does it for a query, SetRecorder or SetReply for its reply. SetRequest and SetQuery keep memory of what they are
// given.
type Facts struct {
	ID          uint16
	Opcode      int
	Name        string // as presented, in lower case
	WireName    []byte // the same in wire form, instead of Name
	LookedUp    string // the name that plugins looked up last, "" if it is the one asked for
	WireLooked  []byte // the same in wire form, instead of LookedUp
	Type, Class uint16
	Unasked     bool // there is no question: type and class have no names
	Size        int  // of the query's message, in octets
	TCP         bool
	DO          bool
	BufSize     int // octets that the client takes: its EDNS size over UDP and QUIC

	Client, Local netip.AddrPort
	// ClientAddr and LocalAddr stand for addresses that are no IP addresses with a port.
	ClientAddr, LocalAddr net.Addr

	Reply Reply
}

// Reply is what can be told about the reply to a query.
type Reply struct {
	Over     bool // the query was served; else nothing is known about a reply
	Written  bool // there is a reply; else the query was dropped
	Rcode    int
	Flags    uint16 // the second word of the header
	Len      int    // in octets, without compression and OPT record
	Duration time.Duration
}

// SetRequest fills in what the query's message says.
func (f *Facts) SetRequest(state *request.Request) {
	f.Name, f.Type, f.Class = state.Name(), state.QType(), state.QClass()
	f.Unasked = state.Req == nil || len(state.Req.Question) == 0
	f.Size, f.DO, f.BufSize = state.Len(), state.Do(), state.Size()
	if state.Req != nil {
		f.ID, f.Opcode = state.Req.Id, state.Req.Opcode
	}
	// All that is no TCP counts as UDP, QUIC with it: what the line says is udp or tcp.
	f.TCP = state.Proto() == "tcp"
	remote, local := state.W.RemoteAddr(), state.W.LocalAddr()
	peer := wire.PeerOf(remote, local)
	f.Client, f.Local = peer.Client, peer.Local
	f.ClientAddr, f.LocalAddr = remote, local
}

// SetQuery fills in what the query's packet says. The query's name is not copied.
func (f *Facts) SetQuery(q *wire.Query) {
	f.ID, f.Opcode = q.ID(), int(q.Flags()>>11&0xF)
	f.WireName, f.Type, f.Class = q.Lower(), q.Type(), q.Class()
	f.WireLooked = q.LookedUp()
	f.Size, f.DO, f.BufSize = q.Len(), q.DO(), int(edns.Size(q.Proto.String(), q.EDNS().Size))
	f.TCP = q.Proto == wire.TCP
	f.Client, f.Local = q.Client, q.Local
}

// SetRecorder fills in what was written to rr, and the time since it was made.
func (f *Facts) SetRecorder(rr *dnstest.Recorder) {
	f.Reply = Reply{Over: true, Rcode: rr.Rcode, Len: rr.Len, Duration: time.Since(rr.Start)}
	if rr.Msg != nil {
		f.Reply.Written, f.Reply.Flags = true, headerFlags(&rr.Msg.MsgHdr)
	}
}

// SetReply fills in what w holds as the reply to q, and how long it took.
func (f *Facts) SetReply(w *wire.Reply, q *wire.Query, took time.Duration) {
	f.Reply = Reply{Over: true, Duration: took}
	// A reply has them as the query had; w does not know them before it is finished.
	asked := q.Flags() & (wire.FlagRD | wire.FlagCD)
	switch {
	case w.Holds():
		f.Reply.setHeld(w, asked)
		f.Reply.Len = w.PlainLen()
	case w.Failed(): // the server will write header and question
		f.Reply.Written, f.Reply.Len = true, wire.HeaderLen+len(q.Name())+4
		f.Reply.Flags = wire.FlagQR | asked
		// It has RA if a resolver has failed; what else the error tells stands in an OPT record.
		if edns.Resolves(w.Err()) {
			f.Reply.Flags |= wire.FlagRA
		}
	}
	f.Reply.Rcode = w.Rcode()
}

// SetTaken is SetReply for a message that w holds, in reply to r, perhaps the last of several; size is the octets
// of all.
func (f *Facts) SetTaken(w *wire.Reply, r *dns.Msg, size int, took time.Duration) {
	f.Reply = Reply{Over: true, Duration: took, Rcode: w.Rcode(), Len: size}
	f.Reply.setHeld(w, wire.EndFor(r, 0).Flags&(wire.FlagRD|wire.FlagCD))
}

// setHeld fills in the flags of what w holds as the reply to a query with those of asked.
func (r *Reply) setHeld(w *wire.Reply, asked uint16) {
	r.Written, r.Flags = true, wire.FlagQR|asked
	for _, bit := range [...]uint16{wire.FlagAA, wire.FlagTC, wire.FlagRA, wire.FlagAD} {
		if w.Flag(bit) {
			r.Flags |= bit
		}
	}
}

// headerFlags is the flags of a message as bits of its header.
func headerFlags(h *dns.MsgHdr) (f uint16) {
	for _, b := range [...]struct {
		on  bool
		bit uint16
	}{{h.Response, wire.FlagQR}, {h.Authoritative, wire.FlagAA}, {h.Truncated, wire.FlagTC}, {h.RecursionDesired, wire.FlagRD},
		{h.RecursionAvailable, wire.FlagRA}, {h.Zero, wire.FlagZ}, {h.AuthenticatedData, wire.FlagAD}, {h.CheckingDisabled, wire.FlagCD}} {
		if b.on {
			f |= b.bit
		}
	}
	return f
}
