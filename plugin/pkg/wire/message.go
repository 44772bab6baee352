package wire

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/miekg/dns"
)

// This file is the bridge to messages as github.com/miekg/dns has them.

// SetMsg makes q the query that r holds, from peer. r needs a question; only its
// first one counts. Nothing of r is kept.
func (q *Query) SetMsg(r *dns.Msg, peer Peer) error {
	if len(r.Question) == 0 {
		return errors.New("message without question")
	}
	q.packet = nil
	q.Peer = peer
	q.reset()
	b, err := AppendName(q.first.asked[:0], r.Question[0].Name)
	if err != nil {
		return fmt.Errorf("question %q: %w", r.Question[0].Name, err)
	}
	q.first.set(b)
	q.id = r.Id
	q.qtype, q.qclass = r.Question[0].Qtype, r.Question[0].Qclass
	q.flags = msgFlags(&r.MsgHdr)
	q.edns = EDNS{}
	if opt := r.IsEdns0(); opt != nil {
		q.edns = EDNS{Present: true, Size: opt.UDPSize(), Flags: uint16(opt.Hdr.Ttl)}
		if len(opt.Option) > 0 {
			q.edns.Options, q.edns.Set = packOptions(opt)
		}
	}
	q.reqLen = HeaderLen + q.first.n + 4
	if len(r.Extra)+len(r.Answer)+len(r.Ns) > 0 {
		q.reqLen = r.Len()
	}
	return nil
}

// Msg is the query as a message: as it came, or as plugins have changed it since.
func (q *Query) Msg() (*dns.Msg, error) {
	b := q.packet
	if q.changed || b == nil {
		b = q.Append(make([]byte, 0, 512), q.id)
	}
	m, err := UnpackQuery(b)
	if err != nil {
		return nil, fmt.Errorf("query for %s: %w", Text(q.Name()), err)
	}
	return m, nil
}

// packOptions is the RDATA of opt, whose owner may be any name.
func packOptions(opt *dns.OPT) ([]byte, OptionSet) {
	root := dns.OPT{Hdr: dns.RR_Header{Name: ".", Rrtype: dns.TypeOPT}, Option: opt.Option}
	buf := make([]byte, dns.Len(&root)+16)
	n, err := dns.PackRR(&root, buf, 0, nil, false)
	if err != nil || n < 11 {
		return nil, HasOther
	}
	set, ok := scanOptions(buf[11:n])
	if !ok {
		set |= HasOther
	}
	return buf[11:n], set
}

func msgFlags(h *dns.MsgHdr) (f uint16) {
	f = uint16(h.Opcode&0xF)<<11 | uint16(h.Rcode)&rcodeMask
	for _, b := range [...]struct {
		on  bool
		bit uint16
	}{{h.Response, FlagQR}, {h.Authoritative, FlagAA}, {h.Truncated, FlagTC}, {h.RecursionDesired, FlagRD},
		{h.RecursionAvailable, FlagRA}, {h.Zero, FlagZ}, {h.AuthenticatedData, FlagAD}, {h.CheckingDisabled, FlagCD}} {
		if b.on {
			f |= b.bit
		}
	}
	return f
}

// PeerOf is the peer as the addresses of a message's writer tell it.
func PeerOf(remote, local net.Addr) Peer {
	p := Peer{Client: addrPort(remote), Local: addrPort(local)}
	if _, ok := remote.(*net.TCPAddr); ok {
		p.Proto, p.Limit = TCP, MaxMessage
	}
	return p
}

func addrPort(a net.Addr) (ap netip.AddrPort) {
	switch a := a.(type) {
	case *net.UDPAddr:
		ap = a.AddrPort()
	case *net.TCPAddr:
		ap = a.AddrPort()
	case nil:
		return ap
	default:
		ap, _ = netip.ParseAddrPort(a.String())
	}
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// EndFor is the End of a reply to r, as Msg has it, for a client that takes limit octets. The caller fills in what
// it knows about EDNS.
func EndFor(r *dns.Msg, limit int) End {
	e := End{ID: r.Id, Flags: uint16(r.Opcode&0xF) << 11, Limit: limit}
	if r.Opcode == dns.OpcodeQuery {
		e.Flags |= msgFlags(&r.MsgHdr) & (FlagRD | FlagCD)
	}
	return e
}

// Msg is the message that w holds, as a reply to r: r's id, opcode, question and RD
// and CD bits; everything else as w has it, but for the EDNS options. Nothing of w is kept.
func (w *Reply) Msg(r *dns.Msg) (*dns.Msg, error) {
	if w.state != message {
		return nil, errors.New("no message to unpack")
	}
	end := EndFor(r, 0)
	w.header(end.ID, end.Flags)
	m := new(dns.Msg)
	if err := UnpackInto(m, w.buf); err != nil {
		return nil, fmt.Errorf("reply to %s: %w", r.Question[0].Name, err)
	}
	m.Question[0].Name = r.Question[0].Name
	m.Rcode = w.Rcode()
	return m, nil
}

// SetMsg makes w the message m: its question, records and flags. OPT records are
// left out. On an error w is as after Reset.
func (w *Reply) SetMsg(m *dns.Msg) error {
	if len(m.Question) == 0 {
		return errors.New("message without question")
	}
	var buf [MaxName + 1]byte
	qname, err := AppendName(buf[:0], m.Question[0].Name)
	if err != nil {
		return fmt.Errorf("question %q: %w", m.Question[0].Name, err)
	}
	w.begin(qname, m.Question[0].Qtype, m.Question[0].Qclass)
	w.flags, w.extRcode = msgFlags(&m.MsgHdr)&(FlagAA|FlagTC|FlagRA|FlagAD|rcodeMask), byte(m.Rcode>>4)
	for s, rrs := range [...][]dns.RR{m.Answer, m.Ns, m.Extra} {
		for _, rr := range rrs {
			if err := w.RR(Section(s), rr); err != nil {
				w.state = empty
				return err
			}
		}
	}
	return nil
}

// SetMsgOPT is SetMsg for a message that came from elsewhere: the OPT record counts as LoadMessage has it.
func (w *Reply) SetMsgOPT(m *dns.Msg) error {
	if err := w.SetMsg(m); err != nil {
		return err
	}
	if opt := m.IsEdns0(); opt != nil {
		w.SetOptions(opt)
		w.opt, w.optFlags = 11+len(w.options), uint16(opt.Hdr.Ttl)
		w.plain += w.opt
	}
	return nil
}

// EndMsg is the End of a message m, which w was set to, for a client that takes limit octets: m's id and
// header bits. The caller fills in what it knows about EDNS.
func EndMsg(m *dns.Msg, limit int) End {
	return End{ID: m.Id, Flags: msgFlags(&m.MsgHdr) &^ rcodeMask, Limit: limit}
}

// SetOptions makes the options of opt those of the reply.
func (w *Reply) SetOptions(opt *dns.OPT) {
	w.options = w.options[:0]
	if len(opt.Option) > 0 {
		options, _ := packOptions(opt)
		w.options = append(w.options, options...)
	}
}

// packer packs records one by one, with room for most of them.
type packer struct {
	m   dns.Msg
	one [1]dns.RR
	buf [1024]byte
}

var packers = sync.Pool{New: func() any { return new(packer) }}

// pack is rr in wire form with its names in full, good until the next call. rr is only read, as a plugin may answer
// many queries at one time with one record: dns.PackRR would note in it how long its data is.
func (p *packer) pack(rr dns.RR) ([]byte, error) {
	p.one[0] = rr
	p.m.Answer = p.one[:]
	b, err := p.m.PackBuffer(p.buf[:])
	p.one[0] = nil
	if err != nil {
		return nil, err
	}
	return b[HeaderLen:], nil
}

// AppendRR appends rr to b in wire form, with its names in full. rr is only read.
func AppendRR(b []byte, rr dns.RR) ([]byte, error) {
	p := packers.Get().(*packer)
	defer packers.Put(p)
	packed, err := p.pack(rr)
	return append(b, packed...), err
}

// RR adds a record. OPT records are left out.
func (w *Reply) RR(s Section, rr dns.RR) error {
	h := rr.Header()
	if h.Rrtype == dns.TypeOPT {
		return nil
	}
	if w.full {
		w.leaveOut(len(w.buf), s)
		return nil
	}
	p := packers.Get().(*packer)
	defer packers.Put(p)
	b, err := p.pack(rr)
	if err != nil {
		return fmt.Errorf("record %s %s: %w", h.Name, dns.TypeToString[h.Rrtype], err)
	}
	owner := NameLen(b)
	if owner == 0 || len(b) < owner+10 {
		return fmt.Errorf("record %s %s: %w", h.Name, dns.TypeToString[h.Rrtype], ErrName)
	}
	w.Record(s, b[:owner], h.Rrtype, h.Class, h.Ttl, b[owner+10:])
	return nil
}
